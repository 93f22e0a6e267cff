// Brings config/models.json up to date. Maintainers run it; the program never does. node config/update-models.mjs
// fetches both sources at the versions below with npm --pi <tarball> --prices <tarball> reads these instead --table
// <file> --overrides <file> other files than config/models.json and config/models-overrides.json --today <YYYY-MM-DD>
// the day whose prices count Exit codes: 0 written or unchanged, 1 the sources differ by more than 5 % and no override
// settles it (nothing is written), 2 something cannot be read.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/** Both are under the MIT licence. `date`: when that version was published. The first one is followed where they differ
 * little. */
const pinned = {
  pi: { name: '@earendil-works/pi-ai', version: '1.5.2', date: '2026-11-10' },
  prices: { name: '@pydantic/genai-prices', version: '0.1.8', date: '2026-09-23' },
};

/** Our providers, and what each source calls them. */
const providers = Object.fromEntries(
  Object.entries(JSON.parse(readFileSync(new URL('providers.json', import.meta.url), 'utf8')))
    .filter(([, preset]) => preset.table_sources)
    .map(([name, preset]) => [name, preset.table_sources]),
);

/** Sources that differ by more than this say different things. */
const tolerance = 0.05;
const compared = ['context_window', 'input_usd', 'output_usd', 'cache_read_usd', 'cache_write_usd'];
const order = [
  'context_window',
  'max_output_tokens',
  'input_usd',
  'cache_read_usd',
  'cache_write_usd',
  'cache_write_1h_usd',
  'output_usd',
  'web_search_usd',
  'long_prompt',
  'vision',
  'reasoning',
  'efforts',
  'retired',
];
const levels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const say = (line) => {
  process.stdout.write(`${line}\n`);
};

class Unusable extends Error {}

function options() {
  const text = { type: 'string' };
  try {
    return parseArgs({ options: { pi: text, prices: text, table: text, overrides: text, today: text } }).values;
  } catch (error) {
    throw new Unusable(error.message);
  }
}

/** Unpacks a package into `folder`; gives where it lies, its version, and the day it was published where that is
 * known. */
function unpack(source, tarball, folder) {
  mkdirSync(folder);
  const { name, version, date } = pinned[source];
  if (tarball === undefined)
    execFileSync('npm', ['pack', '--silent', '--pack-destination', folder, `${name}@${version}`], {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  const packed =
    tarball === undefined
      ? join(folder, readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? '')
      : resolve(tarball);
  execFileSync('tar', ['-xzf', packed, '-C', folder], { stdio: ['ignore', 'ignore', 'inherit'] });
  const root = join(folder, 'package');
  const found = readJson(join(root, 'package.json'));
  return { root, version: found.version, ...(found.version === version ? { date } : {}) };
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Unusable(`${path}: ${error.message}`);
  }
}

/** A price, or undefined: 0 means that it is not known. */
const price = (usd) => (typeof usd === 'number' && usd > 0 ? usd : undefined);
const withoutGaps = (row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

/** Rows of the first source by `provider/id`: data files, one a provider, grouped by API. A model is there once for
 * each use; only the chat counts. */
function readPi(root, notes) {
  const rows = new Map();
  for (const [provider, { pi }] of Object.entries(providers)) {
    const path = join(root, 'dist/providers/data', `${pi}.json`);
    if (!existsSync(path)) continue;
    for (const model of Object.values(readJson(path)).flatMap((group) => Object.values(group))) {
      const name = `${provider}/${model.id}`;
      if ((model.cost?.input ?? 0) > 0 && (model.cost?.output ?? 0) === 0)
        notes.push(`refused   ${name}: the input has a price and the output has none (${model.type})`);
      else if (model.type !== 'chat') notes.push(`refused   ${name}: it is no chat model (${model.type})`);
      else if (rows.has(name)) notes.push(`duplicate ${name}: the first row counts`);
      else rows.set(name, piRow(model));
    }
  }
  return rows;
}

function piRow({ cost = {}, contextWindow, maxTokens, input = [], reasoning, thinkingLevelMap, api }) {
  const [tier, second] = cost.tiers ?? [];
  if (second !== undefined) throw new Unusable('a model has more than one price tier: the table has room for one');
  return withoutGaps({
    context_window: contextWindow,
    max_output_tokens: maxTokens ?? undefined,
    input_usd: price(cost.input),
    cache_read_usd: price(cost.cacheRead),
    cache_write_usd: price(cost.cacheWrite),
    output_usd: price(cost.output),
    long_prompt:
      tier === undefined
        ? undefined
        : withoutGaps({
            above_tokens: tier.inputTokensAbove,
            input_usd: price(tier.input),
            cache_read_usd: price(tier.cacheRead),
            cache_write_usd: price(tier.cacheWrite),
            output_usd: price(tier.output),
          }),
    vision: input.includes('image'),
    reasoning: reasoning === true,
    efforts: reasoning === true && thinkingLevelMap != null ? effortsOf(thinkingLevelMap, api) : undefined,
  });
}

/** The levels that `--effort` may have: what the source maps to null is refused by the model, what it leaves out is
 * taken as it is, but for the two that only some have. Anthropic has no `minimal`. */
function effortsOf(map, api) {
  return levels.flatMap((level) => {
    if (level === 'minimal' && api === 'anthropic-messages') return [];
    const sent = map[level];
    if (sent === null || (sent === undefined && (level === 'xhigh' || level === 'max'))) return [];
    return [level === 'off' ? 'none' : (sent ?? level).toLowerCase()];
  });
}

/** Rows of the second source. It matches beginnings of names when asked for a price; here only exact ids count. */
async function readPrices(root, today, notes) {
  const { findProvider } = await import(pathToFileURL(join(root, 'dist/index.js')).href);
  const rows = new Map();
  for (const [provider, { prices }] of Object.entries(providers)) {
    for (const model of (prices === undefined ? undefined : findProvider({ providerId: prices }))?.models ?? []) {
      const name = `${provider}/${model.id}`;
      if (rows.has(name)) notes.push(`duplicate ${name}: the first row counts`);
      else rows.set(name, pricesRow(name, model, today, notes));
    }
  }
  return rows;
}

function pricesRow(name, { context_window: window, prices }, today, notes) {
  const now = Array.isArray(prices) ? priceOn(name, prices, today, notes) : prices;
  const base = (field) => price(typeof now[field] === 'object' ? now[field].base : now[field]);
  const tiers = Object.entries(now).flatMap(([field, value]) =>
    typeof value === 'object' ? value.tiers.map(({ start, price: usd }) => [field, start, usd]) : [],
  );
  const above = tiers.length === 0 ? undefined : Math.min(...tiers.map(([, start]) => start));
  const tier = (field) =>
    price(
      tiers.find(([name_, start]) => name_ === field && start === above)?.[2] ??
        (typeof now[field] === 'number' ? now[field] : undefined),
    );
  const searches = price(now.web_searches_kcount);
  return withoutGaps({
    context_window: window,
    input_usd: base('input_mtok'),
    cache_read_usd: base('cache_read_mtok'),
    cache_write_usd: base('cache_write_mtok'),
    cache_write_1h_usd: base('cache_write_1h_mtok'),
    output_usd: base('output_mtok'),
    web_search_usd: searches === undefined ? undefined : searches / 1000,
    long_prompt:
      above === undefined
        ? undefined
        : withoutGaps({
            above_tokens: above,
            input_usd: tier('input_mtok'),
            cache_read_usd: tier('cache_read_mtok'),
            cache_write_usd: tier('cache_write_mtok'),
            output_usd: tier('output_mtok'),
          }),
  });
}

/** The prices that hold on that day: the last ones that have begun. Those of certain hours are left out. */
function priceOn(name, list, today, notes) {
  const dated = list.filter(({ constraint }) => constraint === undefined || constraint.type === 'start_date');
  for (const { constraint } of dated)
    if (constraint?.start_date > today) notes.push(`later     ${name}: other prices from ${constraint.start_date}`);
  return (
    dated.filter(({ constraint }) => constraint === undefined || constraint.start_date <= today).at(-1)?.prices ?? {}
  );
}

const byText = (one, other) => (one < other ? -1 : 1);
const differ = (one, other) => Math.abs(one - other) > tolerance * Math.max(one, other);

/** The first source caps windows where a dearer tier begins; the window itself is what the second one says. */
function isCapped(pi, prices) {
  return pi.context_window === pi.long_prompt?.above_tokens && prices.context_window > pi.context_window;
}

/** The fields about which two sources say different things and nothing settles which is right. */
function disputes(one, other, settled) {
  return compared.filter(
    (field) =>
      one[field] !== undefined &&
      other[field] !== undefined &&
      settled[field] === undefined &&
      differ(one[field], other[field]),
  );
}

/** One row of all that is known: an override, the first source, the second, and what the table had. For what the first
 * source no longer has, the table stands in its place. */
function merged(name, before, pi, prices, override, notes) {
  const { reason, ...settled } = override ?? {};
  const first = pi ?? before ?? {};
  const window = isCapped(first, prices) ? { context_window: prices.context_window } : {};
  const row = { ...before, ...prices, ...pi, ...window, ...settled, retired: pi === undefined ? true : undefined };
  if (row.long_prompt !== undefined && row.long_prompt.above_tokens === prices.long_prompt?.above_tokens)
    row.long_prompt = { ...prices.long_prompt, ...row.long_prompt };
  for (const field of disputes(first, prices, { ...settled, ...window }))
    notes.push(`disputed  ${name}: ${field} ${first[field]} or ${prices[field]}`);
  if (reason !== undefined) notes.push(`override  ${name}: ${Object.keys(settled).join(', ')} (${reason})`);
  return Object.fromEntries(order.filter((field) => row[field] !== undefined).map((field) => [field, row[field]]));
}

function readOverrides(path) {
  const overrides = existsSync(path) ? readJson(path) : {};
  for (const [name, { reason, ...fields }] of Object.entries(overrides)) {
    const unknown = Object.keys(fields).find((field) => !order.includes(field) || field === 'retired');
    if (typeof reason !== 'string' || reason === '' || Object.keys(fields).length === 0)
      throw new Unusable(`${path}: \`${name}\` needs a reason and at least one field`);
    if (unknown !== undefined) throw new Unusable(`${path}: \`${name}\` sets \`${unknown}\`, which no row has`);
  }
  return overrides;
}

function change(name, before, after) {
  if (before === undefined) return `added     ${name}`;
  if (after.retired && !before.retired) return `gone      ${name}: no longer in the first source; kept as retired`;
  const fields = order.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  const text = (value) => JSON.stringify(value) ?? '-';
  const changes = fields.map((field) => `${field} ${text(before[field])} -> ${text(after[field])}`);
  return changes.length === 0 ? null : `changed   ${name}: ${changes.join(', ')}`;
}

/** One row a line, so that a change is a line of the diff. */
function tableText(sources, rows) {
  const lines = [...rows].map(([name, row]) => `  ${JSON.stringify(name)}: ${JSON.stringify(row)}`);
  return `{\n  "$sources": ${JSON.stringify(sources)},\n${lines.join(',\n')}\n}\n`;
}

async function main() {
  const given = options();
  const today = given.today ?? new Date().toISOString().slice(0, 10);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(today)) throw new Unusable(`--today: \`${today}\` is not a day`);
  const table = resolve(given.table ?? here('models.json'));
  const { $sources: _before, ...before } = readJson(table);
  const overrides = readOverrides(resolve(given.overrides ?? here('models-overrides.json')));
  const folder = mkdtempSync(join(tmpdir(), 'update-models-'));
  try {
    const notes = [];
    const [piPackage, pricesPackage] = ['pi', 'prices'].map((source) =>
      unpack(source, given[source], join(folder, source)),
    );
    const pi = readPi(piPackage.root, notes);
    const prices = await readPrices(pricesPackage.root, today, notes);
    if (pi.size === 0 || prices.size === 0) throw new Unusable('a source has no rows: its layout has changed');
    const names = [...new Set([...Object.keys(before), ...pi.keys()])].toSorted(byText);
    const rows = names.map((name) => [
      name,
      merged(name, before[name], pi.get(name), prices.get(name) ?? {}, overrides[name], notes),
    ]);
    for (const name of Object.keys(overrides))
      if (!names.includes(name)) notes.push(`override  ${name}: there is no such row`);
    notes.push(...rows.flatMap(([name, row]) => change(name, before[name], row) ?? []));
    for (const note of notes.toSorted(byText)) say(note);
    const disputed = notes.filter((note) => note.startsWith('disputed')).length;
    say(`${rows.length} rows, ${disputed} disputed`);
    if (disputed > 0) {
      say('Nothing was written. Settle each dispute with a row, and its reason, in config/models-overrides.json.');
      return 1;
    }
    const source = ({ name }, { version, date }) => ({
      package: name,
      version,
      ...(date === undefined ? {} : { date }),
    });
    writeFileSync(table, tableText([source(pinned.pi, piPackage), source(pinned.prices, pricesPackage)], rows));
    return 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`update-models: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

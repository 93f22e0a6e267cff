import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { expect, test } from 'vitest';
import { toolsets } from '../../src/app/features.js';
import { table } from '../../src/commands/table.js';
import { environmentLayer } from '../../src/kernel/config/layers.js';
import { knownKeys, resolveKey } from '../../src/kernel/config/settings-schema.js';
import { foreignCommands, foreignFlags } from '../../src/kernel/console/foreign-command-line.js';
import { namesOf, type OptionTable, rootOptions } from '../../src/kernel/console/options.js';
import { addVerbs, slashNames } from '../../src/kernel/console/registration.js';
import { hookEvents } from '../../src/kernel/core/hooks.js';
import { createKeyMap, keyRows } from '../../src/ui/editor/keybindings.js';
import { root } from './documented-lines.js';

const agents = {
  claude: 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'opencode',
  pi: 'pi',
  qwen: 'Qwen Code',
} as const;
const states = ['yes', 'partly', 'no', 'left out'] as const;

/** A feature of another agent. `with` names what a user types here for it:
 * - `--approval`, or `--approval never`: an option of `agent`, with one of its values
 * - `/rewind`: a slash command
 * - `agent sessions export --format`: a command, with one of its options
 * - `setting ui.theme`, `tool file_edit`, `set web`, `hook Stop`: a setting, a tool, a set of tools, an event of hooks
 * - `$AGENT_PLAIN`: a variable
 * - `docs/tools.md#read-a-result-envelope`: a section of the documentation, for what has no name of its own
 * - `Shift-Tab`: a key, if it is nothing of these */
interface FeatureRow {
  readonly feature: string;
  /** The agents that have it, in the order of `agents`. Empty: only this program has it. */
  readonly of: readonly (keyof typeof agents)[];
  readonly here: (typeof states)[number];
  /** At least one name for `yes` and `partly`, none for the others. */
  readonly with: readonly string[];
  readonly note?: string;
}

interface Area {
  readonly area: string;
  readonly features: readonly FeatureRow[];
}

const areas = JSON.parse(readFileSync(join(root, 'config/features-of-others.json'), 'utf8')) as readonly Area[];
const rows = areas.flatMap(({ features }) => features);

const program = new Command('agent');
await addVerbs(program, table, {
  load: 'all',
  line: () => Promise.reject(new Error('not run')),
  finish: () => undefined,
});
const options: OptionTable = rootOptions;
const toolSchemas = JSON.parse(readFileSync(join(root, 'config/tool-schemas.json'), 'utf8')) as { tool: string }[];

/** Returns an error if `word` is not in `known`; null otherwise. */
function absent(what: string, word: string, known: readonly string[]): string | null {
  return known.includes(word) ? null : `there is no ${what} \`${word}\``;
}

function optionProblem(text: string): string | null {
  const [name = '', value] = text.split(' ');
  const option = Object.values(options).find(({ flags }) => namesOf(flags).names.includes(name));
  if (option === undefined) return `there is no option \`${name}\``;
  const values = /<(.*)>/.exec(option.flags)?.[1]?.split('|');
  return value === undefined ? null : absent(`value of ${name}`, value, values ?? []);
}

function commandProblem(text: string): string | null {
  let command = program;
  for (const word of text.split(' ').slice(1)) {
    if (word.startsWith('--')) {
      if (!command.options.some(({ long }) => long === word)) return `\`${text}\`: there is no option \`${word}\``;
      continue;
    }
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) return `\`${text}\`: there is no command \`${word}\``;
    command = next;
  }
  return null;
}

/** Returns the headings of a page by their anchor, as GitHub makes them. */
function headingsOf(page: string): ReadonlyMap<string, string> {
  const text = readFileSync(join(root, page), 'utf8').replace(/^```.*?^```/gms, '');
  const found = new Map<string, string>();
  for (const [, title = ''] of text.matchAll(/^#+ (.+)$/gm)) {
    const anchor = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    const same = [...found.keys()].filter((key) => key === anchor || key.startsWith(`${anchor}-`)).length;
    found.set(found.has(anchor) ? `${anchor}-${same}` : anchor, title);
  }
  return found;
}

function sectionTitle(name: string): string | null {
  const [page = '', anchor = ''] = name.split('#');
  return headingsOf(page).get(anchor) ?? null;
}

async function variableProblem(name: string): Promise<string | null> {
  const { notices } = await environmentLayer({ [name]: '1' });
  return name.startsWith('AGENT_') && notices.length === 0 ? null : `there is no variable \`${name}\``;
}

const keys = keyRows(createKeyMap(), { edits: true }).flatMap((row) => row.keys.split(', '));

/** Returns the reason that nothing of the program has this name; null: it exists. */
async function problemOf(name: string): Promise<string | null> {
  if (name.startsWith('--')) return optionProblem(name);
  if (name.startsWith('/'))
    return absent(
      'slash command',
      name,
      slashNames(table).map((one) => `/${one}`),
    );
  if (name.startsWith('agent ')) return commandProblem(name);
  if (name.startsWith('$')) return await variableProblem(name.slice(1));
  if (name.includes('.md#')) return sectionTitle(name) === null ? `there is no section \`${name}\`` : null;
  const [kind = '', word = ''] = name.split(' ');
  if (kind === 'setting') {
    const isKnown = resolveKey(word) !== null || knownKeys().some((key) => key.startsWith(`${word}.`));
    return isKnown ? null : `there is no setting \`${word}\``;
  }
  if (kind === 'tool')
    return absent(
      'tool',
      word,
      toolSchemas.map(({ tool }) => tool),
    );
  if (kind === 'set')
    return absent(
      'set of tools',
      word,
      toolsets.map((set) => set.name),
    );
  if (kind === 'hook') return absent('event of hooks', word, hookEvents);
  return absent('key', name, keys);
}

const existing = rows.filter(({ here }) => here === 'yes' || here === 'partly');

test.each(existing.map(({ feature, with: names }) => [feature, names.join(', '), names] as const))(
  '%s: %s',
  async (feature, _shown, names) => {
    expect(names, `"${feature}" names nothing to type`).not.toEqual([]);
    const problems: string[] = [];
    for (const name of names) {
      const problem = await problemOf(name);
      if (problem !== null) problems.push(`config/features-of-others.json, "${feature}": ${problem}`);
    }
    expect(problems).toEqual([]);
  },
);

test('what is not here names nothing to type, and every row says which agents have it', () => {
  const wrong = rows.filter(
    (row) =>
      !states.includes(row.here) ||
      (!existing.includes(row) && row.with.length > 0) ||
      row.of.join() !==
        Object.keys(agents)
          .filter((name) => row.of.some((one) => one === name))
          .join() ||
      row.note === '' ||
      /[.;]$/.test(row.note ?? ''),
  );
  expect(wrong).toEqual([]);
  const names = rows.map(({ feature }) => feature);
  expect(names.filter((name, index) => names.indexOf(name) < index)).toEqual([]);
});

test('a name that does not exist is a problem that names it', async () => {
  const absentNames = [
    '--no-such',
    '--approval sometimes',
    '/no-such',
    'agent no-such',
    'agent sessions no-such',
    'agent sessions list --no-such',
    '$AGENT_NO_SUCH',
    '$HOME',
    'docs/tools.md#no-such',
    'setting no.such',
    'tool no_such',
    'set no-such',
    'hook NoSuch',
    'Ctrl-Alt-F9',
  ];
  const problems = await Promise.all(absentNames.map(problemOf));
  const word = (name: string): string => name.split(' ').at(-1)?.replace('$', '') ?? '';
  expect(problems.map((problem, index) => problem?.includes(word(absentNames[index] ?? '')))).toEqual(
    absentNames.map(() => true),
  );
});

/** Options and commands of ours and of the other programs that work here. */
const typed = [
  ...Object.values(options).flatMap(({ flags }) => namesOf(flags).names),
  ...foreignFlags.flatMap(({ flags }) => namesOf(flags).names),
  ...program.commands.map((command) => `agent ${command.name()}`),
  ...foreignCommands.map(({ usage }) => `agent ${usage.split(' ')[0] ?? ''}`),
  ...slashNames(table).map((name) => `/${name}`),
];

test('the notes name only options and commands that work', () => {
  const unknown = rows.flatMap(({ feature, note = '' }) =>
    [...note.matchAll(/`([^`]+)`/g)].flatMap(([, code = '']) => {
      const [word = '', next = ''] = code.split(' ');
      if (word === 'agent' && (next.startsWith('-') || next === ''))
        return typed.includes(next) || next === '' ? [] : [`"${feature}": ${code}`];
      const name = word === 'agent' ? `agent ${next}` : word;
      return /^(?:agent |\/\w|--)/.test(name) && !typed.includes(name) ? [`"${feature}": ${code}`] : [];
    }),
  );
  expect(unknown).toEqual([]);
});

const marker = '<!-- Written by npm run features:page from here on. -->';

function shownName(name: string): string {
  if (name.includes('.md#')) {
    const path = name.startsWith('docs/') ? name.slice('docs/'.length) : `../${name}`;
    return `[${sectionTitle(name) ?? name}](${path})`;
  }
  const [kind = '', word = ''] = name.split(' ');
  const kinds: Readonly<Record<string, string>> = { setting: 'setting', tool: 'tool', set: 'tool set', hook: 'hook' };
  const what = kinds[kind];
  if (what !== undefined) return `${what} \`${word}\``;
  return /^(?:[-/$]|agent )/.test(name) ? `\`${name}\`` : name;
}

function hereText({ here, with: names, note }: FeatureRow): string {
  const state = here === 'yes' ? [] : [`*${here}*`];
  const shown = names.length === 0 ? [] : [names.map(shownName).join(', ')];
  const linked = note?.replace(/\bdocs\/([\w-]+\.md)\b/g, '[$1]($1)');
  return [...state, ...shown, ...(linked === undefined ? [] : [linked])].join(' · ');
}

function ofText({ of }: FeatureRow): string {
  return of.length === Object.keys(agents).length ? 'all six' : of.map((name) => agents[name]).join(', ');
}

function tableOf(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...lines.map(line)].join('\n');
}

function counts(): string {
  const count = (list: readonly FeatureRow[]): readonly string[] =>
    states.map((state) => String(list.filter(({ here }) => here === state).length));
  const lines = areas.map(({ area, features }) => {
    const anchor = area.toLowerCase().replaceAll(',', '').replaceAll(' ', '-');
    return [`[${area}](#${anchor})`, ...count(features)];
  });
  return tableOf(['area', ...states], [...lines, ['**all**', ...count(rows).map((sum) => `**${sum}**`)]]);
}

test('docs/coming-from-other-agents.md lists every feature of the data; npm run features:page writes it', async () => {
  const page = join(root, 'docs/coming-from-other-agents.md');
  const [intro = ''] = readFileSync(page, 'utf8').split(`${marker}\n`);
  const sections = areas.map(
    ({ area, features }) =>
      `## ${area}\n\n${tableOf(
        ['feature', 'here', 'also in'],
        features.map((row) => [row.feature, hereText(row), ofText(row)]),
      )}`,
  );
  const all = [`${rows.length} features:`, counts(), ...sections].join('\n\n');
  await expect(`${intro}${marker}\n\n${all}\n`).toMatchFileSnapshot(page);
});

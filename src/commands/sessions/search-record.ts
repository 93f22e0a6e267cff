import type { SearchHit } from '../../core/store.js';
import { spelledLine } from '../../core/text.js';
import { sanitize } from '../../terminal/sanitize.js';
import type { PickItem } from '../../ui/components/picker.js';
import { CliError, type CommandLine, exit, type LineForm, type Repl, type Verb } from '../command.js';
import { age, countOption, printListing } from '../line-output.js';

interface Options {
  readonly json?: boolean;
  readonly limit?: string;
  readonly here?: boolean;
}

const maxHits = 100;
/** Characters of a snippet before what was found. */
const before = 20;

const form: LineForm = {
  example: 'agent search migration error --limit 5',
  options: (command) =>
    command
      .option('--limit <n>', 'at most so many', '20')
      .option('--here', 'sessions of this directory only')
      .option('--json', 'one JSON array'),
  run: (line, words, options: Options) => search(line, words.join(' '), options),
};

/** `agent search <words>`, and `/search`, which goes on with the session of the chosen place. */
export const searchRecord: Verb = { line: form, slash: searchAndGo };

export const searchSessions: Verb = {
  line: { ...form, example: 'agent sessions search "exact phrase" begin*' },
};

/** Lists the places in the record that hold all words, newest first. */
async function search({ out, withStore }: CommandLine, text: string, options: Options): Promise<number> {
  const limit = countOption(options.limit, '--limit', 20);
  if (!/[\p{L}\p{N}]/u.test(text))
    throw new CliError(
      exit.usage,
      'there is no word to look for',
      'For example agent search migration error, "exact phrase" or begin*.',
    );
  return await withStore(async ({ store, settings }) => {
    const found = await store.search(text, limit + 1, options.here ? settings.cwd : undefined);
    const hits = found.slice(0, limit);
    const colors = out.isTerminal && (settings.env.NO_COLOR ?? '') === '';
    const lines = (): readonly string[] =>
      hits.length === 0
        ? [`Nothing holds ${text}.`]
        : [...hits.flatMap((hit) => hitLines(hit, colors)), 'agent -r <session> goes on with one.'];
    printListing(out, options.json, hits.map(asJson), lines, { colors });
    if (found.length > limit)
      out.error(`There are more than these ${limit}: --limit ${limit * 2} shows some of them.\n`);
    return exit.done;
  });
}

function asJson(hit: SearchHit): object {
  return {
    session_id: hit.sessionId,
    seq: hit.seq,
    kind: hit.kind,
    created_at: hit.createdAt,
    cwd: hit.cwd,
    title: hit.title,
    snippet: hit.snippet,
    matches: hit.matches,
  };
}

function hitLines(hit: SearchHit, colors: boolean): readonly string[] {
  const title = hit.title === null ? '' : `  ${spelledLine(hit.title)}`;
  const ago = `${age(Date.now() - hit.createdAt)} ago`;
  return [
    `${hit.sessionId}  #${hit.seq}  ${hit.kind}  ${ago}  ${spelledLine(hit.cwd)}${title}`,
    `    ${emphasized(hit, colors)}`,
  ];
}

/** Makes a snippet safe and the words that were found bold. */
function emphasized({ snippet, matches }: SearchHit, colors: boolean): string {
  if (!colors) return sanitize(snippet);
  let line = '';
  let at = 0;
  for (const [start, end] of matches) {
    if (start < at) continue;
    line += `${sanitize(snippet.slice(at, start))}\u001b[1m${sanitize(snippet.slice(start, end))}\u001b[22m`;
    at = end;
  }
  return line + sanitize(snippet.slice(at));
}

async function searchAndGo(argument: string, repl: Repl): Promise<void> {
  const { screen, store, settings } = repl;
  if (!/[\p{L}\p{N}]/u.test(argument)) {
    screen.notice('warn', 'Give a word to look for: /search migration error');
    return;
  }
  const hits = await store.search(argument, maxHits);
  if (hits.length === 0) {
    screen.notice('info', `Nothing holds ${argument.trim()}.`);
    return;
  }
  const items = hits.map((found) => item(found, settings.cwd));
  const hit = await screen.pick({ title: `Found ${argument.trim()}`, items, marked: foundWords(hits) });
  if (hit !== null) await goTo(hit, repl);
}

async function goTo(hit: SearchHit, { sessions, screen }: Repl): Promise<void> {
  if (hit.sessionId === sessions.current().session.id) {
    screen.notice('info', `That is this session, event ${hit.seq}: ${hit.snippet}`);
    return;
  }
  screen.attach(await sessions.open({ continueNewest: false, resume: hit.sessionId, fork: false }));
}

function item(hit: SearchHit, cwd: string): PickItem<SearchHit> {
  const detail = [
    `${age(Date.now() - hit.createdAt)} ago`,
    hit.kind,
    `${hit.sessionId.slice(0, 13)} #${hit.seq}`,
    hit.title ?? '',
    hit.cwd === cwd ? '' : hit.cwd,
  ];
  return { label: aroundHit(hit), detail: detail.filter((part) => part !== '').join(' · '), value: hit };
}

/** Cuts a snippet to begin shortly before the first word that was found: only the start of a long one is seen. */
function aroundHit({ snippet, matches }: SearchHit): string {
  const at = matches[0]?.[0] ?? 0;
  if (at <= before) return snippet;
  const from = snippet.indexOf(' ', at - before) + 1;
  return `…${snippet.slice(from > 0 && from <= at ? from : at)}`;
}

/** Returns the words as they stand in the snippets: a search finds other forms of a word, too. */
function foundWords(hits: readonly SearchHit[]): readonly string[] {
  return [
    ...new Set(
      hits.flatMap(({ snippet, matches }) => matches.map(([start, end]) => snippet.slice(start, end).toLowerCase())),
    ),
  ];
}

import { addAll } from '../kernel/core/lists.js';
import type { Event } from '../kernel/core/event.js';
import {
  filterList,
  noFilters,
  parseSearchLine,
  type SearchFilters,
  type SearchLine,
  searchedKinds,
} from '../kernel/core/files/search-filters.js';
import type { SearchHit, Store } from '../kernel/core/store.js';
import { didYouMean, spelledLine } from '../kernel/core/text.js';
import { provided } from '../app/features.js';
import schemas from '../../config/tool-schemas.json' with { type: 'json' };
import { otherPrograms } from '../kernel/console/other-programs-port.js';
import { sanitize } from '../kernel/core/sanitize.js';
import type { Later, PickItem, Picking } from '../kernel/console/slash-command.js';
import { eventText } from '../ui/event-text.js';
import {
  CliError,
  type CommandLine,
  exit,
  type CliCommand,
  type CommandStore,
  type Repl,
  type CommandHandler,
} from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { age, asksTeam, countOption, localDay, printListing, progressOn } from '../kernel/console/line-output.js';
import { openSharedRecord, scopeOf } from '../kernel/console/shared-record-port.js';
import { goToSession } from '../kernel/console/stored-session.js';

interface Options {
  readonly json?: boolean;
  readonly limit?: string;
  readonly here?: boolean;
  readonly team?: boolean;
  readonly person?: string;
  readonly since?: string;
  readonly complete?: boolean;
}

const maxHits = 100;
/** Characters of a snippet before what was found. */
const before = 20;

const form: CliCommand = {
  example: 'agent search migration error --limit 5',
  options: (command) =>
    command
      .option('--limit <n>', 'at most so many', '20')
      .option('--here', 'sessions of this directory only')
      .option('--team', 'in the database of `store.url`: sessions of everybody that you may read')
      .option('--person <role>', 'the same, of this person')
      .option(
        '--since <time>',
        'with --team: in sessions that began since then; 90d, or 90d before after: or before:, unless you say',
      )
      .option('--complete', 'first index what a search does not cover yet, after an upgrade or a large import')
      .option('--json', 'one JSON array'),
  run: (line, words, options: Options) => search(line, words.join(' '), options),
};

/** `agent search <words>`, and `/search`, which resumes the session of the selected hit. */
export const searchRecord: CommandHandler = { line: form, slash: searchAndGo };

export const searchSessions: CommandHandler = {
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
  if (options.since !== undefined && !asksTeam(options))
    throw new CliError(exit.usage, '--since is for --team', 'Add --team, or leave it out.');
  return await withStore(async (opened) => {
    const { store, records, settings } = opened;
    if (options.complete) await records.completeIndex?.(progressOn(out, 'Indexing the record'));
    const asked = parseRequest(options.here ? `project:here ${text}` : text, settings.cwd);
    const find = asksTeam(options) ? teamHits(opened, options, out.error) : ownHits(store);
    const found = await find(asked, limit + 1);
    const problem = found.length === 0 ? await unknownValue(asked, find, store) : null;
    if (problem !== null) throw usage(problem);
    const hits = found.slice(0, limit);
    const colors = out.isTerminal && (settings.env.NO_COLOR ?? '') === '';
    const lines = (): readonly string[] =>
      hits.length === 0
        ? [`Nothing contains ${text}.`]
        : [...hits.flatMap((hit) => hitLines(hit, colors)), 'agent -r <session> resumes one.'];
    printListing(out, options.json, hits.map(asJson), lines, { colors });
    if (found.length > limit)
      out.error(`There are more than these ${limit}: --limit ${limit * 2} shows some of them.\n`);
    const gap = asksTeam(options) ? null : await gapText(store);
    if (gap !== null) out.error(`${gap} --complete indexes the rest first.\n`);
    return exit.done;
  });
}

/** Says that a search did not cover all events; null where it did. */
async function gapText(store: Pick<Store, 'searchCoverage'>): Promise<string | null> {
  const share = await store.searchCoverage();
  if (share === 1) return null;
  const covered = share < 0.01 ? 'less than 1' : String(Math.floor(share * 100));
  return (
    `The search covers the newest events of the record, ${covered} %; ` +
    'the rest is indexed in the background while sessions are open.'
  );
}

/** Sessions that began longer before now, or before the day of a filter, are
 * looked at when that is asked for: a team has many. */
const teamDays = 90;

function teamSince({ after, before }: SearchFilters): number {
  return Math.max(0, Math.min(Date.now(), after ?? before ?? Infinity) - teamDays * 86_400_000);
}

type Asked = Extract<SearchLine, { readonly ok: true }>;

/** A place to search: it gives the newest hits first. */
type HitSource = (asked: Asked, limit: number) => Promise<readonly SearchHit[]>;

function ownHits(store: Pick<Store, 'search'>): HitSource {
  return ({ words, filters }, limit) => store.search(words, limit, undefined, filters);
}

function teamHits(opened: CommandStore, options: Options, printError: (text: string) => void): HitSource {
  return async ({ words, filters }, limit) => {
    const { settings } = opened;
    const scope = { since: teamSince(filters), ...scopeOf(options, settings) };
    const record = await openSharedRecord(provided);
    return await record.search(settings, { words, limit, scope, filters }, (count) => {
      printError(`${unreadableEvents(count)}\n`);
    });
  };
}

function unreadableEvents(count: number): string {
  return `${count} ${count === 1 ? 'event was' : 'events were'} left out, because the stored JSON is broken.`;
}

/** Throws a `CliError` for a filter that there is not. */
function parseRequest(text: string, cwd: string): Asked {
  const line = parseSearchLine(text, cwd, provided.find(otherPrograms)?.names ?? []);
  if (!line.ok) throw usage(line.problem);
  return line;
}

function usage(problem: string): CliError {
  return new CliError(exit.usage, problem, 'docs/record.md has examples.');
}

/** Says which filter of a search without hits has a value that the record does not know: a session, or a tool that is
 * neither built in nor recorded. Null: each value is known. */
async function unknownValue({ filters }: Asked, find: HitSource, store: Pick<Store, 'find'>): Promise<string | null> {
  const isRecorded = async (only: Partial<SearchFilters>): Promise<boolean> =>
    (await find({ ok: true, words: '', filters: { ...noFilters, ...only } }, 1)).length > 0;
  const { session, tools } = filters;
  if (session !== null && !(await isRecorded({ session }))) {
    const match = await store.find(session);
    const nearest = match.found === 'none' ? match.nearest.map((name) => ` \`${name}\``) : [];
    const meant = nearest.length === 0 ? '' : ` Did you mean${nearest.join(' or')}?`;
    return `session:${session}: no session has this id or title.${meant} agent sessions list shows them.`;
  }
  const builtIn = tools.length === 0 ? [] : builtInTools();
  for (const tool of tools.filter((name) => !builtIn.some((known) => globFits(name, known)))) {
    if (await isRecorded({ tools: [tool] })) continue;
    const meant = didYouMean(tool, builtIn);
    return `tool:${tool}: no tool of this name is built in or recorded.${meant === '' ? '' : ` ${meant}`} Built in are ${builtIn.join(', ')}.`;
  }
  return null;
}

function builtInTools(): readonly string[] {
  return [...new Set(schemas.map(({ tool }) => tool))];
}

/** Matches a name of a tool, whose last character may be `*`. */
function globFits(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function asJson(hit: SearchHit): object {
  return {
    ...(hit.owner === undefined ? {} : { owner: hit.owner }),
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
  const owner = hit.owner === undefined ? '' : `${spelledLine(hit.owner)}  `;
  return [
    `${hit.sessionId}  #${hit.seq}  ${hit.kind}  ${ago}  ${owner}${spelledLine(hit.cwd)}${title}`,
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
  const asked = askedFor(argument, repl);
  if (asked === null) return;
  const own = await ownHits(store)(asked, maxHits);
  const gap = await gapText(store);
  if (gap !== null) screen.notice('info', gap);
  let team = settings.config.store.url === null ? null : laterHits(asked, own, repl);
  if (own.length === 0 && team === null) {
    await noticeNothing(argument, asked, repl);
    return;
  }
  let items = own.map((found) => item(found, settings));
  void team?.found.then((later) => {
    [items, team] = [[...items, ...later.items], null];
  });
  let current: SearchHit | undefined;
  for (;;) {
    const marked = foundWords(items.map(({ value }) => value));
    const title = `Found ${argument.trim()}`;
    const hit = await screen.pick({
      title,
      items,
      marked,
      ...(team ? { more: team } : {}),
      ...(current ? { current } : {}),
    });
    if (hit === null || (await lookAt(hit, foundWords([hit]), repl))) return;
    current = hit;
  }
}

async function noticeNothing(argument: string, asked: Asked, { screen, store }: Repl): Promise<void> {
  const problem = await unknownValue(asked, ownHits(store), store);
  screen.notice(problem === null ? 'info' : 'warn', problem ?? `Nothing contains ${argument.trim()}.`);
}

/** Null: it is said how to ask. */
function askedFor(argument: string, { screen, settings }: Repl): Asked | null {
  const asked = parseSearchLine(argument, settings.cwd, provided.find(otherPrograms)?.names ?? []);
  if (asked.ok && /[\p{L}\p{N}]/u.test(argument)) return asked;
  const how = `Give words to look for, with or without filters: /search migration error tool:bash\n${filterList}`;
  screen.notice('warn', asked.ok ? how : asked.problem);
  return null;
}

/** The hits in the sessions of the team, for which nothing waits. Never rejects. */
function laterHits(asked: Asked, own: readonly SearchHit[], repl: Repl): NonNullable<Picking<SearchHit>['more']> {
  const known = new Set(own.map(placeOf));
  const { words, filters } = asked;
  const find = async (): Promise<Later<SearchHit>> => {
    const since = teamSince(filters);
    let unreadable = '';
    const record = await openSharedRecord(provided);
    const query = { words, limit: maxHits, scope: { since }, filters };
    const all = await record.search(repl.settings, query, (number) => {
      unreadable = ` ${unreadableEvents(number)}`;
    });
    const hits = all.filter((hit) => !known.has(placeOf(hit)));
    const count = hits.length === 0 ? 'Nothing more' : `${hits.length} more`;
    const items = hits.map((hit) => item(hit, repl.settings));
    const said = `${count} from the team, in sessions started since ${localDay(since)}.${unreadable}`;
    return { items, marked: foundWords(hits), said };
  };
  const failed = (error: unknown): Later<SearchHit> => {
    const said = `The team was not asked: ${error instanceof Error ? error.message : String(error)}.`;
    return { items: [], marked: [], said };
  };
  return { said: 'The team is asked …', found: find().catch(failed) };
}

function placeOf({ sessionId, seq }: SearchHit): string {
  return `${sessionId} ${seq}`;
}

/** Shows the events around a hit; a key resumes or forks the session there. Returns false when the user returns to the
 * list. */
async function lookAt(hit: SearchHit, marked: readonly string[], repl: Repl): Promise<boolean> {
  const { screen, sessions } = repl;
  const { lines, at } = around(await eventsOf(hit, repl), hit.seq);
  const name = `${hit.sessionId.slice(0, 13)} ${hit.title ?? ''}`.trimEnd();
  const isOpen = hit.sessionId === sessions.current().session.id;
  const keys = {
    enter: isOpen ? 'leaves' : 'resumes',
    f: 'forks here',
  };
  const key = await screen.page(`${name}, event ${hit.seq}`, lines.join('\n'), {
    at,
    marked,
    keys,
    prose: true,
  });
  if (key === null) return false;
  if (key === 'enter' && isOpen) {
    screen.notice('info', `That is this session, event ${hit.seq}: ${hit.snippet}`);
    return true;
  }
  const fork = key === 'f';
  const request = { continueNewest: false, resume: hit.sessionId, fork };
  await goToSession({ screen, sessions }, fork ? { ...request, at: hit.seq } : request);
  const whose = hit.owner === undefined ? 'is written elsewhere' : `is one of ${hit.owner}`;
  if (!fork && sessions.current().session.id !== hit.sessionId)
    screen.notice('info', `Session ${hit.sessionId} ${whose}; this is a copy of it.`);
  return true;
}

/** From the server where the event is not here. */
async function eventsOf(hit: SearchHit, { store, settings }: Repl): Promise<readonly Event[]> {
  const here = await store.load(hit.sessionId);
  if (hit.owner === undefined || here.some(({ seq }) => seq === hit.seq)) return here;
  return await (await openSharedRecord(provided)).load(settings, hit.sessionId);
}

/** The number of events before and after a hit that are shown. */
const mostAround = 100;

/** The events around one as lines, and at which of them it begins. */
function around(events: readonly Event[], seq: number): { readonly lines: readonly string[]; readonly at: number } {
  const index = events.findIndex((event) => event.seq === seq);
  const lines: string[] = [];
  let at = 0;
  for (const event of events.slice(Math.max(0, index - mostAround), index + mostAround)) {
    if (!searchedKinds.has(event.kind)) continue;
    if (event.seq === seq) at = lines.length;
    lines.push(`${event.seq === seq ? '▸ ' : ''}#${event.seq} ${event.kind}`);
    addAll(lines, eventText(event).split('\n'));
    lines.push('');
  }
  return { lines, at };
}

/** With whose it is, where there is a team. */
function item(hit: SearchHit, { cwd, config }: Settings): PickItem<SearchHit> {
  const detail = [
    hit.owner ?? (config.store.url === null ? '' : 'yours'),
    `${age(Date.now() - hit.createdAt)} ago`,
    hit.kind,
    `${hit.sessionId.slice(0, 13)} #${hit.seq}`,
    hit.title ?? '',
    hit.cwd === cwd ? '' : hit.cwd,
  ];
  return { label: aroundHit(hit), detail: detail.filter((part) => part !== '').join(' · '), value: hit };
}

/** Cuts a snippet to begin shortly before the first word that was found: only
 * the start of a long one is seen. */
function aroundHit({ snippet, matches }: SearchHit): string {
  const at = matches[0]?.[0] ?? 0;
  if (at <= before) return snippet;
  const from = snippet.indexOf(' ', at - before) + 1;
  return `…${snippet.slice(from > 0 && from <= at ? from : at)}`;
}

/** Returns the words as they stand in the snippets: a search finds other forms
 * of a word, too. */
function foundWords(hits: readonly SearchHit[]): readonly string[] {
  return [
    ...new Set(
      hits.flatMap(({ snippet, matches }) => matches.map(([start, end]) => snippet.slice(start, end).toLowerCase())),
    ),
  ];
}

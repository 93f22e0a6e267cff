import type { Workbench } from '../../cli/session/assemble.js';
import type { RootOptions } from '../../cli/options.js';
import { age, outputIsTerminal, printError, printListing } from '../../cli/print.js';
import type { SessionDesk } from '../../cli/repl/current-session.js';
import type { SearchHit } from '../../core/store.js';
import { spelledLine } from '../../core/text.js';
import type { Command, CommandContext } from '../../ui/command.js';
import type { PickItem } from '../../ui/components/picker.js';
import { sanitize } from '../../terminal/sanitize.js';
import { CliError, exit } from '../cli-error.js';
import { countOption, withStore } from '../record/record-opening.js';

type Options = RootOptions & { readonly json?: boolean; readonly limit?: string; readonly here?: boolean };

/** `agent search <words>`: places in the record that hold all words, newest first. */
export async function searchRecord(words: readonly string[], options: Options): Promise<number> {
  const limit = countOption(options.limit, '--limit', 20);
  const text = words.join(' ');
  if (!/[\p{L}\p{N}]/u.test(text))
    throw new CliError(
      exit.usage,
      'there is no word to look for',
      'For example agent search migration error, "exact phrase" or begin*.',
    );
  return await withStore(options, async (store, setup) => {
    const found = await store.search(text, limit + 1, options.here ? setup.cwd : undefined);
    const hits = found.slice(0, limit);
    const colors = outputIsTerminal() && (setup.env.NO_COLOR ?? '') === '';
    printListing(
      options.json,
      hits.map((hit) => ({
        session_id: hit.sessionId,
        seq: hit.seq,
        kind: hit.kind,
        created_at: hit.createdAt,
        cwd: hit.cwd,
        title: hit.title,
        snippet: hit.snippet,
        matches: hit.matches,
      })),
      () =>
        hits.length === 0
          ? [`Nothing holds ${text}.`]
          : [...hits.flatMap((hit) => hitLines(hit, colors)), 'agent -r <session> goes on with one.'],
      { colors },
    );
    if (found.length > limit)
      printError(`There are more than these ${limit}: --limit ${limit * 2} shows some of them.\n`);
    return exit.done;
  });
}

function hitLines(hit: SearchHit, colors: boolean): readonly string[] {
  const title = hit.title === null ? '' : `  ${spelledLine(hit.title)}`;
  return [
    `${hit.sessionId}  #${hit.seq}  ${hit.kind}  ${age(Date.now() - hit.createdAt)} ago  ${spelledLine(hit.cwd)}${title}`,
    `    ${emphasized(hit, colors)}`,
  ];
}

/** The snippet made safe, with the words found in bold. */
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

const maxHits = 100;
/** Characters of a snippet before what was found. */
const before = 20;

/** `/search`: words in all sessions; the chosen place's session is gone on with. */
export function searchCommand(bench: Workbench, desk: SessionDesk): Command {
  return {
    name: 'search',
    description: 'find words in all sessions and go on there',
    argument: '<words>',
    run: async (argument, context) => {
      if (!/[\p{L}\p{N}]/u.test(argument)) {
        context.notice('warn', 'Give a word to look for: /search migration error');
        return;
      }
      const hits = await bench.store.search(argument, maxHits);
      if (hits.length === 0) {
        context.notice('info', `Nothing holds ${argument.trim()}.`);
        return;
      }
      const items = hits.map((found) => item(found, bench.setup.cwd));
      const hit = await context.pick({ title: `Found ${argument.trim()}`, items, marked: foundWords(hits) });
      if (hit !== null) await goTo(hit, desk, context);
    },
  };
}

async function goTo(hit: SearchHit, desk: SessionDesk, context: CommandContext): Promise<void> {
  if (hit.sessionId === desk.current().session.id) {
    context.notice('info', `That is this session, event ${hit.seq}: ${hit.snippet}`);
    return;
  }
  context.attach(await desk.open({ continueNewest: false, resume: hit.sessionId, fork: false }));
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

/** The snippet from a little before the first word that was found: that is what is seen of a long one. */
function aroundHit({ snippet, matches }: SearchHit): string {
  const at = matches[0]?.[0] ?? 0;
  if (at <= before) return snippet;
  const from = snippet.indexOf(' ', at - before) + 1;
  return `…${snippet.slice(from > 0 && from <= at ? from : at)}`;
}

/** As they stand there: a search finds other forms of a word, too. */
function foundWords(hits: readonly SearchHit[]): readonly string[] {
  return [
    ...new Set(
      hits.flatMap(({ snippet, matches }) => matches.map(([start, end]) => snippet.slice(start, end).toLowerCase())),
    ),
  ];
}

import type { SearchHit } from '../../core/store.js';
import { spelledLine } from '../../core/text.js';
import { sanitize } from '../../ui/sanitize.js';
import { CliError, exit } from '../cli-error.js';
import { age, outputIsTerminal, printError, printListing } from '../print.js';
import type { RootOptions } from '../options.js';
import { countOption, withStore } from './record-opening.js';

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

import type { SearchHit } from '../../core/store.js';
import type { Command, CommandContext } from '../../ui/command.js';
import type { PickItem } from '../../ui/panels/picker.js';
import { age } from '../print.js';
import type { SessionDesk } from './session-desk.js';
import type { Workbench } from '../open/workbench.js';

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

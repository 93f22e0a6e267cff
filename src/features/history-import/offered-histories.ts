import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { HistoryPlace, HistoryReader } from './neutral-turns.js';
import { programs } from './program-tables.js';
import { opencodeOpener } from './opencode-rows.js';

/** Null: the program is not known. */
export async function readerOf(name: string): Promise<HistoryReader | null> {
  const load = Object.hasOwn(programs, name) ? programs[name] : undefined;
  const opencodeRows = () => opencodeOpener();
  return (await load?.({ opencodeRows })) ?? null;
}

export interface OfferedHistories {
  /** `412 conversations of Claude Code, 3 of Codex`. */
  readonly counts: string;
  /** The command that takes them over. */
  readonly command: string;
}

/** Counts the conversations of other programs, as far as can be without reading them; `at least` where the time is
 * up. Null: there are none. */
export async function offeredHistories(place: HistoryPlace, maxMs: number): Promise<OfferedHistories | null> {
  const end = performance.now() + maxMs;
  const found: { name: string; title: string; count: number }[] = [];
  for (const name of Object.keys(programs).filter((one) => hasHistories(one, place))) {
    const reader = await readerOf(name);
    let count = 0;
    for (const _source of reader?.sources(place) ?? []) {
      count++;
      if (performance.now() > end) break;
    }
    if (reader && count > 0) found.push({ name, title: reader.title, count });
  }
  const [first, ...others] = found;
  if (!first) return null;
  const least = performance.now() > end ? 'at least ' : '';
  const noun = first.count === 1 ? 'conversation' : 'conversations';
  const more = others.map(({ title, count }) => `, ${count} of ${title}`).join('');
  return {
    counts: `${least}${first.count} ${noun} of ${first.title}${more}`,
    command: `agent sessions import --from ${others.length === 0 ? first.name : 'all'} --all`,
  };
}

/** Returns false for a program that has no histories here. The code for opencode's is loaded only where there are some. */
export function hasHistories(name: string, { env, home }: HistoryPlace): boolean {
  return name !== 'opencode' || existsSync(join(env['XDG_DATA_HOME'] ?? join(home, '.local/share'), 'opencode'));
}

import { headBytes } from '../../core/text.js';

const maxInputChars = 2_000_000;
const maxDiffBytes = 64 * 1024;
const maxEdits = 4000;

/** A unified diff with three lines of context, at most 64 KiB; undefined where there is none or it would take too long.
 * `before` is null for a file that is new. */
export async function unifiedDiff(path: string, before: string | null, after: string): Promise<string | undefined> {
  if (before === after || (before ?? '').length + after.length > maxInputChars) return undefined;
  const { createTwoFilesPatch } = await import('diff');
  const from = before === null ? '/dev/null' : `a/${path}`;
  const patch = createTwoFilesPatch(from, `b/${path}`, before ?? '', after, undefined, undefined, {
    context: 3,
    maxEditLength: before === null ? Number.POSITIVE_INFINITY : maxEdits,
    timeout: 500,
  });
  if (patch === undefined) return undefined;
  const text = patch.replace(/^=+\n/, '');
  const kept = headBytes(text, maxDiffBytes);
  return kept.length < text.length ? `${kept.slice(0, kept.lastIndexOf('\n') + 1)}…\n` : text;
}

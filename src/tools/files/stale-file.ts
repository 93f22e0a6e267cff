import type { ToolContext, ToolOutcome } from '../../core/tool.js';
import type { ContentMemory } from './content-memory.js';
import { unifiedDiff } from './file-diff.js';
import type { BeforeWrite } from './file-writer.js';
import { failed } from '../outcome.js';
import { decodeText, withoutCarriageReturns } from '../text-encoding.js';
import { shownPath } from '../tool-path.js';
import { headBytes } from '../../core/text.js';

const maxShownBytes = 4096;

/** Refuses a write to a file that is no longer as the session last saw it, saying what changed; null where the write
 * may go on. A file never seen may be written, and so may one that is gone: nothing is lost. */
export async function staleRefusal(
  before: BeforeWrite,
  requested: string,
  ctx: ToolContext,
  memory: ContentMemory,
): Promise<ToolOutcome | null> {
  const known = ctx.knownFiles.get(before.path);
  if (known === undefined || before.bytes === null || known === before.sha256) return null;
  const now = `It has ${before.bytes.length} bytes now, last modified ${before.stats?.mtime.toISOString() ?? 'at an unknown time'}.`;
  if (known === null)
    return failed(
      'execution_failed',
      `${shownPath(requested)} did not exist when it was last looked at, and does now. ${now} Read it first.`,
      { reason: 'changed' },
    );
  const old = memory.recall(known);
  const current = decodeText(before.bytes).text;
  const diff =
    old === null || current === null ? undefined : await unifiedDiff(requested, old, withoutCarriageReturns(current));
  const changed = diff === undefined ? {} : { changes: headBytes(diff, maxShownBytes) };
  return failed(
    'execution_failed',
    `${shownPath(requested)} has changed since it was last read. ${now} Read it again, then write.`,
    { reason: 'changed', ...changed },
  );
}

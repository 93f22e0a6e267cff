import type { Recorder } from '../kernel/agent/recorder.js';
import type { Clock } from '../kernel/core/runtime.js';
import { StoreError } from '../kernel/store/errors.js';
import { counted } from '../kernel/tools/define-tool.js';

/** The interval and the time limit of saving the last events again while another process has locked the database. */
const flushEveryMs = 100;
const longestFlushMs = 10_000;

export interface LastSaveHost {
  readonly clock: Clock;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Prints lines for the user. */
  readonly report: (text: string) => void;
}

/** Returns what saves the last events of these sessions, waits once for a database that another process has locked,
 * and says once what could not be saved. */
export function createLastSave(records: readonly Recorder[], host: LastSaveHost): () => Promise<number> {
  let said = false;
  return async () => {
    const unsaved = await flushAll(records, host, said ? 0 : longestFlushMs);
    if (unsaved.length > 0 && !said) host.report(unsavedText(unsaved));
    if (unsaved.length === 0 && said) host.report('agent: all events of the session are saved now\n');
    said = unsaved.length > 0;
    return unsaved.reduce((sum, record) => sum + record.unsaved().length, 0);
  };
}

/** Returns the sessions that have unsaved events all the same. */
async function flushAll(
  records: readonly Recorder[],
  { clock, wait }: LastSaveHost,
  patienceMs: number,
): Promise<readonly Recorder[]> {
  const deadline = clock() + patienceMs;
  for (;;) {
    for (const record of records) await record.flush();
    const unsaved = records.filter((record) => record.unsaved().length > 0);
    const isLocked = unsaved.some((record) => isBusy(record.problem()));
    if (!isLocked || clock() >= deadline) return unsaved;
    await wait(flushEveryMs);
  }
}

function isBusy(problem: Error | null): boolean {
  return problem instanceof StoreError && problem.code === 'busy';
}

/** `agent: 2 events of session … could not be saved (tool_result, usage): …` and what to do about it. */
function unsavedText(records: readonly Recorder[]): string {
  const lines = records.map((record) => {
    const events = record.unsaved();
    const kinds = [...new Set(events.map(({ kind }) => kind))].join(', ');
    const which = `${counted(events.length, 'event')} of session ${record.id}`;
    return `agent: ${which} could not be saved (${kinds}): ${record.problem()?.message ?? 'the store failed'}`;
  });
  const problem = records[0]?.problem();
  const hint = problem instanceof StoreError && problem.hint !== '' ? problem.hint : 'Check the disk and the database.';
  return `${lines.join('\n')}\n${hint}\n`;
}

import { withoutRepeats } from '../../agent/repeats.js';
import { knownEvent, type ChangeData, type Event } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { SessionRow, Store } from '../../core/store.js';
import type { SecretGuard } from '../../core/secrets/guard.js';
import type { BoundCall, Registry, ToolContext } from '../../core/tool.js';
import { exit } from '../cli-error.js';
import { shownOutput } from './export-entries.js';
import { columns, printListing } from '../print.js';
import { oneLine } from './record-opening.js';
import { changesOf, makeScratch, type Scratch } from './replay-scratch.js';
import { sessionGuard } from '../secrets.js';
import type { Setup } from '../setup.js';
import { openToolbox } from '../open/toolbox.js';

interface Checked {
  readonly seq: number;
  readonly call: string;
  readonly outcome: 'same' | 'differs' | 'skipped';
  readonly note: string;
}
interface Recorded {
  readonly seq: number;
  readonly name: string;
  readonly args: string;
  readonly summary: string;
  readonly output: string;
  readonly changes: readonly ChangeData[];
}

const repeatable: readonly string[] = ['glob', 'grep', 'file_read', 'file_write', 'file_edit'];

/** Runs the recorded file and search calls again, in order, in a scratch copy of the session's directory, and says
 * where results differ. Nothing outside the copy is written; commands are not run again, what they changed is put in
 * place where it was kept. Exit 0 where all are the same, else 1. */
export async function verifyReplay(
  setup: Setup,
  store: Store,
  row: SessionRow,
  events: readonly Event[],
  json: boolean,
): Promise<number> {
  const scratch = await makeScratch(row.cwd, events, store);
  try {
    const { registry } = await openToolbox(setup, repeatable.join(','));
    const again: Again = { registry, known: new Map(), secrets: sessionGuard(setup, events) };
    const checked: Checked[] = [];
    for (const call of recordedCalls(events)) checked.push(await check(again, call, scratch));
    report(checked, json);
    return checked.some((call) => call.outcome === 'differs') ? exit.failed : exit.done;
  } finally {
    scratch.remove();
  }
}

/** What the calls that are run again share. Secrets that are read again get the placeholders they have on record. */
interface Again {
  readonly registry: Registry;
  readonly known: Map<string, string | null>;
  readonly secrets: SecretGuard;
}

async function check({ registry, known, secrets }: Again, call: Recorded, scratch: Scratch): Promise<Checked> {
  const line = (outcome: Checked['outcome'], note: string): Checked => ({
    seq: call.seq,
    call: call.summary,
    outcome,
    note,
  });
  const args = repeatable.includes(call.name) ? scratch.args(call.args) : null;
  if (args === null) {
    await scratch.apply(call.changes);
    return line('skipped', repeatable.includes(call.name) ? 'outside the directory' : 'not run again');
  }
  const binding = registry.bind({ name: call.name, arguments: args });
  if (!binding.ok) return line(binding.error.code === errorCode(call.output) ? 'same' : 'differs', binding.error.error);
  const filled = secrets.restore(binding.bound.args, false);
  if (!filled.ok) {
    await scratch.apply(call.changes);
    return line('skipped', `${filled.marks.join(', ')} is not known`);
  }
  const { envelope, files } = await binding.bound.tool.run(filled.value, context(binding.bound, scratch.folder, known));
  for (const file of files ?? []) known.set(file.path, file.sha256);
  const now = JSON.stringify(secrets.envelope(envelope)).replaceAll(scratch.folder, scratch.root);
  const then = withoutRepeats(call.output);
  return now === then ? line('same', '') : line('differs', firstDifference(shownOutput(then), shownOutput(now)));
}

function context({ limits }: BoundCall, cwd: string, known: ReadonlyMap<string, string | null>): ToolContext {
  return {
    cwd,
    signal: AbortSignal.timeout(60_000),
    sandbox: 'off',
    limits,
    knownFiles: known,
    eventOutput: () => null,
    progress: () => undefined,
  };
}

function recordedCalls(events: readonly Event[]): readonly Recorded[] {
  const results = new Map<string, { readonly output: string; readonly changes: readonly ChangeData[] }>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'tool_result' && event.data.synthetic !== true)
      results.set(event.data.tool_call_id, { output: event.data.output, changes: changesOf(event) });
  }
  return events.flatMap((raw) => {
    const event = knownEvent(raw);
    const result = event?.kind === 'tool_call' ? results.get(event.data.id) : undefined;
    if (
      event?.kind !== 'tool_call' ||
      result === undefined ||
      /^(denied_by_user|permission_denied|cancelled|interrupted|limit_reached|rate_limited)$/.test(
        errorCode(result.output) ?? '',
      )
    )
      return [];
    return [
      {
        seq: event.seq,
        name: event.data.function.name,
        args: event.data.function.arguments,
        summary: event.content,
        ...result,
      },
    ];
  });
}

function errorCode(output: string): string | null {
  try {
    const envelope: unknown = JSON.parse(output);
    return isRecord(envelope) && typeof envelope.code === 'string' ? envelope.code : null;
  } catch {
    return null;
  }
}

function firstDifference(then: string, now: string): string {
  const [before, after] = [then.split('\n'), now.split('\n')];
  const at = before.findIndex((line, index) => line !== after[index]);
  const line = at < 0 ? before.length : at;
  return `line ${line + 1}: then ${JSON.stringify(before[line] ?? null)}, now ${JSON.stringify(after[line] ?? null)}`;
}

function report(checked: readonly Checked[], json: boolean): void {
  const count = (outcome: Checked['outcome']): number => checked.filter((call) => call.outcome === outcome).length;
  printListing(json, checked, () => [
    ...columns(
      checked
        .filter((call) => call.outcome !== 'same')
        .map((call) => [String(call.seq), call.outcome, oneLine(call.call, 80), oneLine(call.note, 200)]),
    ),
    `${count('same')} same, ${count('differs')} differ, ${count('skipped')} not run again.`,
  ]);
}

import { listOwners } from '../app/live/connect-owner.js';
import type { OwnerFacts } from '../app/live/messages.js';
import { countSockets } from '../app/live/socket-path.js';
import type { DoctorCheck } from '../kernel/console/command.js';
import { ok, warn } from '../kernel/console/doctor-check.js';
import type { StoreInspection } from '../kernel/store/inspect.js';
import type { LeaseFact } from '../kernel/store/lease.js';

const dayMs = 24 * 60 * 60 * 1_000;
const mostListed = 5;
/** A machine that is under load is not taken for a process that does not answer. */
const longestAnswerMs = 3_000;

/** Looks for sessions that run without a terminal and have done nothing for a day, for processes that do not answer,
 * for sockets that killed processes have left, which are removed, and for sessions that are marked as in use without
 * a process that answers. */
export async function checkRunning(
  files: { readonly data: string },
  store: Pick<StoreInspection, 'leases'>,
  nowMs = Date.now(),
): Promise<readonly DoctorCheck[]> {
  const before = countSockets(files);
  const { owners, silent } = await listOwners(files, longestAnswerMs);
  const removed = Math.max(0, before - countSockets(files));
  return [checkOwners(owners, silent, removed, nowMs), ...checkLeases(await store.leases(), owners)];
}

function checkOwners(owners: readonly OwnerFacts[], silent: number, removed: number, nowMs: number): DoctorCheck {
  const forgotten = owners.filter(
    ({ clients, state, since }) => clients === 0 && state === 'idle' && nowMs - Date.parse(since) > dayMs,
  );
  const detail = [
    `${owners.length} running`,
    ...(removed > 0
      ? [`removed ${removed === 1 ? 'the socket of a killed process' : `${removed} sockets of killed processes`}`]
      : []),
    ...(silent > 0 ? [silent === 1 ? '1 process does not answer' : `${silent} processes do not answer`] : []),
    ...forgotten.map(({ session_id: id, since }) => `${id} is idle without a terminal since ${since}`),
  ].join('; ');
  if (forgotten.length === 0 && silent === 0) return ok('running sessions', detail);
  const [stray] = forgotten;
  return warn(
    'running sessions',
    detail,
    stray
      ? `End what you no longer need: agent stop ${stray.session_id}`
      : 'agent ps shows the running sessions; end the process that does not answer.',
  );
}

/** Returns a check for each way in which sessions look in use although no process that answers runs them. The sessions
 * of agents belong to the process of their session. */
function checkLeases(leases: readonly LeaseFact[], owners: readonly OwnerFacts[]): readonly DoctorCheck[] {
  const answering = new Set(owners.map(({ pid }) => pid));
  const of = (state: LeaseFact['state']): readonly LeaseFact[] => leases.filter((lease) => lease.state === state);
  const ended = of('ended');
  const silent = of('running').filter(({ pid }) => !answering.has(pid));
  const elsewhere = of('unknown');
  return [
    ...(ended.length === 0
      ? []
      : [
          ok(
            'ended processes',
            `${sessionNames(ended)}: marked as in use by a process that has ended. agent -r ID takes the session over.`,
          ),
        ]),
    ...silent
      .slice(0, mostListed)
      .map(({ sessionId: id, pid }) =>
        warn(
          'sessions in use',
          `${id} is in use by process ${pid}, which does not answer`,
          `agent stop ${id} ends that process; then agent -r ${id} continues the session.`,
        ),
      ),
    ...elsewhere
      .slice(0, mostListed)
      .map(({ sessionId: id, pid, host, heldUntilMs }) =>
        warn(
          'sessions in use',
          `${id} is in use by process ${pid} on ${host}, another machine or container`,
          `If that process has ended, agent -r ${id} works from ${timeText(heldUntilMs)} on, and agent -r ${id} --fork at once.`,
        ),
      ),
  ];
}

function sessionNames(leases: readonly LeaseFact[]): string {
  const ids = leases.slice(0, mostListed).map(({ sessionId }) => sessionId);
  const more = leases.length - ids.length;
  return `${ids.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function timeText(ms: number | null): string {
  return new Date(ms ?? 0).toISOString().replace(/\.\d+Z$/, 'Z');
}

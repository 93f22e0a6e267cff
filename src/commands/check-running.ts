import { listOwners } from '../app/live/connect-owner.js';
import { countSockets } from '../app/live/socket-path.js';
import type { DoctorCheck } from '../kernel/console/command.js';
import { ok, warn } from '../kernel/console/doctor-check.js';

const dayMs = 24 * 60 * 60 * 1_000;

/** Looks for sessions that run without a terminal and have done nothing for a day, for processes that do not answer,
 * and for sockets that killed processes have left; those are removed. */
export async function checkRunning(files: { readonly data: string }, nowMs = Date.now()): Promise<DoctorCheck> {
  const before = countSockets(files);
  const { owners, silent } = await listOwners(files);
  const removed = Math.max(0, before - countSockets(files));
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

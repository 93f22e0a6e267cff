import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { connectOwner, listOwners, type OwnerClient } from '../app/live/connect-owner.js';
import type { Done, OwnerFacts } from '../app/live/messages.js';
import { CliError, type CommandHandler, type CommandLine, type CommandStore, exit } from '../kernel/console/command.js';
import { age, columns, printListing } from '../kernel/console/line-output.js';
import { findSession } from '../kernel/console/stored-session.js';
import type { KeptMessage } from '../kernel/core/session-port.js';
import { type LeaseHolder, ulid } from '../kernel/core/store.js';
import { isAlive } from '../kernel/store/lease.js';
import { formatCost } from '../ui/item-lines.js';

/** A session ends within this time, or its process gets a signal. */
const longestStopMs = 10_000;
const betweenLooksMs = 50;
const idDigits = 13;

/** `agent ps`: the sessions that run on this machine. */
export const listRunning: CommandHandler = {
  line: {
    example: 'agent ps --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, withStore }, _args, { json }) =>
      await withStore(async ({ settings }) => {
        const { owners, silent } = await listOwners(settings.config.files);
        const rows = owners.toSorted((one, other) => other.since.localeCompare(one.since));
        printListing(out, json === true, rows, () =>
          rows.length === 0 ? ['No session is running.'] : columns(rows.map(cells)),
        );
        if (silent > 0) out.error(`${silent === 1 ? '1 process does' : `${silent} processes do`} not answer.\n`);
        return exit.done;
      }),
  },
};

const stateTexts: Readonly<Record<OwnerFacts['state'], string>> = {
  working: 'working',
  waiting_for_approval: 'waiting for approval',
  waiting_for_limit: 'waiting for limit',
  idle: 'idle',
};

function cells({ session_id: id, state, since, model, cost_usd: costUsd, title, cwd }: OwnerFacts): readonly string[] {
  const sinceMs = Date.now() - Date.parse(since);
  return [id.slice(0, idDigits), stateTexts[state], age(sinceMs), model, formatCost(costUsd), title ?? '', cwd];
}

/** `agent stop`: ends the process that runs a session, in order. */
export const stopSession: CommandHandler = {
  line: {
    example: 'agent stop 01KB3',
    run: async ({ out, withStore }, [text = '']) =>
      await withStore(async (opened) => {
        const { id } = await findTarget(opened, text);
        const hasStopped = await stop(opened, id);
        out.print(hasStopped ? `Stopped session ${id}.\n` : `Session ${id} is not running.\n`);
        return exit.done;
      }),
  },
};

/** Returns false if no process ran the session. */
async function stop({ store, settings }: CommandStore, id: string): Promise<boolean> {
  const before = await holderOf(store, id);
  if (before && before.host !== hostname())
    throw new CliError(
      exit.failed,
      `session ${id} runs on ${before.host} (process ${before.pid})`,
      `Stop it there: agent stop ${id}`,
    );
  const client = await connectOwner(settings.config.files, id, { client: 'send', timeoutMs: longestStopMs }).catch(
    () => null,
  );
  const pid = client?.state.facts.pid ?? before?.pid;
  if (pid === undefined) return false;
  const hasEnded = async (): Promise<boolean> => !isAlive(pid) || (await holderOf(store, id))?.pid !== pid;
  if (client) await askToStop(client);
  if (!client || !(await within(longestStopMs, hasEnded))) terminate(pid);
  if (await within(longestStopMs, hasEnded)) return true;
  throw new CliError(exit.failed, `process ${pid} does not end session ${id}`, `End it with: kill -9 ${pid}`);
}

/** Throws a `CliError` where the owner refuses to end. */
async function askToStop(client: OwnerClient): Promise<void> {
  const done = await client.request({ type: 'stop' }, longestStopMs);
  client.close();
  if (done?.problem !== undefined)
    throw new CliError(exit.failed, done.problem, 'agent ps shows the process of the session.');
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It has ended meanwhile.
  }
}

async function within(ms: number, test: () => Promise<boolean>): Promise<boolean> {
  for (const endMs = performance.now() + ms; performance.now() < endMs; await wait(betweenLooksMs))
    if (await test()) return true;
  return false;
}

/** Returns the process that runs a session, or null. */
async function holderOf(store: CommandStore['store'], id: string): Promise<LeaseHolder | null> {
  const lease = await store.acquire(id);
  if (!lease.held) return lease.holder;
  await lease.release();
  return null;
}

/** A session that is stored, or that runs and has no event yet. */
interface Target {
  readonly id: string;
  readonly cwd: string;
}

async function findTarget({ store, settings }: CommandStore, text: string): Promise<Target> {
  try {
    return await findSession(store, text);
  } catch (error) {
    const { owners } = await listOwners(settings.config.files);
    const found = owners.filter(({ session_id: id, title }) => id.startsWith(text) || title === text);
    const [only] = found;
    if (found.length !== 1 || !only || text === '') throw error;
    return { id: only.session_id, cwd: only.cwd };
  }
}

interface SendOptions {
  readonly interrupt?: boolean;
  readonly run?: boolean;
}

/** `agent send`: a message into a session of any terminal, or of none. */
export const sendMessage: CommandHandler = {
  line: {
    example: 'agent send 01KB3 "use the staging database"',
    options: (command) =>
      command
        .option('--interrupt', 'interrupt the running turn, so that the message is next')
        .option('--run', 'start the session in the background if it is not running'),
    run: async (line, [session = '', ...words], options: SendOptions) => {
      const text = words.length === 1 && words[0] === '-' ? await readInput() : words.join(' ');
      if (text.trim() === '')
        throw new CliError(exit.usage, 'the message is empty', `Give a text, or - and the text on standard input.`);
      return await line.withStore((opened) => send(line, opened, { session, text, options }));
    },
  },
};

async function send(
  { out, doors }: CommandLine,
  opened: CommandStore,
  { session, text, options }: { readonly session: string; readonly text: string; readonly options: SendOptions },
): Promise<number> {
  const { store, settings } = opened;
  const target = await findTarget(opened, session);
  const message: KeptMessage = {
    id: ulid(Date.now(), randomBytes(16)),
    text: settings.guard.text(text),
    source: 'send',
    when: 'steer',
  };
  const offer = async (): Promise<Done | null> => {
    const client = await connectOwner(settings.config.files, target.id, { client: 'send' }).catch(() => null);
    const { id: ref, ...rest } = message;
    const interrupt = options.interrupt === true ? ({ interrupt: true } as const) : {};
    const done = await client?.request({ type: 'message', ref, ...rest, source: 'send', ...interrupt });
    client?.close();
    if (done?.problem !== undefined) throw new CliError(exit.failed, done.problem, 'Nothing was sent.');
    return done ?? null;
  };
  let done = await offer();
  if (done === null) {
    const isKept = await store.keepMessage(target.id, message);
    // A process may have opened the session meanwhile, before it could see the message.
    done = await offer();
    if (done === null && !isKept)
      throw new CliError(exit.failed, `session ${target.id} has ended before its first event`, 'Nothing was sent.');
  }
  const isDelivered = done !== null && done.kept !== true;
  if (isDelivered || options.run !== true) {
    out.print(isDelivered ? 'delivered\n' : 'kept\n');
    return exit.done;
  }
  const started = await doors.startDetached(target);
  out.print('problem' in started ? 'kept\n' : 'delivered\n');
  if ('problem' in started)
    throw new CliError(exit.failed, started.problem, 'The message waits for the next opening of the session.');
  return exit.done;
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8').trimEnd();
}

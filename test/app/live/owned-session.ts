import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openOwner } from '../../../src/app/live/open-owner.js';
import { socketFolders, socketPath } from '../../../src/app/live/socket-path.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { Schedule } from '../../../src/kernel/core/runtime.js';
import type { Question } from '../../../src/kernel/core/policy.js';
import type { AgentEvent, QueuedMessage } from '../../../src/kernel/core/session-port.js';
import { noTotals } from '../../../src/kernel/core/usage-totals.js';

/** Makes a folder that goes with the test. */
export function temporary(name = 'agent-live-'): string {
  const made = mkdtempSync(join(tmpdir(), name));
  onTestFinished(() => {
    rmSync(made, { recursive: true, force: true });
  });
  return made;
}

export const event = (seq: number, kind = 'user'): Event => ({ seq, kind, content: '', data: null, createdAt: 0 });
export const turnEnd: AgentEvent = {
  type: 'turn_ended',
  end: { status: 'completed', text: '', turns: 0, toolCalls: 0, denials: [] },
};

/** A session that runs in this process, and what was done to it. */
export async function owned(data = temporary(), schedule?: Schedule) {
  const events: Event[] = [event(1)];
  const listeners = new Set<(one: AgentEvent) => void>();
  const done: string[] = [];
  let queue: readonly QueuedMessage[] = [];
  let busy = true;
  const session = {
    id: 'one',
    cwd: '/work',
    ref: () => ({ provider: 'offline', api: 'offline', model: 'offline' }),
    busy: () => busy,
    recent: () => events,
    totals: () => noTotals,
    answer: (id: string, answer: unknown) => done.push(`${id} ${JSON.stringify(answer)}`),
    interrupt: () => done.push('interrupted'),
    enqueue: (message: QueuedMessage) => {
      queue = [...queue, message];
    },
    takeQueue: () => {
      const taken = queue;
      queue = [];
      return taken;
    },
    subscribe: (listener: (one: AgentEvent) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const files = { data };
  const logged: string[] = [];
  const parts = {
    settings: {
      config: { files },
      ephemeral: false,
      log: (entry: { readonly message: string }) => logged.push(entry.message),
      guard: { text: (text: string) => text.replace('hunter2', '[secret]') },
    },
    store: {
      session: () => Promise.resolve({ title: 'A title' }),
      keepMessage: () => Promise.resolve(true),
      keptMessages: () => Promise.resolve([]),
      dropMessage: () => Promise.resolve(),
    },
    row: { id: 'one', title: null },
    ...(schedule ? { schedule } : {}),
  };
  const owner = openOwner(session, parts);
  onTestFinished(() => {
    owner.close();
  });
  const emit = (one: AgentEvent): void => {
    if (one.type === 'event') events.push(one.event);
    if (one.type === 'turn_ended') busy = false;
    for (const listener of listeners) listener(one);
  };
  emit({ type: 'request_started' });
  const [folder = ''] = socketFolders(files);
  while (!existsSync(socketPath(folder, 'one'))) await new Promise((resolve) => setImmediate(resolve));
  /** Resolves once the front end was asked to end. */
  const stopped = (ask: () => unknown): Promise<void> =>
    new Promise((resolve) => {
      owner.serve({ stop: resolve });
      void ask();
    });
  return { owner, emit, files, folder, done, logged, queue: () => queue, state: { stopped } };
}

export const question = (command: string): Question =>
  ({
    callId: 'c1',
    call: { tool: { name: 'bash' }, args: { command }, callId: 'c1' },
    verdict: { risk: 'write', reasons: [], targets: [], rules: [] },
  }) as unknown as Question;

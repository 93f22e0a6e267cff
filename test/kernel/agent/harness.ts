import { createHash } from 'node:crypto';
import { createSession, type Session, type SessionParts } from '../../../src/kernel/agent/session.js';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';
import type { Policy } from '../../../src/kernel/core/policy.js';
import type { ModelChunk, ModelRequest, Provider } from '../../../src/kernel/core/provider.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import type { Schedule } from '../../../src/kernel/core/runtime.js';
import type { SessionLog } from '../../../src/kernel/core/store.js';
import type { Registry, Tool, ToolContext, ToolOutcome } from '../../../src/kernel/core/tool.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';

export const ref = { provider: 'scripted', api: 'openai-chat', model: 'm' } as const;
export const allowAll: Policy = {
  assess: () => Promise.resolve({ risk: 'mutating', decision: 'allow', reasons: [], sandbox: 'off' }),
};
export const askAlways: Policy = {
  assess: () => Promise.resolve({ risk: 'dangerous', decision: 'ask', reasons: ['it may hurt'], sandbox: 'off' }),
};

export function newRegistry(): Registry {
  return createRegistry({ maxOutputBytes: 1_048_576, now: () => 1 });
}

type Script = readonly (readonly ModelChunk[] | ((request: ModelRequest) => AsyncIterable<ModelChunk>))[];

/** A provider that plays one entry of the script per request; the last entry repeats. Requests are kept. */
export function scripted(script: Script): Provider & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async *stream(request) {
      const entry = script[Math.min(requests.length, script.length - 1)] ?? [];
      requests.push(request);
      yield* typeof entry === 'function' ? entry(request) : entry;
    },
  };
}

export const text = (value: string): ModelChunk => ({ type: 'text', text: value });
export const end = (stop: 'stop' | 'tool' | 'length' | 'refusal' = 'stop'): ModelChunk => ({ type: 'end', stop });
export const calls = (
  ...list: readonly (readonly [name: string, args: string, id?: string])[]
): readonly ModelChunk[] => [
  ...list.map(([name, args, id], index): ModelChunk => ({
    type: 'tool_call',
    call: { id: id ?? `c${index}_${args}`, name, arguments: args },
  })),
  end('tool'),
];

/** A tool `note(text)` that does what it is told and remembers it. */
export function noteTool(
  run?: (args: Readonly<Record<string, unknown>>, ctx: ToolContext) => Promise<ToolOutcome>,
): Tool & { readonly ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    name: 'note',
    description: 'writes a note',
    effect: 'write',
    toolset: { name: 'fs', on: true, about: '' },
    placeholders: 'plain',
    input_schema: {
      type: 'object',
      properties: { text: { type: 'string' } },
      required: ['text'],
      additionalProperties: false,
    },
    describe: (args) => `note(text=${JSON.stringify(args.text)})`,
    run:
      run ??
      ((args) => {
        ran.push(String(args.text));
        return Promise.resolve({ envelope: { output: `noted ${String(args.text)}` }, summary: 'noted' });
      }),
  };
}

/** A tool of the catalogue alone, which reads texts by lines. */
export const reader = {
  name: 'file_read',
  description: '',
  input_schema: { properties: { path: {}, offset: {} } },
};

export interface Rig {
  readonly session: Session;
  readonly store: SessionLog;
  readonly seen: AgentEvent[];
  readonly rows: () => Promise<readonly Event[]>;
}

/** Timers that a test runs out by hand. */
export function handTimers(): { readonly schedule: Schedule; readonly waiting: () => readonly number[]; run(): void } {
  const timers = new Map<() => void, number>();
  return {
    schedule: (callback, delayMs) => {
      timers.set(callback, delayMs);
      return () => {
        timers.delete(callback);
      };
    },
    waiting: () => [...timers.values()],
    run() {
      for (const callback of timers.keys()) {
        timers.delete(callback);
        callback();
      }
    },
  };
}

/** The options of a session, each by its own name. */
type RigOptions = Partial<
  SessionParts['record'] &
    SessionParts['models'] &
    SessionParts['host'] &
    Omit<SessionParts['tools'], 'registry'> &
    Pick<SessionParts, 'connect' | 'interactive' | 'limits' | 'secrets'>
> & {
  readonly provider: Provider;
  readonly tools?: readonly Tool[];
  readonly registry?: Registry;
};

export function rig(options: RigOptions): Rig {
  const { provider, capture, renewPrompt, secrets, limits, begin, notes, hooks } = options;
  const { contextWindow, price, budget, fallbacks, forRole, planning, ofAgent } = options;
  const store = options.store ?? openMemoryStore({ now: () => 1 });
  const registry = options.registry ?? newRegistry();
  for (const tool of options.tools ?? []) registry.register(tool);
  const opening: readonly EventDraft[] = [
    { kind: 'system', content: 'S', data: null },
    { kind: 'tools', content: '', data: { tools: [reader], settings: { model_output_size: 1000 } } },
  ];
  const row = { id: 's1', parentId: null, cwd: '/work', title: null, provider: 'scripted', model: 'm' };
  const session = createSession({
    record: {
      store,
      row: options.row ?? { ...row, createdAt: 1, updatedAt: 1 },
      restored: options.restored ?? [],
      opening: options.opening ?? opening,
      ...(begin ? { begin } : {}),
      ...(notes ? { notes } : {}),
    },
    tools: {
      registry,
      policy: options.policy ?? allowAll,
      ...(capture ? { capture } : {}),
      ...(renewPrompt ? { renewPrompt } : {}),
      ...(hooks ? { hooks } : {}),
    },
    models: {
      ...(contextWindow ? { contextWindow } : {}),
      ...(price ? { price } : {}),
      ...(budget ? { budget } : {}),
      ...(fallbacks ? { fallbacks } : {}),
      ...(forRole ? { forRole } : {}),
      ...(planning ? { planning } : {}),
      ...(ofAgent ? { ofAgent } : {}),
    },
    model: { provider, ref },
    connect: options.connect ?? (() => Promise.resolve(provider)),
    interactive: options.interactive ?? false,
    limits: limits ?? { maxToolTurns: 50, maxToolCalls: 100, loopLimit: 6, maxOutputBytes: 1_048_576 },
    host: {
      sha256: options.sha256 ?? ((value) => createHash('sha256').update(value).digest('hex')),
      now: options.now ?? (() => 1),
      schedule: options.schedule ?? (() => () => undefined),
      log: options.log ?? (() => undefined),
    },
    ...(secrets ? { secrets } : {}),
  });
  const seen: AgentEvent[] = [];
  session.subscribe((event) => {
    seen.push(event);
  });
  return { session, store, seen, rows: () => store.load('s1') };
}

/** Kinds in order, short enough to compare whole. */
export function kinds(events: readonly Event[]): string {
  return events.map((event) => event.kind).join(' ');
}

/** The envelopes of all results, in order. */
export function envelopes(events: readonly Event[]): readonly Record<string, unknown>[] {
  return events
    .filter((event) => event.kind === 'tool_result')
    .map((event) => JSON.parse((event.data as { output: string }).output) as Record<string, unknown>);
}

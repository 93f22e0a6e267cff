import type { Event, EventDraft } from '../../src/kernel/core/event.js';
import { type FormAnswer, isFormAnswer } from '../../src/kernel/core/form.js';
import type { PermissionAnswer, Question } from '../../src/kernel/core/policy.js';
import type { AgentEvent, QueuedMessage, SessionPort, TurnEnd } from '../../src/kernel/core/session-port.js';
import type { Tool } from '../../src/kernel/core/tool.js';
import { addToTotals, noTotals } from '../../src/kernel/core/usage-totals.js';

/** A session that does what the test says: a turn runs until `end` is called. */
export interface FakeSession extends SessionPort {
  emit(event: AgentEvent): void;
  append(draft: EventDraft): void;
  stream(text: string, chunk?: number): void;
  call(id: string, title: string, args?: string): void;
  start(id: string): void;
  result(
    id: string,
    summary: string,
    output: Readonly<Record<string, unknown>>,
    extra?: { readonly durationMs?: number; readonly diff?: string },
  ): void;
  end(status?: TurnEnd['status'], fault?: TurnEnd['fault']): Promise<void>;
  readonly submitted: string[];
  readonly answers: [string, PermissionAnswer][];
  readonly forms: [string, FormAnswer][];
  readonly interrupts: () => number;
}

/** Returns the arguments that a title like `bash(command="make")` names, as JSON. */
function argumentsIn(title: string): string {
  const found = [...title.matchAll(/(\w+)=("(?:[^"\\]|\\.)*"|[\w.-]+)/g)];
  return `{${found.map(([, name = '', value = '']) => `"${name}":${value}`).join(',')}}`;
}

export function createFakeSession(past: readonly Event[] = []): FakeSession {
  const events: Event[] = [...past];
  const listeners = new Set<(event: AgentEvent) => void>();
  const submitted: string[] = [];
  const answers: [string, PermissionAnswer][] = [];
  const forms: [string, FormAnswer][] = [];
  let queue: readonly QueuedMessage[] = [];
  let finish: ((end: TurnEnd) => void) | null = null;
  let interrupts = 0;
  const names = new Map<string, string>();
  const emit = (event: AgentEvent): void => {
    for (const listener of listeners) listener(event);
  };
  const append = (draft: EventDraft): void => {
    const event: Event = { ...draft, seq: events.length + 1, createdAt: 0 };
    events.push(event);
    emit({ type: 'event', event });
  };
  const setQueue = (next: readonly QueuedMessage[]): void => {
    queue = next;
    emit({ type: 'queue_changed', queue });
  };
  const session: FakeSession = {
    id: 's1',
    cwd: '/work',
    submitted,
    answers,
    forms,
    emit,
    append,
    ref: () => ({ provider: 'offline', api: 'offline', model: 'offline' }),
    submit: (text) => {
      submitted.push(text);
      emit({ type: 'turn_started' });
      append({ kind: 'user', content: text, data: null });
      return new Promise((resolve) => {
        finish = resolve;
      });
    },
    interrupt: () => {
      interrupts++;
      if (finish) void session.end('interrupted');
    },
    interrupts: () => interrupts,
    busy: () => finish !== null,
    enqueue: (message) => {
      setQueue([...queue, message]);
    },
    takeQueue: () => {
      const taken = queue;
      if (taken.length > 0) setQueue([]);
      return taken;
    },
    answer: (callId, answer) => {
      if (isFormAnswer(answer)) {
        forms.push([callId, answer]);
        emit({ type: 'form_closed', id: callId });
        return;
      }
      answers.push([callId, answer]);
      emit({ type: 'approval_resolved', callId, answer: answer.answer });
    },
    switchModel: async () => {
      /* the test has one model */
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    events: () => events,
    recent: () => events,
    totals: () => events.reduce(addToTotals, noTotals),
    stream: (text, chunk = 7) => {
      for (let at = 0; at < text.length; at += chunk) emit({ type: 'text_delta', text: text.slice(at, at + chunk) });
    },
    call: (id, title, args = argumentsIn(title)) => {
      names.set(id, title.split('(')[0] ?? '');
      append({
        kind: 'tool_call',
        content: title,
        data: {
          id,
          type: 'function',
          function: { name: title.split('(')[0] ?? '', arguments: args },
          response_id: 'r1',
        },
      });
    },
    start: (id) => {
      append({ kind: 'tool_started', content: null, data: { tool_call_id: id } });
    },
    result: (id, summary, output, extra = {}) => {
      append({
        kind: 'tool_result',
        content: summary,
        data: {
          tool_call_id: id,
          name: names.get(id) ?? 'tool',
          output: JSON.stringify(output),
          success: !('error' in output),
          duration_ms: extra.durationMs ?? 34,
          ...(extra.diff === undefined ? {} : { diff: extra.diff }),
        },
      });
    },
    end: async (status = 'completed', fault) => {
      const done = finish;
      finish = null;
      const end: TurnEnd = { status, text: '', turns: 0, toolCalls: 0, denials: [], ...(fault ? { fault } : {}) };
      emit({ type: 'turn_ended', end });
      done?.(end);
      await Promise.resolve();
      await Promise.resolve();
    },
  };
  return session;
}

export function assistant(content: string, interrupted = false): EventDraft {
  return {
    kind: 'assistant',
    content,
    data: {
      response_id: 'r1',
      provider: 'offline',
      api: 'offline',
      model: 'offline',
      stop: 'stop',
      ...(interrupted ? { interrupted: true as const } : {}),
    },
  };
}

export function question(
  callId: string,
  name: string,
  args: Readonly<Record<string, unknown>>,
  reasons: readonly string[] = [],
  targets: readonly string[] = [],
): Question {
  const tool: Tool = {
    name,
    description: '',
    input_schema: {},
    effect: 'execute',
    toolset: { name: 'exec', on: true, about: '' },
    describe: () => name,
    run: async () => ({ envelope: { output: '' }, summary: '' }),
  };
  return {
    callId,
    title: `${name}(…)`,
    argumentsText: JSON.stringify(args),
    call: { tool, args, limits: { timeoutMs: null, maxOutputBytes: 1 } },
    verdict: { risk: 'dangerous', decision: 'ask', reasons, sandbox: 'off', targets },
  };
}

import { isError, parseEnvelope } from '../kernel/core/envelope.js';
import { type Event, knownEvent } from '../kernel/core/event.js';
import { type ApprovalMode, approvalModes } from '../kernel/core/policy.js';
import { type AnsweredCall, lastTools } from '../kernel/core/projection.js';
import type { ModelChunk, Provider } from '../kernel/core/provider.js';
import { backgroundAgents } from '../kernel/console/background-agents-port.js';
import { CliError } from '../kernel/console/command.js';
import type { RootOptions } from '../kernel/console/options.js';
import type { Settings, UnattendedRun } from '../kernel/console/run-settings.js';
import type { UnattendedEnd, UnattendedRequest } from '../kernel/console/unattended.js';
import { createUsageMeter } from '../kernel/console/usage-meter.js';
import { createSubsetRegistry } from '../kernel/tools/registry.js';
import { createAgentSession, openRun, type Run } from './create-session.js';
import { keepMode } from './kept-mode.js';
import { readSettings } from './settings.js';

/** Runs a message in a session of its own, in its directory, without a user who could be asked. It is no freer than the
 * session that asked for it was then, and than `atLeast`, the approval mode of whoever starts it. Never rejects. */
export async function runUnattended(
  options: RootOptions,
  request: UnattendedRequest,
  atLeast?: ApprovalMode,
): Promise<UnattendedEnd> {
  try {
    const [settings, chosen] = await settingsFor(options, request, atLeast);
    const run = await openRun(settings, chosen);
    try {
      const maker = await eventsOfMaker(run, request.maker);
      await keepMode(run, maker, false);
      return await inSession(request.call ? run : withToolsOf(run, maker), request);
    } finally {
      await run.close();
    }
  } catch (error) {
    return {
      kind: 'not started',
      problem: error instanceof CliError ? `${error.message}. ${error.hint}` : String(error),
    };
  }
}

/** Returns the settings of the directory, with what the run may cost. A run that is one call gets its tool alone. */
async function settingsFor(
  options: RootOptions,
  { cwd, call, maxCostUsd }: UnattendedRequest,
  atLeast: ApprovalMode | undefined,
): Promise<readonly [Settings, RootOptions]> {
  const { config } = await readSettings({ ...options, cwd });
  const chosen: RootOptions = {
    ...options,
    cwd,
    ...(atLeast !== undefined && isStricter(atLeast, config.policy.approval) ? { approval: atLeast } : {}),
    ...(call === undefined ? {} : { tools: call.name }),
    ...(call === undefined || call.toldByModel
      ? { maxCost: String(Math.min(maxCostUsd, config.limits.maxCostUsd ?? Infinity)) }
      : { model: 'offline/offline' }),
  };
  return [await readSettings(chosen), chosen];
}

/** Returns the events of the session that asked for a run, up to that second: the store keeps no more of the time. */
async function eventsOfMaker({ store }: Run, maker: UnattendedRequest['maker']): Promise<readonly Event[]> {
  if (maker === null || (await store.session(maker.sessionId)) === null) return [];
  return (await store.load(maker.sessionId)).filter((event) => event.createdAt < maker.at + 1000);
}

/** Returns the run with no other tools than the session that asked for it had. A run that is one call keeps its
 * tool: the user allowed that very call. */
function withToolsOf(run: Run, maker: readonly Event[]): Run {
  const tools = lastTools(maker)?.tools;
  if (!tools) return run;
  const names = new Set(tools.map(({ name }) => name));
  const registry = createSubsetRegistry(run.toolbox.registry, {
    offers: (name) => names.has(name),
    reaches: () => true,
  });
  return { ...run, toolbox: { ...run.toolbox, registry } };
}

function isStricter(one: ApprovalMode, other: ApprovalMode): boolean {
  return approvalModes.indexOf(one) > approvalModes.indexOf(other);
}

async function inSession(run: Run, request: UnattendedRequest): Promise<UnattendedEnd> {
  const { call, signal, note } = request;
  const mission: UnattendedRun = {
    grants: request.grants,
    ...(call ? { answers: (model) => callFirst(call, call.toldByModel ? model : null) } : {}),
  };
  const choice = { continueNewest: false, resume: null, fork: false, mission };
  const chat = await createAgentSession(run, choice, false);
  const { session, secrets, save } = chat;
  const interrupt = (): void => {
    session.interrupt();
  };
  signal.addEventListener('abort', interrupt);
  try {
    const meter = createUsageMeter();
    session.subscribe((event) => {
      meter.see(event);
      const { cost_usd: costUsd } = meter.sum();
      if (event.type === 'event' && event.event.kind === 'usage' && costUsd !== null)
        void note({ costUsd }).catch(() => undefined);
    });
    await session.append(request.event);
    await note({ sessionId: session.id });
    await run.store.update(session.id, { title: secrets.text(request.title) });
    if (signal.aborted) return { kind: 'stopped' };
    const first = await session.submit(request.prompt, { source: 'task', note: false, typed: true });
    const turn = (await run.toolbox.parts.find(backgroundAgents)?.settle(session, first)) ?? first;
    const unsaved = await save();
    const callFailed = call !== undefined && lastCallFailed(session.recent());
    return { kind: 'ended', turn, unsaved, callFailed, costUsd: meter.sum().cost_usd };
  } finally {
    signal.removeEventListener('abort', interrupt);
    await chat.close();
  }
}

function lastCallFailed(events: readonly Event[]): boolean {
  const result = events.map(knownEvent).findLast((event) => event?.kind === 'tool_result');
  return result?.kind === 'tool_result' && !result.data.success;
}

/** Answers a conversation with one call first, and then as `next` does, which may not call any more; without it with
 * what the call gave. */
function callFirst({ name, arguments: text }: NonNullable<UnattendedRequest['call']>, next: Provider | null): Provider {
  return {
    async *stream(request) {
      const answered = request.conversation.messages.findLast((message) => message.role === 'assistant');
      if (answered?.role === 'assistant' && next) {
        yield* next.stream({ ...request, toolChoice: 'none' });
        return;
      }
      if (answered?.role === 'assistant') yield { type: 'text', text: resultText(answered.calls) };
      else yield { type: 'tool_call', call: { id: 'task_1', name, arguments: text } };
      yield free;
      yield { type: 'end', stop: answered ? 'stop' : 'tool' };
    },
  };
}

const free: ModelChunk = { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };

function resultText(calls: readonly AnsweredCall[]): string {
  const envelope = parseEnvelope(calls.at(-1)?.result.output ?? '');
  if (isError(envelope)) return envelope.error;
  const { status } = envelope;
  return typeof status === 'number' ? `${status} ${envelope.output}` : envelope.output;
}

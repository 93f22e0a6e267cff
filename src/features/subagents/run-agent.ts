import { randomBytes } from 'node:crypto';
import { parseJson } from '../../kernel/core/json.js';
import { changesData, netChanges } from '../../kernel/agent/file-history.js';
import { addUsage, noUsage } from '../../kernel/core/usage-totals.js';
import type { AgentCall, ApprovalDeps, TurnDeps } from '../../kernel/agent/dependencies.js';
import type { WaitForLimit } from '../../kernel/agent/limit-wait.js';
import { createSession, interruptedResult, type Session, type SessionParts } from '../../kernel/agent/session.js';
import { type CallClock, startCallClock } from '../../kernel/core/call-clock.js';
import { type Event, type EventDraft, knownEvent, type ToolCallData, type UsageData } from '../../kernel/core/event.js';
import { type ErrorCode, errorEnvelope } from '../../kernel/core/envelope.js';
import { isRecord, type JsonObject } from '../../kernel/core/json.js';
import { interruptedRunning, type ModelRef, type OpenCall } from '../../kernel/core/projection.js';
import type { AgentEvent, TurnEnd } from '../../kernel/core/session-port.js';
import { placeOf, type SessionRow, type Store, ulid } from '../../kernel/core/store.js';
import { firstLine } from '../../kernel/core/text.js';
import type { Denial, RecordedChanges, SubagentRequest, ToolOutcome } from '../../kernel/core/tool.js';
import type { AgentHost, AgentModel, AgentPlace } from '../../kernel/console/feature.js';
import type { OpenedSession, Settings } from '../../kernel/console/run-settings.js';
import { directoryId } from '../../kernel/disk/directory-id.js';
import { theirNames } from '../../kernel/tools/claude-names.js';
import { counted, failed, succeeded } from '../../kernel/tools/define-tool.js';
import { mayReach } from '../../kernel/tools/chosen-tools.js';
import { createSubsetRegistry } from '../../kernel/tools/registry.js';
import { trackedAgents } from './agent-log.js';
import { withMemory } from './agent-memory.js';
import { type AgentRole, stricter, toolsOf } from './roles.js';

/** A task for an agent. */
export interface AgentWork {
  readonly role: AgentRole;
  readonly order: SubagentRequest;
  /** Of its session. */
  readonly id: string;
}

/** Returns the id of the session of a new agent. */
export function newAgentId(now: number): string {
  return ulid(now, randomBytes(16));
}

/** Returns why the agent that an order continues cannot be continued; null where it can, and for a new one. */
export async function resumeProblem(
  host: AgentHost,
  { role, order: { resume } }: Pick<AgentWork, 'role' | 'order'>,
  parent: TurnDeps,
): Promise<string | null> {
  if (resume === undefined) return null;
  const found = (await host.store.agentsOf(parent.record.id)).find(({ id }) => id === resume);
  if (!found) return `resume: this session has no agent ${firstLine(resume, 64)}; start one without resume.`;
  return isOf(found, role) ? null : `resume: ${found.id} is not the session of an agent ${role.name}.`;
}

/** The session and the call that an agent works for. `share`: how many agents share what may be spent. */
export interface Client {
  readonly parent: TurnDeps;
  readonly call: AgentCall;
  readonly share: () => number;
  /** Takes a line for each step of the agent. */
  readonly step: (line: string) => void;
  /** Absent: a usage limit ends the work of the agent. */
  readonly waitForLimit?: WaitForLimit;
}

/** The directory that an agent works in, where it is not that of the session. */
export interface OwnPlace extends AgentPlace {
  readonly cwd: string;
  /** A text about it for the agent. */
  readonly note: string;
}

/** An agent whose session is open. */
export interface OpenedAgent {
  readonly child: Session;
  /** Does its task. Call it once. */
  work(): Promise<AgentEnd>;
  /** Gives back what it holds. */
  close(): Promise<void>;
}

/** The end of the work of an agent. */
export interface AgentEnd {
  readonly outcome: ToolOutcome;
  /** The changes of files in the session's directory. */
  readonly recorded: RecordedChanges;
  readonly denials: readonly Denial[];
}

/** The delay after its time limit at which an agent that ignores it is stopped. */
const graceMs = 60_000;

/** Opens the session of an agent, with its model. What it uses counts at once in the session that it works for. Throws
 * where it cannot begin. */
export async function openAgent(
  host: AgentHost,
  work: AgentWork,
  client: Client,
  place: OwnPlace | null,
): Promise<OpenedAgent> {
  const { effort } = work.role;
  const found = await modelOf(host, work.role, client.parent);
  const model = effort === null ? found : { ...found, effort };
  try {
    const opened = await openChild(host, work, client, place);
    try {
      const limits = createLimits(host.settings.config.agents, work.role, client.parent.host.now);
      const parts: ChildParts = { ...client, opened, model, role: work.role, limits, place };
      const child = await createChild(host, parts);
      return {
        child,
        work: () => inSession(host, work, parts, child),
        close: async () => {
          await opened.release().catch(() => undefined);
          model.close();
        },
      };
    } catch (error) {
      await opened.release().catch(() => undefined);
      throw error;
    }
  } catch (error) {
    model.close();
    throw error;
  }
}

async function inSession(
  host: AgentHost,
  { role, order }: AgentWork,
  parts: ChildParts,
  child: Session,
): Promise<AgentEnd> {
  const { parent, call, limits, opened, place } = parts;
  const longestMs = limits.timeoutMs + graceMs;
  const clock = startCallClock({ timeoutMs: longestMs, maxMs: longestMs }, parent.host, () => {
    limits.timeIsUp();
    child.interrupt();
  });
  limits.pauses((asking) => call.whileAsking(() => clock.whileAsking(asking)));
  if (opened.restored.length > 0) await child.repair();
  const before = child.events().length;
  const stop = child.subscribe(createReporter(child, parts));
  const unfollow = host.follow({
    session: child,
    mask: (text) => parent.secrets?.text(text) ?? text,
    within: { session: parent.record.id, call: call.id, agent: role.name },
  });
  const interrupt = (): void => {
    child.interrupt();
  };
  call.signal.addEventListener('abort', interrupt);
  try {
    const prompt = withMemory(role, order.prompt, host.settings);
    let working = child.submit(place === null ? prompt : `${prompt}\n\n${place.note}`);
    if (call.signal.aborted) interrupt();
    let end = await working;
    // Messages that the user sent to it after its last call.
    for (let queue = child.takeQueue(); queue.length > 0 && !call.signal.aborted; queue = child.takeQueue()) {
      working = child.submit(queue.map(({ text }) => text).join('\n\n'));
      end = await working;
    }
    await child.record.flush();
    if (child.record.unsaved().length > 0) host.records.push(child.record);
    else child.record.end();
    const events = child.events().slice(before);
    const outcome = outcomeOf(end, { child, role, limits, events, signal: call.signal });
    const denials = end.denials.map((denial) => ({ agent_session_id: child.id, ...denial }));
    return { outcome, recorded: netChanges(events), denials };
  } finally {
    clock.stop();
    call.signal.removeEventListener('abort', interrupt);
    stop();
    unfollow();
  }
}

/** Opens a new session for an agent, or the session of one that is resumed. */
async function openChild(
  host: AgentHost,
  { role, order, id }: AgentWork,
  { parent, call }: Client,
  place: OwnPlace | null,
): Promise<OpenedSession> {
  const createdAt = parent.host.now();
  const cwd = place?.cwd ?? parent.cwd;
  const directory = directoryId(cwd);
  const title = firstLine(`${role.name}: ${order.description}`, 120);
  const fresh: SessionRow = {
    id,
    parentId: parent.record.id,
    parentCallId: call.id,
    cwd,
    title: parent.secrets?.text(title) ?? title,
    ...placeOf(parent.model().ref),
    createdAt,
    updatedAt: createdAt,
    ...(directory === null ? {} : { directoryId: directory }),
  };
  return await host.openSession(order.resume ?? null, fresh);
}

function isOf({ title }: SessionRow, { name }: AgentRole): boolean {
  return title?.startsWith(`${name}:`) === true;
}

/** The model of an agent: its own, where there is one of that name, else that of its session, with a notice. An agent
 * whose file names none uses the one of `models.roles.subagent`. */
async function modelOf(host: AgentHost, role: AgentRole, parent: TurnDeps): Promise<AgentModel> {
  const { name, model } = role;
  const close = (): void => undefined;
  const own: AgentModel = { ...parent.model(), close };
  const isUsual = model === null && role.inheritsModel !== true && parent.hasTurnModel?.() !== true;
  const usual = isUsual ? await host.openDefaultModel(own.ref) : null;
  if (usual !== null) return { ...usual, close };
  const resolved = model === null ? null : await host.resolveModel(model, own.ref);
  if (resolved === null) {
    const message = `Agent ${name} uses ${own.ref.model}: ${own.ref.provider} has no model ${model ?? ''}.`;
    if (model !== null) parent.emit({ type: 'notice', level: 'info', code: 'agent_model', message });
    return own;
  }
  if (!resolved.ok) throw new Error(`its model ${model} cannot be used: ${resolved.problem.message}`);
  const opened = await host.openModel(resolved.ref);
  return resolved.effort === undefined ? opened : { ...opened, effort: resolved.effort };
}

/** The limits of an agent besides money. */
interface Limits {
  readonly maxTurns: number;
  readonly timeoutMs: number;
  /** Returns a sentence about a limit that is used up; null if none is. */
  usedUp(): string | null;
  spent(usage: UsageData): void;
  timeIsUp(): void;
  /** The time that the user takes to answer does not count as time of the agent. */
  whileAsking: CallClock['whileAsking'];
  /** Takes what else pauses meanwhile. */
  pauses(clock: CallClock['whileAsking']): void;
  tokens(): number;
}

function createLimits(
  { maxTurns, timeoutS, maxTokens }: Settings['config']['agents'],
  role: AgentRole,
  now: () => number,
): Limits {
  const startedAt = now();
  const timeoutMs = timeoutS * 1000;
  let tokens = 0;
  let late = false;
  let askedMs = 0;
  let outer: CallClock['whileAsking'] = (asking) => asking();
  return {
    maxTurns: Math.min(maxTurns, role.maxTurns ?? maxTurns),
    timeoutMs,
    usedUp: () => {
      if (late || now() - startedAt - askedMs >= timeoutMs)
        return `The time limit of ${timeoutS} s is over. Answer now.`;
      return tokens >= maxTokens ? `The limit of ${maxTokens} tokens is used up. Answer now.` : null;
    },
    spent: (usage) => {
      tokens += usage.input_tokens + usage.cache_write_tokens + usage.output_tokens;
    },
    timeIsUp: () => {
      late = true;
    },
    whileAsking: async (asking) => {
      const askedAt = now();
      try {
        return await outer(asking);
      } finally {
        askedMs += now() - askedAt;
      }
    },
    pauses: (clock) => {
      outer = clock;
    },
    tokens: () => tokens,
  };
}

interface Parts extends Client {
  readonly opened: OpenedSession;
  readonly model: AgentModel;
}

interface ChildParts extends Parts {
  readonly role: AgentRole;
  readonly limits: Limits;
  readonly place: OwnPlace | null;
}

async function createChild(
  host: AgentHost,
  { parent, call, share, waitForLimit, ...parts }: ChildParts,
): Promise<Session> {
  const { role, opened, model, limits } = parts;
  const place = parts.place ?? inSessionPlace(host, parent);
  const names = new Set(toolsOf(role, parent.tools.registry.list(), theirNames).map(({ name }) => name));
  const registry = createSubsetRegistry(place.registry, {
    offers: (name) => names.has(name),
    reaches: (target) => mayReach(role, target),
  });
  const windowTokens = parent.models.contextWindow?.(model.ref) ?? null;
  const opening =
    opened.restored.length > 0
      ? []
      : await place.opening(registry, { role: role.prompt(), named: role.skills, windowTokens });
  const { capture, policy } = place;
  const { id: session } = parent.record;
  const within = { session, events: () => parent.record.events() };
  const hooks = host.hooks('startup', { id: opened.row.id, type: role.name, within });
  const child: Session = createSession({
    record: {
      store: host.store,
      row: { ...opened.row, ...placeOf(model.ref) },
      restored: opened.restored,
      opening: opening.map((draft) => withEffort(draft, model)),
      begin: opened.begin,
    },
    model,
    models: {
      ...parent.models,
      planning: () => false,
      ofAgent: true,
      budget: (ref) => budgetOf(parent, child, share(), ref),
    },
    connect: () => Promise.reject(new Error('a resumed agent keeps its model')),
    tools: {
      registry,
      policy: stricter(policy, role.mode, role.name),
      ...(capture ? { capture } : {}),
      ...(hooks ? { hooks } : {}),
      ...(parent.tools.choose ? { choose: parent.tools.choose } : {}),
      fileNotes: place.fileNotes((message) => {
        child.notify({ level: 'warn', code: 'context_file', message });
      }),
    },
    limits: { ...parent.limits, maxToolTurns: limits.maxTurns, usedUp: () => limits.usedUp() },
    interactive: parent.approval.canAsk,
    approval: approvalOf(parent.approval, role, call.id, limits),
    host: parent.host,
    ...(waitForLimit ? { waitForLimit: (...limit) => limits.whileAsking(() => waitForLimit(...limit)) } : {}),
    ...(parent.secrets ? { secrets: parent.secrets } : {}),
    ...(parent.attachments ? { attachments: parent.attachments } : {}),
  });
  return child;
}

/** The directory of the session. */
function inSessionPlace(
  { opening, fileNotes }: AgentHost,
  { tools: { registry, policy, capture } }: TurnDeps,
): Omit<AgentPlace, 'close'> {
  return { opening, fileNotes, registry, policy, ...(capture ? { capture } : {}) };
}

/** Puts the effort of an agent's model into the event of its tools, which has the settings of its requests. */
function withEffort(draft: EventDraft, { effort }: AgentModel): EventDraft {
  if (draft.kind !== 'tools' || effort === undefined) return draft;
  return { ...draft, data: { ...draft.data, settings: { ...draft.data.settings, effort } } };
}

/** Returns the rest of the session's cost limit, shared with the agents that run beside this one. */
function budgetOf(
  parent: TurnDeps,
  child: Session,
  share: number,
  ref: ModelRef,
): ReturnType<NonNullable<SessionParts['models']['budget']>> {
  const budget = parent.models.budget?.(ref) ?? null;
  if (budget === null || 'code' in budget) return budget;
  const left = budget.maxCostUsd - parent.record.totals().spentUsd;
  return { ...budget, maxCostUsd: child.totals().spentUsd + left / Math.max(1, share) };
}

/** Asks whom the session asks, and says which agent it is. */
function approvalOf(
  approval: ApprovalDeps,
  { name, mode }: AgentRole,
  callId: string,
  { whileAsking }: Limits,
): ApprovalDeps {
  const { putForm: _ofSession, ...shared } = approval;
  if (mode === 'dontAsk') return { ...shared, canAsk: false, ask: () => Promise.resolve({ answer: 'unavailable' }) };
  return {
    ...shared,
    ask: ({ verdict, ...question }, signal) =>
      whileAsking(() =>
        approval.ask(
          {
            ...question,
            callId: `${callId} ${question.callId}`,
            title: `${question.title} (agent ${name})`,
            verdict: { ...verdict, reasons: [`asked by the agent ${name}`, ...verdict.reasons] },
          },
          signal,
        ),
      ),
  };
}

/** The event by which a session records what an agent used for it. */
function agentUsage(
  usage: UsageData,
  { agent, sessionId, callId }: { readonly agent: string; readonly sessionId: string; readonly callId: string },
): EventDraft {
  return {
    kind: 'agent_usage',
    content: null,
    data: { ...usage, agent, agent_session_id: sessionId, tool_call_id: callId },
  };
}

/** Passes on what an agent does: what it uses to the record of the session, and a line for each step to the screen. */
function createReporter(
  child: Session,
  { parent, call, role, limits, step: report }: Client & { readonly role: AgentRole; readonly limits: Limits },
): (event: AgentEvent) => void {
  const { provider, model } = child.ref();
  let turn = 0;
  let costUsd: number | null = 0;
  const step = (doing: string): void => {
    const turns = turn > limits.maxTurns ? 'last answer' : `turn ${turn}/${limits.maxTurns}`;
    const cost = costUsd === null ? 'cost unknown' : `$${costUsd.toFixed(4)}`;
    const facts = [role.name, `${provider}/${model}`, turns, `${limits.tokens()} tokens`, cost, doing];
    report(facts.join(' · '));
  };
  const record = (usage: UsageData): void => {
    limits.spent(usage);
    costUsd = costUsd === null || usage.cost_usd === null ? null : costUsd + usage.cost_usd;
    void parent.record.append(agentUsage(usage, { agent: role.name, sessionId: child.id, callId: call.id }));
  };
  return (event) => {
    if (event.type === 'request_started') {
      turn += 1;
      step('asks the model');
    }
    if (event.type === 'retry_scheduled') step(`asks again, attempt ${event.attempt}: ${firstLine(event.reason, 80)}`);
    if (event.type === 'notice' && event.level !== 'info')
      parent.emit({ ...event, message: `Agent ${role.name}: ${event.message}` });
    const known = event.type === 'event' ? knownEvent(event.event) : null;
    if (known?.kind === 'usage') record(known.data);
    if (known?.kind === 'tool_call') step(known.content);
  };
}

interface Ended {
  readonly child: Session;
  readonly role: AgentRole;
  readonly limits: Limits;
  /** Since the agent was asked. */
  readonly events: readonly Event[];
  readonly signal: AbortSignal;
}

/** Returns the last message of an agent as the result of the call; an error where there is none. */
function outcomeOf(end: TurnEnd, ended: Ended): ToolOutcome {
  const { child, role, limits, events } = ended;
  const { cost_usd, ...tokens } = events.reduce(addUsage, noUsage);
  const { turns, toolCalls, denials } = end;
  const denied = denials.length;
  const facts: JsonObject = {
    agent_session_id: child.id,
    turns,
    tool_calls: toolCalls,
    usage: { ...tokens },
    cost_usd,
  };
  const output = end.text.trim();
  const error = errorOf(end, output, ended);
  if (error) {
    const [code, why] = error;
    return failed(code, `The agent ${role.name} ${why}`, { ...facts, ...(output === '' ? {} : { output }) });
  }
  const isShort = end.status === 'limit_reached' || limits.usedUp() !== null;
  const summary = `${role.name}: ${counted(toolCalls, 'call')} in ${counted(responsesIn(events), 'request')}`;
  const status = isShort ? 'limit_reached' : 'completed';
  return succeeded(summary, { output, status, ...facts, ...(denied > 0 ? { denied } : {}) });
}

/** Counts the responses of the model, also those without a call. */
function responsesIn(events: readonly Event[]): number {
  const ids = events.flatMap((event) => {
    const known = event.kind === 'assistant' || event.kind === 'tool_call' ? knownEvent(event) : null;
    return known?.kind === 'assistant' || known?.kind === 'tool_call' ? [known.data.response_id] : [];
  });
  return new Set(ids).size;
}

/** Returns why the answer of an agent is no result; null if it is one. */
function errorOf(end: TurnEnd, output: string, { limits, signal }: Ended): readonly [ErrorCode, string] | null {
  const { status, fault } = end;
  if (signal.aborted) return ['cancelled', 'was stopped before it finished.'];
  if (fault?.code === 'max_cost') return ['limit_reached', `reached the cost limit: ${fault.message}`];
  if (fault) return ['execution_failed', `failed: ${fault.message}`];
  if (status === 'interrupted') return ['limit_reached', `was stopped: ${limits.usedUp() ?? 'it was interrupted.'}`];
  if (output !== '') return null;
  if (status === 'limit_reached') return ['limit_reached', 'was stopped at its limit and ended without an answer.'];
  return ['execution_failed', 'ended without an answer.'];
}

/** Answers calls of agents that the program's end left open: the session of the agent is named, and what it spent
 * until then is recorded. */
export async function answerOpen(
  session: Session,
  open: readonly OpenCall[],
  store: Pick<Store, 'agentsOf' | 'load'>,
): Promise<void> {
  const agents = await store.agentsOf(session.id);
  for (const { call } of open) {
    const { agent, resume } = orderOf(call);
    const child = agents.find(({ id, parentCallId }) => parentCallId === call.id || id === resume);
    if (!child) continue;
    const events = await store.load(child.id);
    await syncUsage(session, events, { agent, sessionId: child.id, callId: call.id });
    const isApart = trackedAgents(session.recent()).some(
      ({ sessionId, worktree }) => sessionId === child.id && worktree,
    );
    const said = `${interruptedRunning.error} Its work so far is saved: continue it with resume "${child.id}".`;
    const result = interruptedResult(call, errorEnvelope('interrupted', said, { agent_session_id: child.id }));
    const changes = changesData(netChanges(isApart ? [] : sinceLastPrompt(events)));
    await session.append({ ...result, data: { ...result.data, ...changes } });
  }
}

/** Records what an agent has spent and its session does not know of yet. `events`: of the agent. */
export async function syncUsage(
  session: Pick<Session, 'append' | 'events'>,
  events: readonly Event[],
  of: { readonly agent: string; readonly sessionId: string; readonly callId: string },
): Promise<void> {
  const known = session.events().flatMap((event) => responseOf(event, of.sessionId) ?? []);
  for (const raw of events) {
    const event = raw.kind === 'usage' ? knownEvent(raw) : null;
    if (event?.kind === 'usage' && !known.includes(event.data.response_id))
      await session.append(agentUsage(event.data, of));
  }
}

/** The events of the order that an agent was given last. */
function sinceLastPrompt(events: readonly Event[]): readonly Event[] {
  const prompt = events.findLastIndex(({ kind, data }) => kind === 'user' && !(isRecord(data) && data.note === true));
  return events.slice(Math.max(0, prompt));
}

function orderOf({ function: { arguments: text } }: ToolCallData): {
  readonly agent: string;
  readonly resume: unknown;
} {
  try {
    const given: unknown = parseJson(text);
    return isRecord(given) ? { agent: String(given.agent), resume: given.resume } : { agent: '', resume: null };
  } catch {
    return { agent: '', resume: null };
  }
}

/** The response of this agent whose usage the event records. */
function responseOf(raw: Event, sessionId: string): string | null {
  const event = raw.kind === 'agent_usage' ? knownEvent(raw) : null;
  return event?.kind === 'agent_usage' && event.data.agent_session_id === sessionId ? event.data.response_id : null;
}

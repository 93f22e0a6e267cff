import type { Event } from '../core/event.js';
import type { CallClock } from '../core/call-clock.js';
import { isError, parseEnvelope } from '../core/envelope.js';
import type { Form, FormAnswer, ServerQuestion } from '../core/form.js';
import { isRecord } from '../core/json.js';
import type { Verdict } from '../core/policy.js';
import type { SubagentRequest, BoundCall, CallSession, ToolContext } from '../core/tool.js';
import { answerOfServer } from './apply-hooks.js';
import type { DispatchDeps } from './dependencies.js';

interface CallContext {
  readonly bound: BoundCall;
  readonly verdict: Verdict;
  readonly id: string;
  readonly approved?: boolean;
  readonly clock?: CallClock | null;
  readonly progress?: (chunk: string) => void;
  /** Called with each answer of the user to a question of the call. */
  readonly onAnswer?: (answer: FormAnswer) => void;
}

const nothing = (): void => undefined;

/** Builds what a tool is given to run one call. */
export function contextOf(
  d: DispatchDeps,
  { id, bound, verdict, approved = false, clock = null, progress = nothing, onAnswer = nothing }: CallContext,
  signal: AbortSignal,
): ToolContext {
  return {
    cwd: d.cwd,
    session: callSession(d, { id, clock, onAnswer }, signal),
    sandbox: verdict.sandbox,
    readsOnly: verdict.risk === 'read-only',
    approved,
    ...(verdict.landings ? { landings: verdict.landings } : {}),
    limits: bound.limits,
    get knownFiles() {
      return d.record.knownFiles;
    },
    signal,
    eventOutput: (seq) => storedOutput(d, seq),
    progress,
    ...(d.secrets ? { outputMask: d.secrets.stream() } : {}),
  };
}

/** Returns the session of a call with the ways to ask the user. The call's clock stops while the user answers. */
function callSession(
  d: DispatchDeps,
  { id, clock, onAnswer }: Required<Pick<CallContext, 'id' | 'clock' | 'onAnswer'>>,
  signal: AbortSignal,
): CallSession {
  const { record, searchWeb, runAgent, mergeAgent, approval, turnSettings } = d;
  const { putForm } = approval;
  const whileAsking: CallClock['whileAsking'] = (asking) => (clock ? clock.whileAsking(asking) : asking());
  return {
    id: record.id,
    events: () => record.events(),
    recent: () => record.recent(),
    ...(searchWeb ? { searchWeb } : {}),
    ...(putForm
      ? {
          putForm: async (form: Form) => {
            const answer = await whileAsking(() => putForm(form, signal));
            onAnswer(answer);
            return answer;
          },
        }
      : {}),
    ...(d.tools.hooks?.listens('Elicitation')
      ? { answerForm: (question: ServerQuestion) => answerOfServer(d, question, signal) }
      : {}),
    ...(runAgent
      ? { runAgent: (order: SubagentRequest, stop: AbortSignal) => runAgent(order, { id, signal: stop, whileAsking }) }
      : {}),
    ...(turnSettings ? { useSettings: (...given) => turnSettings.add(...given) } : {}),
    ...(mergeAgent
      ? { mergeAgent: (number: number, stop: AbortSignal) => mergeAgent(number, { id, signal: stop, whileAsking }) }
      : {}),
  };
}

function eventAt({ record }: DispatchDeps, seq: number): Event | undefined {
  const isIt = (event: Event): boolean => event.seq === seq;
  return record.recent().find(isIt) ?? record.events().find(isIt);
}

function storedOutput(d: DispatchDeps, seq: number): string | null {
  const event = eventAt(d, seq);
  if (event?.kind === 'user' || event?.kind === 'assistant') return event.content;
  if (event?.kind !== 'tool_result' || !isRecord(event.data) || typeof event.data.output !== 'string') return null;
  const envelope = parseEnvelope(event.data.output);
  if (!isError(envelope)) return envelope.output;
  return isRecord(envelope.details) && typeof envelope.details.output === 'string'
    ? envelope.details.output
    : envelope.error;
}

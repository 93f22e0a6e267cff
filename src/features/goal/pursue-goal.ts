import type { Session } from '../../kernel/agent/session.js';
import type { GoalEnd, GoalOrder, GoalRequest, GoalResult } from '../../kernel/console/goal-port.js';
import type { TurnEnd } from '../../kernel/core/session-port.js';
import { firstLine } from '../../kernel/core/text.js';
import type { GoalLimits } from './goal-parts.js';
import { createGoalReader, type GoalState, isActive, type ReadGoal } from './goal-state.js';
import {
  goalNote,
  judgeGoal,
  nextMessage,
  recordGoal,
  stopAfter,
  stopAtLimit,
  turnsText,
  usualTurns,
} from './goal-steps.js';

/** Sets the goal, or continues that of the session, and works until it is met or stops. A session that has no goal gets
 * one turn. */
export async function pursueGoal(session: Session, order: GoalOrder, limits: GoalLimits): Promise<GoalEnd> {
  const read = createGoalReader();
  if (order.request) await beginGoal(session, read, order.request);
  const begun = read(session.recent());
  if (!isActive(begun)) return await order.submit(order.prompt);
  let sum: TurnEnd = nothing;
  if (order.prompt !== '') {
    if (begun.phase === 'first') session.tell(goalNote(begun.data));
    sum = await order.submit(order.prompt);
  }
  for (;;) {
    const state = read(session.recent());
    if (!isActive(state)) return goalEnd(sum, state, session);
    if (sum.status === 'interrupted' || sum.status === 'failed') {
      await stopAfter(session, state, sum);
      return { ...sum, goal: goalResult(state) };
    }
    if (state.phase === 'open') {
      await judgeGoal(session, state, { ...limits, read, stops: 'ended' });
      continue;
    }
    if (await stopAtLimit(session, state, { stops: 'ended' })) continue;
    const { text, sentBy, note } = nextMessage(session, state);
    if (note !== null) session.tell(note);
    sum = added(sum, await session.submit(text, sentBy));
  }
}

const nothing: TurnEnd = { status: 'completed', text: '', turns: 0, toolCalls: 0, denials: [] };

function added(sum: TurnEnd, end: TurnEnd): TurnEnd {
  return {
    ...end,
    turns: sum.turns + end.turns,
    toolCalls: sum.toolCalls + end.toolCalls,
    denials: [...sum.denials, ...end.denials],
  };
}

/** Records a new goal. The same goal as the session has, which is not over, continues where it was. */
export async function beginGoal(session: Session, read: ReadGoal, request: GoalRequest): Promise<void> {
  const now = read(session.recent());
  const { condition, check, maxTurns, maxCostUsd } = request;
  const isSame = now !== null && now.phase !== 'over' && now.data.condition === condition && now.data.check === check;
  if (isSame && isActive(now) && (maxTurns ?? now.data.max_turns) === now.data.max_turns) return;
  if (isSame) {
    await resumeGoal(session, now, { maxTurns, maxCostUsd });
    return;
  }
  const data = { condition, check, max_turns: maxTurns ?? usualTurns, max_cost_usd: maxCostUsd };
  const how = check === null ? '' : ` Check: \`${firstLine(check, 200)}\`.`;
  const content = `Goal set: ${firstLine(condition, 200)}.${how} At most ${turnsText(data.max_turns)}.`;
  await session.append({ kind: 'goal', content, data: { state: 'set', turns: 0, ...data } });
}

/** Continues a goal that is paused or has ended, with the limits that are given. */
export async function resumeGoal(
  session: Session,
  state: GoalState,
  { maxTurns, maxCostUsd }: Pick<GoalRequest, 'maxTurns' | 'maxCostUsd'>,
): Promise<void> {
  const max_turns = maxTurns ?? state.data.max_turns;
  const max_cost_usd = maxCostUsd ?? state.data.max_cost_usd;
  const subject = firstLine(state.data.check ?? state.data.condition, 200);
  const content = `Goal resumed: ${subject}, after ${turnsText(state.turns)} of ${max_turns}.`;
  await recordGoal(session, state, { state: 'resumed', max_turns, max_cost_usd }, content);
}

function goalResult({ data, turns, lastExitCode }: GoalState): GoalResult {
  const { condition, check } = data;
  return { condition, check, met: data.state === 'met', turns, last_exit_code: lastExitCode };
}

/** Returns the end of a goal as that of a turn: met, at a limit, or failed. */
function goalEnd(sum: TurnEnd, state: GoalState | null, session: Session): GoalEnd {
  if (state === null) return sum;
  const goal = goalResult(state);
  const { limit: _, ...end } = sum;
  if (goal.met) return { ...end, status: 'completed', goal };
  const { cause } = state.data;
  if (cause === 'turns') return { ...end, status: 'limit_reached', limit: 'goal_turns', goal };
  if (cause === 'user') return { ...end, status: 'interrupted', goal };
  const message = session.recent().findLast(({ kind }) => kind === 'goal')?.content ?? state.data.condition;
  return { ...end, status: 'failed', fault: { code: cause === 'cost' ? 'max_cost' : 'goal', message }, goal };
}

import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import type { Session } from '../../kernel/agent/session.js';
import { firstLine } from '../../kernel/core/text.js';
import { type GoalDrivers, goalDrivers } from './goal-parts.js';
import { goalLine, type GoalState, isActive } from './goal-state.js';
import { recordGoal, turnsText } from './goal-steps.js';
import { parseGoal, type TypedGoal } from './parse-goal.js';
import { beginGoal, resumeGoal } from './pursue-goal.js';

/** `/goal`: sets a goal, shows it, pauses, continues and ends it. */
export const goal: CommandHandler = { slash: steer };

async function steer(argument: string, repl: Repl): Promise<void> {
  const { screen } = repl;
  const drivers = repl.parts.find(goalDrivers);
  if (drivers === null) return;
  const { session } = repl.sessions.current();
  const state = drivers.read(session.recent());
  const typed = parseGoal(argument);
  switch (typed.kind) {
    case 'show':
      screen.print(state === null ? noGoal : describeGoal(state));
      return;
    case 'wrong':
      screen.notice('error', typed.problem);
      return;
    case 'off':
      await endGoal(session, state, repl);
      return;
    case 'pause':
      await pauseGoal(session, state, repl);
      return;
    case 'resume':
      await resume({ session, state, drivers, typed }, repl);
      return;
    case 'set':
      await set({ session, drivers, typed }, repl);
      return;
    default:
      typed satisfies never;
  }
}

const noGoal = "There is no goal. Set one: /goal all tests pass --check 'npm test'";

function describeGoal(state: GoalState): string {
  const { data, turns, phase, lastExitCode } = state;
  const ending = data.state === 'met' ? 'is met' : 'has ended';
  const now = phase === 'over' ? ending : phase === 'paused' ? 'is paused' : 'is worked on';
  const exit = lastExitCode === null ? [] : [`Last check: exit code ${lastExitCode}`];
  return [
    `The goal ${now}: ${data.condition}`,
    ...(data.check === null ? ['Check: the model names the events that show it'] : [`Check: ${data.check}`]),
    ...exit,
    `Turns: ${turns} of ${data.max_turns}`,
    goalLine(state),
    ...(phase === 'over' ? [] : ['/goal off ends it; /goal pause and /goal resume.']),
  ].join('\n');
}

async function endGoal(session: Session, state: GoalState | null, { screen }: Repl): Promise<void> {
  if (state === null || state.phase === 'over') {
    screen.notice('info', 'There is no goal.');
    return;
  }
  const subject = firstLine(state.data.check ?? state.data.condition, 200);
  await recordGoal(session, state, { state: 'ended', cause: 'user' }, `Goal ended: ${subject}.`);
  screen.refresh();
}

async function pauseGoal(session: Session, state: GoalState | null, { screen }: Repl): Promise<void> {
  if (!isActive(state)) {
    screen.notice('info', 'There is no goal to pause.');
    return;
  }
  const content = 'Goal paused. /goal resume continues it, /goal off ends it.';
  await recordGoal(session, state, { state: 'paused', cause: 'user' }, content);
  screen.refresh();
}

interface Resuming {
  readonly session: Session;
  readonly state: GoalState | null;
  readonly drivers: GoalDrivers;
  readonly typed: Extract<TypedGoal, { readonly kind: 'resume' }>;
}

async function resume({ session, state, drivers, typed }: Resuming, repl: Repl): Promise<void> {
  const problem = resumeProblem(state, typed) ?? priceProblem(session, typed.maxCostUsd, repl);
  if (problem !== null || state === null) {
    repl.screen.notice('warn', problem ?? noGoal);
    return;
  }
  await resumeGoal(session, state, typed);
  drivers.wake(session.id);
  repl.screen.refresh();
}

function resumeProblem(state: GoalState | null, { maxTurns, maxCostUsd }: Resuming['typed']): string | null {
  if (state === null || state.data.state === 'met') return 'There is no goal to resume.';
  if (state.phase !== 'paused' && state.phase !== 'over') return 'The goal is not paused.';
  const most = maxTurns ?? state.data.max_turns;
  if (state.turns >= most)
    return `The goal has used ${turnsText(state.turns)} of ${most}. /goal resume --max-turns ${state.turns * 2} gives it more.`;
  const cost = maxCostUsd ?? state.data.max_cost_usd;
  if (cost !== null && state.spentUsd >= cost)
    return `The goal has spent its limit. /goal resume --max-cost ${cost * 2} gives it more.`;
  return null;
}

/** A cost limit needs a model whose price is known. */
function priceProblem(session: Session, maxCostUsd: number | null, { spending }: Repl): string | null {
  if (maxCostUsd === null) return null;
  const budget = spending.budget(session.ref(), maxCostUsd);
  return budget !== null && 'code' in budget ? `${budget.message}. ${budget.hint ?? ''}` : null;
}

interface Setting extends Pick<Resuming, 'session' | 'drivers'> {
  readonly typed: Extract<TypedGoal, { readonly kind: 'set' }>;
}

async function set({ session, drivers, typed }: Setting, repl: Repl): Promise<void> {
  const { screen, tools } = repl;
  const problem =
    typed.check !== null && tools.registry.get('bash') === undefined
      ? 'Commands are disabled in this session, so the check cannot run (tools.exec, --tools).'
      : priceProblem(session, typed.maxCostUsd, repl);
  if (problem !== null) {
    screen.notice('error', problem);
    return;
  }
  await beginGoal(session, drivers.read, typed);
  drivers.wake(session.id);
  screen.refresh();
}

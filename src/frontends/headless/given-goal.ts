import type { Session } from '../../kernel/agent/session.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { GoalRequest, Goals } from '../../kernel/console/goal-port.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { pendingLimit } from '../../kernel/agent/limit-wait.js';
import type { Answered, Ask } from './headless.js';

/** Returns the given options of goals, as they are typed. */
export function goalOptions({ goal, goalCheck, maxGoalTurns }: RootOptions): readonly string[] {
  return [
    ...(goal === undefined ? [] : ['--goal']),
    ...(goalCheck === undefined ? [] : ['--goal-check']),
    ...(maxGoalTurns === undefined ? [] : ['--max-goal-turns']),
  ];
}

/** Reads `--goal` and the options with it. The spend limit is that of the session. Throws a `CliError` (2). */
export function goalRequest(options: RootOptions): GoalRequest | null {
  const { goal, goalCheck, maxGoalTurns } = options;
  if (goal === undefined) {
    if (goalOptions(options).length === 0) return null;
    throw refused(`${goalOptions(options).join(', ')}: there is no goal`, 'Add --goal "all tests pass".');
  }
  const [problem] = problemsOf(goal, options);
  if (problem) throw problem;
  const maxTurns = maxGoalTurns === undefined ? null : Number(maxGoalTurns);
  return { condition: goal.trim(), check: goalCheck?.trim() ?? null, maxTurns, maxCostUsd: null };
}

function problemsOf(
  goal: string,
  { goalCheck, maxGoalTurns, jsonSchema, next = [] }: RootOptions,
): readonly CliError[] {
  return [
    ...(goal.trim() === '' ? [refused('--goal is empty', 'Say what has to hold: --goal "all tests pass".')] : []),
    ...(goalCheck?.trim() === '' ? [refused('--goal-check is empty', "Give a command: --goal-check 'npm test'.")] : []),
    ...(maxGoalTurns === undefined || /^[1-9]\d{0,5}$/.test(maxGoalTurns)
      ? []
      : [refused(`--max-goal-turns: \`${maxGoalTurns}\` is not a number from 1`, 'For example: --max-goal-turns 10.')]),
    ...(next.length === 0 ? [] : [refused('--goal does not go with --next', 'Give one prompt, or none.')]),
    ...(jsonSchema === undefined
      ? []
      : [refused('--goal does not go with --json-schema', 'Ask for the JSON afterwards: agent -p -c --json-schema …')]),
  ];
}

function refused(problem: string, hint: string): CliError {
  return new CliError(exit.usage, problem, hint);
}

export function missingPrompt(): CliError {
  return refused('there is no prompt', 'Give one as words or on standard input: agent -p "explain this".');
}

/** The work of a headless run. `continues`: without a prompt it continues a turn that a usage limit has stopped. */
interface HeadlessWork {
  readonly request: GoalRequest | null;
  readonly prompt: string;
  readonly continues?: boolean;
}

function nothingStopped(): CliError {
  return refused('there is no prompt, and no usage limit has stopped this session', 'Give a prompt.');
}

/** Continues the turn that a usage limit has stopped, and after it works towards the goal of the session. */
async function continued(session: Session, towardsGoal: Ask | null, prompt: string): Promise<Answered> {
  const end = await session.continueTurn();
  if (end === null) throw nothingStopped();
  return towardsGoal === null || end.status === 'failed' || end.status === 'interrupted'
    ? end
    : await towardsGoal(prompt);
}

/** Returns how a prompt is asked: once, or until the given goal, or that of the session, is met or stops. Throws a
 * `CliError` (2) where there is nothing to do. */
export function askTowardsGoal(session: Session, goals: Goals | null, work: HeadlessWork): Ask {
  const { request, prompt, continues = false } = work;
  if (goals === null && request !== null)
    throw refused('--goal: this program was built without goals', 'Leave it out.');
  const towardsGoal = goalAsk(session, goals, work);
  if (prompt === '' && continues && pendingLimit(session.recent()) !== null)
    return (text) => continued(session, towardsGoal, text);
  if (prompt === '' && towardsGoal === null) throw continues ? nothingStopped() : missingPrompt();
  return towardsGoal ?? ((text) => session.submit(text));
}

/** Returns what works towards the given goal, or that of the session; null where there is none. */
function goalAsk(session: Session, goals: Goals | null, { request, prompt }: HeadlessWork): Ask | null {
  if (goals === null || (request === null && !goals.isActive(session.recent()))) return null;
  const submit: Ask = (text) => session.submit(text);
  return (text) => goals.pursue(session, { request, prompt: prompt === '' ? '' : text, submit });
}

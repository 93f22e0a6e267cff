import type { Session } from '../../kernel/agent/session.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { GoalRequest, Goals } from '../../kernel/console/goal-port.js';
import type { RootOptions } from '../../kernel/console/options.js';
import type { Ask } from './headless.js';

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

/** Returns how a prompt is asked: once, or until the given goal, or that of the session, is met or stops. Throws a
 * `CliError` (2) where there is nothing to do. */
export function askTowardsGoal(
  session: Session,
  goals: Goals | null,
  { request, prompt }: { readonly request: GoalRequest | null; readonly prompt: string },
): Ask {
  if (goals === null && request !== null)
    throw refused('--goal: this program was built without goals', 'Leave it out.');
  const hasGoal = request !== null || goals?.isActive(session.events()) === true;
  if (prompt === '' && !hasGoal) throw missingPrompt();
  const submit: Ask = (text) => session.submit(text);
  return goals === null || !hasGoal ? submit : (text) => goals.pursue(session, { request, prompt: text, submit });
}

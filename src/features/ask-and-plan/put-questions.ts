import type { ToolsetHost } from '../../kernel/console/feature.js';
import type { Form, FormAnswer, FormField, FormValue } from '../../kernel/core/form.js';
import type { ArgumentProblem, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import {
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  outOfBounds,
  succeeded,
} from '../../kernel/tools/define-tool.js';

/** Plan mode, as far as a plan that the user agrees to ends it: edits are accepted, or each is asked about. */
export interface PlanMode {
  planning(): boolean;
  carryOut(how: 'go' | 'ask'): void;
}

const reading = { risk: 'read-only', reasons: [] } as const;
const nobody = 'No user is present. Continue with what seems best, and say what you assumed.';

/** Bounds are checked here: a schema with them would be longer in every request. */
const schema = {
  type: 'object',
  properties: {
    questions: {
      type: 'array',
      description: '1-4',
      items: {
        type: 'object',
        properties: {
          question: { type: 'string' },
          header: { type: 'string', description: 'at most 12 characters' },
          options: {
            type: 'array',
            description: '2-4',
            items: {
              type: 'object',
              properties: { label: { type: 'string' }, description: { type: 'string' } },
              required: ['label'],
              additionalProperties: false,
            },
          },
          multi: { type: 'boolean' },
        },
        required: ['question', 'options'],
        additionalProperties: false,
      },
    },
  },
  required: ['questions'],
  additionalProperties: false,
} as const;

type Asked = FromSchema<typeof schema>['questions'];

/** `ask_user`: up to four questions with choices; the user may always answer freely. */
export function askTool(): DefinedTool {
  return defineTool({
    name: 'ask_user',
    effect: 'read',
    asksUser: true,
    otherNames: ['AskUserQuestion'],
    description: 'Ask the user what only they can decide. They can always answer freely. An answer approves no call.',
    schema,
    describe: ({ questions }) => `ask_user(${questions.map(({ question }) => question).join(' / ')})`,
    check: ({ questions }) => problemOf(questions),
    judge: () => reading,
    async run({ questions }, ctx) {
      const answer = await put(ctx, { from: 'the model', message: '', fields: questions.map(fieldOf) });
      if (answer === null) return failed('execution_failed', nobody);
      if (answer.answer !== 'filled') return unanswered(answer);
      const lines = questions.map(
        (asked, index) => `${asked.question}\n${saidText(asked, answer.values[`q${index}`])}`,
      );
      return succeeded('answered', { output: lines.join('\n\n') });
    },
  });
}

function problemOf(questions: Asked): ArgumentProblem | null {
  const count = numberProblem('questions', questions.length, 1);
  if (count) return count;
  for (const [index, { question, header = '', options }] of questions.entries()) {
    const at = `questions/${index}`;
    const problem =
      outOfBounds(
        { [`${at}/question`]: question, [`${at}/header`]: header },
        {
          [`${at}/question`]: [1, 1000],
          [`${at}/header`]: [0, 12],
        },
      ) ?? numberProblem(`${at}/options`, options.length, 2);
    if (problem) return problem;
    if (new Set(options.map(({ label }) => label)).size < options.length)
      return { argument: `${at}/options`, problem: 'has the same label twice', expected: 'different labels' };
  }
  return null;
}

function numberProblem(argument: string, count: number, least: number): ArgumentProblem | null {
  return count >= least && count <= 4
    ? null
    : { argument, problem: `has ${count} items`, expected: `${least} to 4 items` };
}

function fieldOf({ question, header, options, multi }: Asked[number], index: number): FormField {
  return {
    name: `q${index}`,
    question,
    ...(header === undefined ? {} : { label: header }),
    kind: 'choice',
    options: options.map(({ label, description }) => ({
      value: label,
      label,
      ...(description === undefined ? {} : { about: description }),
    })),
    ...(multi === true ? { several: true } : {}),
    free: true,
    required: true,
  };
}

/** Says which labels were chosen; what is none of them are words of the user. */
function saidText({ options }: Asked[number], value: FormValue | undefined): string {
  const said = (Array.isArray(value) ? value : [value]).map(String);
  const isLabel = (text: string): boolean => options.some(({ label }) => label === text);
  return said.map((text) => (isLabel(text) ? `- ${text}` : `- typed: ${text}`)).join('\n');
}

/** Makes the tools. `approval` is what a plan that the user agrees to changes. */
export function askTools(approval: NonNullable<ToolsetHost['approval']>): readonly DefinedTool[] {
  const mode: PlanMode = {
    planning: () => approval.planning(),
    carryOut: (how) => {
      endPlanMode(approval, how);
    },
  };
  return [askTool(), planTool(mode)];
}

/** `propose_plan`: puts the plan to the user, who alone ends plan mode. */
export function planTool(mode: PlanMode): DefinedTool {
  return defineTool({
    name: 'propose_plan',
    effect: 'read',
    asksUser: true,
    otherNames: ['ExitPlanMode'],
    description: 'In plan mode: show the finished plan (Markdown) to the user, who decides whether to run it.',
    schema: {
      type: 'object',
      properties: { plan: { type: 'string' } },
      required: ['plan'],
      additionalProperties: false,
    },
    describe: () => 'propose_plan',
    check: ({ plan }) =>
      plan.trim() === '' ? { argument: 'plan', problem: 'blank', expected: 'what you would do' } : null,
    judge: () => reading,
    async run({ plan }, ctx) {
      if (!mode.planning())
        return failed('execution_failed', 'Plan mode is off, so no plan is needed: do what the user asked for.');
      const answer = await put(ctx, { from: 'the model', message: plan, isMarkdown: true, fields: [verdict] });
      if (answer === null) return failed('execution_failed', nobody);
      if (answer.answer !== 'filled') return unanswered(answer, ' Plan mode is still on.');
      const said = String(answer.values[verdict.name]);
      if (said === 'go' || said === 'ask') return carryOut(mode, said);
      const words = said === 'keep' ? '' : ` They say: ${said}`;
      return succeeded('keep planning', { output: `The user wants you to keep planning.${words}`, approved: false });
    },
  });
}

/** The answers to a plan. */
export const planAnswers = {
  go: 'Yes, and accept edits',
  ask: 'Yes, and ask for each edit',
  keep: 'Keep planning',
} as const;

/** Ends plan mode as the user wants it. To accept edits is no more than the default mode: what asks nothing still asks
 * nothing, and nobody who asks about every call is asked less than about each edit. */
export function endPlanMode(approval: Pick<ApprovalSwitch, 'plan' | 'mode' | 'switchTo'>, how: 'go' | 'ask'): void {
  approval.plan(false);
  const mode = approval.mode();
  if (how === 'go' && (mode === 'mutating' || mode === 'always')) approval.switchTo('dangerous');
  if (how === 'ask' && mode !== 'always') approval.switchTo('mutating');
}

type ApprovalSwitch = NonNullable<ToolsetHost['approval']>;

const verdict = {
  name: 'verdict',
  question: 'Run this plan?',
  label: 'Plan',
  kind: 'choice',
  options: [
    { value: 'go', label: planAnswers.go, about: 'only dangerous calls ask' },
    { value: 'ask', label: planAnswers.ask, about: 'every edit and command asks' },
    { value: 'keep', label: planAnswers.keep },
  ],
  free: true,
  preset: 'keep',
  required: true,
} as const satisfies FormField;

function carryOut(mode: PlanMode, how: 'go' | 'ask'): ToolOutcome {
  mode.carryOut(how);
  const asks = how === 'ask' ? ' Every change needs approval.' : '';
  return succeeded('go ahead', {
    output: `The user approved this plan. Plan mode is off.${asks} Carry it out now.`,
    approved: true,
  });
}

function put({ session }: ToolContext, form: Form): Promise<FormAnswer | null> {
  return session.putForm ? session.putForm(form) : Promise.resolve(null);
}

function unanswered(answer: Exclude<FormAnswer, { readonly answer: 'filled' }>, more = ''): ToolOutcome {
  switch (answer.answer) {
    case 'declined':
      return succeeded('no answer', { output: `The user declined to answer.${more}`, answered: false });
    case 'cancelled':
      return failed('cancelled', 'The user closed this without an answer.');
    case 'late':
      return failed(
        'timeout',
        `Not answered in time: the user did not answer within ${answer.afterMs / 1_000} s.${more} ` +
          'Continue with what seems best and say what you assumed, or end your turn with the question.',
      );
    default:
      return answer satisfies never;
  }
}

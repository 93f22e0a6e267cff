import type { HookAnswer, HookEvent, Occasion } from '../../core/hooks.js';
import { isRecord } from '../../core/json.js';
import { firstLine } from '../../core/text.js';
import type { ToolArgs } from '../../core/tool.js';
import { ourArguments } from './claude-dialect.js';

/** What came of a hook's process. `exit` is null where `failure` says that it did not come to its end. */
export interface HookResult {
  readonly exit: number | null;
  readonly failure: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What one hook says. `failed`: it said nothing that counts. */
export type OneAnswer = Omit<HookAnswer, 'runs' | 'messages'> & {
  readonly failed: string | null;
  readonly message: string | null;
};

const nothing: OneAnswer = {
  decision: 'none',
  reason: '',
  args: null,
  output: null,
  context: [],
  stop: null,
  failed: null,
  message: null,
};

/** Most characters of a text for the model or the person. */
const maxCharacters = 10_000;

/** Exit 2 denies where something can be denied; elsewhere it is a failure like the others. */
const deniable: ReadonlySet<HookEvent> = new Set([
  'PreToolUse',
  'UserPromptSubmit',
  'PostToolUse',
  'PostToolUseFailure',
  'Stop',
  'PreCompact',
]);
/** Plain output is for the model. */
const spoken: ReadonlySet<HookEvent> = new Set(['SessionStart', 'UserPromptSubmit']);

/** Reads the exit code and the output of a hook. Source: code.claude.com/docs/en/hooks, "Hook output". */
export function readAnswer(occasion: Occasion, { exit, failure, stdout, stderr }: HookResult): OneAnswer {
  const { event } = occasion;
  if (failure !== null) return { ...nothing, failed: failure };
  if (exit === 2 && deniable.has(event)) return { ...nothing, decision: 'deny', reason: cut(stderr.trim()) };
  if (exit !== 0) {
    const why = firstLine(stderr.trim(), 200);
    return { ...nothing, failed: `it ended with exit code ${exit ?? '?'}${why === '' ? '' : `: ${why}`}` };
  }
  const text = stdout.trim();
  if (!text.startsWith('{')) return spoken.has(event) && text !== '' ? { ...nothing, context: [cut(text)] } : nothing;
  const value = objectIn(text);
  return value === null
    ? { ...nothing, failed: 'what it printed begins with { and is no JSON' }
    : said(occasion, value);
}

function objectIn(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

function said(occasion: Occasion, value: Fields): OneAnswer {
  const specific = isRecord(value['hookSpecificOutput']) ? value['hookSpecificOutput'] : {};
  const context = textOf(specific['additionalContext']);
  return {
    ...nothing,
    ...decided(occasion.event, value, specific),
    args: argumentsIn(occasion, specific),
    output: occasion.event === 'PostToolUse' ? outputIn(specific) : null,
    context: context === '' ? [] : [context],
    stop: value['continue'] === false ? textOf(value['stopReason']) : null,
    message: textOf(value['systemMessage']) || null,
  };
}

type Decided = Pick<OneAnswer, 'decision' | 'reason'>;
type Fields = Readonly<Record<string, unknown>>;

function decided(event: HookEvent, value: Fields, specific: Fields): Decided {
  switch (event) {
    case 'PreToolUse':
      return ofCall(value, specific);
    case 'PermissionRequest':
      return ofQuestion(isRecord(specific['decision']) ? specific['decision'] : {});
    default: {
      const blocks = value['decision'] === 'block' && deniable.has(event);
      return { decision: blocks ? 'deny' : 'none', reason: textOf(value['reason']) };
    }
  }
}

function ofCall(value: Fields, { permissionDecision: wanted, permissionDecisionReason: why }: Fields): Decided {
  const reason = textOf(why) || textOf(value['reason']);
  if (wanted === 'allow' || wanted === 'deny' || wanted === 'ask') return { decision: wanted, reason };
  // The older form.
  if (value['decision'] === 'approve') return { decision: 'allow', reason };
  return { decision: value['decision'] === 'block' ? 'deny' : 'none', reason };
}

function ofQuestion({ behavior, message }: Fields): Decided {
  const isDecided = behavior === 'allow' || behavior === 'deny';
  return { decision: isDecided ? behavior : 'none', reason: textOf(message) };
}

function argumentsIn(occasion: Occasion, { updatedInput }: Fields): ToolArgs | null {
  if (occasion.event !== 'PreToolUse' || !isRecord(updatedInput)) return null;
  return ourArguments(occasion.call.tool, updatedInput);
}

function outputIn(specific: Fields): string | null {
  const given = specific['updatedToolOutput'] ?? specific['updatedMCPToolOutput'];
  if (given === undefined) return null;
  return typeof given === 'string' ? given : JSON.stringify(given);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? cut(value) : '';
}

function cut(text: string): string {
  const sound = text.toWellFormed();
  return sound.length > maxCharacters ? `${sound.slice(0, maxCharacters).toWellFormed()}…` : sound;
}

const strictness = ['none', 'allow', 'ask', 'deny'] as const;

/** Puts the answers of one occasion together: the strictest decision counts, with the reasons of those that made it. */
export function together(answers: readonly OneAnswer[]): Omit<HookAnswer, 'runs' | 'messages'> {
  const decision = strictness.findLast((level) => answers.some((answer) => answer.decision === level)) ?? 'none';
  const reasons = answers.flatMap((answer) => (answer.decision === decision && answer.reason ? [answer.reason] : []));
  return {
    decision,
    reason: decision === 'none' ? '' : reasons.join('\n'),
    args: answers.findLast(({ args }) => args !== null)?.args ?? null,
    output: answers.findLast(({ output }) => output !== null)?.output ?? null,
    context: answers.flatMap(({ context }) => context),
    stop: answers.find(({ stop }) => stop !== null)?.stop ?? null,
  };
}

import { isAbsolute } from 'node:path';
import type { HookAnswer, HookEvent, Occasion } from '../../kernel/core/hooks.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import { firstLine } from '../../kernel/core/text.js';
import type { ToolArgs } from '../../kernel/core/tool.js';
import { ourArguments } from '../../kernel/tools/claude-dialect.js';

/** The result of a hook. `exit` is null if `failure` says that it did not end normally. */
export interface HookResult {
  readonly exit: number | null;
  readonly failure: string | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Of an answer of a server. */
  readonly status?: number;
}

/** The answer of one hook. `failed`: why it gave no usable answer. `notes`: the parts of its answer that could not be
 * understood. */
export type OneAnswer = Omit<HookAnswer, 'runs' | 'messages'> & {
  readonly failed: string | null;
  readonly notes: readonly string[];
  readonly message: string | null;
};

const nothing: OneAnswer = {
  decision: 'none',
  reason: '',
  args: null,
  output: null,
  headers: {},
  form: null,
  worktree: null,
  context: [],
  stop: null,
  failed: null,
  notes: [],
  message: null,
};

/** Most characters of a text for the model or the user. */
const maxCharacters = 10_000;

/** Exit 2 denies where something can be denied; elsewhere it is a failure like the others. */
const deniable: ReadonlySet<HookEvent> = new Set([
  'PreToolUse',
  'UserPromptSubmit',
  'PostToolUse',
  'PostToolUseFailure',
  'Stop',
  'SubagentStop',
  'PreCompact',
  'PostToolBatch',
  'BeforeModel',
  'AfterModel',
  'Elicitation',
]);
/** Something is still to happen: an answer that decides, and that nobody understands, holds it back. */
const heldBack: ReadonlySet<HookEvent> = new Set(['PreToolUse', 'UserPromptSubmit', 'BeforeModel']);
/** Plain output is for the model. */
const spoken: ReadonlySet<HookEvent> = new Set(['SessionStart', 'UserPromptSubmit']);

type Fields = Readonly<Record<string, unknown>>;

/** Reads the exit code and the output of a hook. A denial that can be understood counts, whatever else went wrong.
 * Source: code.claude.com/docs/en/hooks, "Hook output". */
export function readAnswer(occasion: Occasion, result: HookResult): OneAnswer {
  const { event } = occasion;
  const answer = saidIn(occasion, result.stdout);
  const denies = answer.decision === 'deny' || answer.stop !== null;
  if (result.failure === null && result.exit === 2 && deniable.has(event))
    return { ...nothing, decision: 'deny', reason: cut(result.stderr.trim()) || answer.reason };
  const failure = failureOf(result);
  if (failure === null && event === 'WorktreeCreate') return withWorktree(answer, result);
  if (failure === null) return answer;
  return denies
    ? { ...answer, failed: null, notes: [...answer.notes, `failed: ${failure}`] }
    : { ...nothing, failed: failure };
}

/** A hook that makes a worktree prints its folder, in its last line or as `hookSpecificOutput.worktreePath`. Source:
 * code.claude.com/docs/en/hooks, "WorktreeCreate". */
function withWorktree(answer: OneAnswer, { stdout }: HookResult): OneAnswer {
  const said = objectsIn(stdout.trim()).flatMap(({ hookSpecificOutput: given }) =>
    isRecord(given) && typeof given['worktreePath'] === 'string' ? [given['worktreePath']] : [],
  );
  const path = said.at(-1) ?? stdout.trim().split('\n').at(-1)?.trim() ?? '';
  if (isAbsolute(path)) return { ...answer, failed: null, worktree: path };
  return { ...answer, failed: 'it did not print the absolute path of a worktree' };
}

function failureOf({ exit, failure, stderr }: HookResult): string | null {
  if (failure !== null || exit === 0) return failure;
  const why = firstLine(stderr.trim(), 200);
  return `it ended with exit code ${exit ?? '?'}${why === '' ? '' : `: ${why}`}`;
}

function saidIn(occasion: Occasion, stdout: string): OneAnswer {
  // eslint-disable-next-line no-control-regex
  const text = stdout.replaceAll(/^\uFEFF|\u001B\[[\d;]*[A-Za-z]|\0/g, '').trim();
  const { event } = occasion;
  const objects = objectsIn(text);
  const answers = objects.filter((object) => Object.keys(object).some((key) => answerKeys.has(key)));
  const last = answers.at(-1);
  if (last) {
    const each = answers.map((object) => readFields(occasion, object));
    // Log lines in JSON may stand around an answer; none of them takes a denial back.
    return each.findLast(({ decision }) => decision === 'deny') ?? each.at(-1) ?? nothing;
  }
  if (text === '' || (objects.length === 1 && text.startsWith('{') && text.endsWith('}'))) return nothing;
  const problem = brokenAnswer(text);
  if (problem === null) return spoken.has(event) ? { ...nothing, context: [cut(text)] } : nothing;
  return heldBack.has(event) && decisionWords.test(text)
    ? { ...nothing, decision: 'deny', reason: problem, notes: [`was not understood: ${problem}`] }
    : { ...nothing, failed: problem };
}

const answerKeys: ReadonlySet<string> = new Set([
  'continue',
  'decision',
  'hookSpecificOutput',
  'permissionDecision',
  'reason',
  'stopReason',
  'suppressOutput',
  'systemMessage',
]);
const decisionWords = /["']?\b(?:permissionDecision|decision|behavior)\b["']?\s*[:=]/;

/** Returns why a text that looks like an answer is none; null where it does not look like one. */
function brokenAnswer(text: string): string | null {
  if (text.startsWith('{')) return 'its output begins with { but is not JSON';
  return text.includes('{') && /permissionDecision|hookSpecificOutput|["']decision["']/.test(text)
    ? 'its output looks like an answer but is not JSON'
    : null;
}

/** Returns the JSON objects in a text, in their order; those inside others are not among them. */
function objectsIn(text: string): readonly Fields[] {
  const found: Fields[] = [];
  // A flood of brackets must not be read once for each of them.
  let budget = 4 * text.length + 4096;
  for (let from = text.indexOf('{'); from >= 0 && budget > 0;) {
    const end = endOfObject(text, from);
    budget -= (end < 0 ? text.length : end) - from;
    const object = end < 0 ? null : objectOf(text.slice(from, end));
    if (object) found.push(object);
    from = text.indexOf('{', object ? end : from + 1);
  }
  return found;
}

function endOfObject(text: string, from: number): number {
  let depth = 0;
  let inString = false;
  for (let index = from; index < text.length; index++) {
    const char = text[index];
    if (inString && char === '\\') index++;
    else if (char === '"') inString = !inString;
    else if (!inString && char === '{') depth++;
    else if (!inString && char === '}' && --depth === 0) return index + 1;
  }
  return -1;
}

function objectOf(text: string): Fields | null {
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** Reads an answer field by field. What cannot be understood is noted; what decides and cannot be understood denies
 * where something is held back. */
function readFields(occasion: Occasion, value: Fields): OneAnswer {
  const { event } = occasion;
  const unclear: string[] = [];
  const notes: string[] = [];
  const reader: Reader = {
    text: (name, given) => {
      if (typeof given === 'string') return cut(given);
      if (given !== undefined && given !== null) notes.push(`printed ${name} that is not a string; it is ignored`);
      return '';
    },
    unclear: (name, given) => {
      unclear.push(`${name} is ${firstLine(JSON.stringify(given) ?? '', 80)}`);
    },
  };
  const given = value['hookSpecificOutput'] ?? {};
  const specific = isRecord(given) ? given : {};
  if (!isRecord(given)) reader.unclear('hookSpecificOutput', given);
  const decided = decisionOf(event, { value, specific, reader });
  const context = [reader.text('additionalContext', specific['additionalContext']), retryIn(event, specific)];
  addAll(notes, uselessIn(event, specific));
  const stopReason = reader.text('stopReason', value['stopReason']);
  const answer = {
    ...nothing,
    ...decided,
    ...givenIn(occasion, specific, reader),
    context: context.filter((text) => text !== ''),
    stop: stopsIn(value, notes) ? stopReason : null,
    message: reader.text('systemMessage', value['systemMessage']) || null,
  };
  if (unclear.length === 0) return { ...answer, notes };
  const problem = `its decision is not valid: ${unclear.join(', ')}`;
  const isDenied = answer.decision === 'deny' || heldBack.has(event);
  return {
    ...answer,
    ...(isDenied ? { decision: 'deny' as const, reason: answer.reason || problem, args: null } : {}),
    notes: [...notes, `was not understood: ${problem}`],
  };
}

interface Reader {
  /** Returns the text of a field; '' where it is none, with a note. */
  readonly text: (name: string, given: unknown) => string;
  /** A field that decides has a value without a meaning. */
  readonly unclear: (name: string, given: unknown) => void;
}

type Decided = Pick<OneAnswer, 'decision' | 'reason'>;

interface Answered {
  readonly value: Fields;
  readonly specific: Fields;
  readonly reader: Reader;
}

function decisionOf(event: HookEvent, answered: Answered): Decided {
  switch (event) {
    case 'PermissionRequest':
      return ofQuestion(answered);
    case 'PreToolUse':
      return ofCall(answered);
    default: {
      const { value, reader } = answered;
      const isDenied = decisionIn('decision', value['decision'], reader) === 'deny' && deniable.has(event);
      return { decision: isDenied ? 'deny' : 'none', reason: reader.text('reason', value['reason']) };
    }
  }
}

function ofQuestion({ specific, reader }: Answered): Decided {
  const given = specific['decision'];
  const { behavior = given, message } = isRecord(given) ? given : {};
  const decision = decisionIn('decision.behavior', behavior, reader);
  return { decision: decision === 'ask' ? 'none' : decision, reason: reader.text('message', message) };
}

function ofCall({ value, specific, reader }: Answered): Decided {
  const why = reader.text('permissionDecisionReason', specific['permissionDecisionReason']);
  const otherWhy = reader.text('reason', value['reason']);
  const newer = decisionIn('permissionDecision', specific['permissionDecision'] ?? value['permissionDecision'], reader);
  const older = decisionIn('decision', value['decision'], reader);
  // Of two words the stricter one counts.
  const decision = older === 'deny' || newer === 'none' ? older : newer;
  return { decision, reason: why || otherWhy };
}

const words: Readonly<Record<string, OneAnswer['decision']>> = {
  '': 'none',
  none: 'none',
  allow: 'allow',
  approve: 'allow',
  ask: 'ask',
  deny: 'deny',
  denied: 'deny',
  block: 'deny',
  blocked: 'deny',
  reject: 'deny',
};

function decisionIn(name: string, given: unknown, reader: Reader): OneAnswer['decision'] {
  if (given === undefined || given === null) return 'none';
  const word = typeof given === 'string' ? given.trim().toLowerCase() : null;
  if (word !== null && Object.hasOwn(words, word)) return words[word] ?? 'none';
  reader.unclear(name, given);
  return 'none';
}

function stopsIn({ continue: given }: Fields, notes: string[]): boolean {
  if (typeof given === 'boolean' || given === undefined || given === null) return given === false;
  if (given === 'false' || given === 'true') return given === 'false';
  notes.push('printed a "continue" that is not true or false; it is ignored');
  return false;
}

function argumentsIn(occasion: Occasion, { updatedInput: given }: Fields, reader: Reader): ToolArgs | null {
  if (occasion.event !== 'PreToolUse' || given === undefined || given === null) return null;
  if (isRecord(given)) return ourArguments(occasion.call.tool, given);
  reader.unclear('updatedInput', given);
  return null;
}

/** Fields of other programs that change what hooks may only look at here. */
const withoutEffect: Readonly<Partial<Record<HookEvent, readonly string[]>>> = {
  MessageDisplay: ['displayContent'],
  BeforeModel: ['llm_request', 'llm_response'],
  AfterModel: ['llm_response'],
};

function uselessIn(event: HookEvent, specific: Fields): readonly string[] {
  const given = (withoutEffect[event] ?? []).filter((field) => specific[field] !== undefined);
  return given.map((field) => `printed ${field}, which has no effect here`);
}

/** Returns what an answer puts in the place of something, or adds to it. */
function givenIn(
  occasion: Occasion,
  specific: Fields,
  reader: Reader,
): Pick<OneAnswer, 'args' | 'output' | 'headers' | 'form'> {
  const { event } = occasion;
  return {
    args: argumentsIn(occasion, specific, reader),
    output: event === 'PostToolUse' ? outputIn(specific) : null,
    headers: event === 'BeforeModel' ? headersIn(specific, reader) : {},
    form: event === 'Elicitation' ? formIn(specific, reader) : null,
  };
}

function retryIn(event: HookEvent, { retry }: Fields): string {
  return event === 'PermissionDenied' && retry === true ? 'A hook says that this call may be tried again.' : '';
}

/** Source: RFC 9110, sections 5.5 "Field Values" and 5.6.2 "Tokens". */
export function isHeader(name: string, value: unknown): value is string {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\xFF]*$/.test(value);
}

function headersIn({ headers }: Fields, reader: Reader): Readonly<Record<string, string>> {
  if (headers === undefined || headers === null) return {};
  const given = isRecord(headers) ? Object.entries(headers) : [];
  if (isRecord(headers) && given.every(([name, value]) => isHeader(name, value)))
    return Object.fromEntries(given) as Readonly<Record<string, string>>;
  reader.unclear('headers', headers);
  return {};
}

const actions = ['accept', 'decline', 'cancel'] as const;

function formIn({ action, content = {} }: Fields, reader: Reader): OneAnswer['form'] {
  if (action === undefined || action === null) return null;
  const known = actions.find((one) => one === action);
  if (known !== undefined && isRecord(content)) return { action: known, content };
  reader.unclear('action', action);
  return null;
}

function outputIn(specific: Fields): string | null {
  const given = specific['updatedToolOutput'] ?? specific['updatedMCPToolOutput'];
  if (given === undefined) return null;
  return typeof given === 'string' ? given : JSON.stringify(given);
}

function cut(text: string): string {
  const sound = text.toWellFormed();
  return sound.length > maxCharacters ? `${sound.slice(0, maxCharacters).toWellFormed()}…` : sound;
}

import type { Effects } from './effects.js';
import type { AnswerSource, Event, EventDraft } from './event.js';
import { isRecord } from './json.js';
import type { BoundCall, Risk, Sandbox, SessionView, Surroundings } from './tool.js';

export type ApprovalMode = 'never' | 'dangerous' | 'mutating' | 'always';

/** From loose to strict. */
export const approvalModes = ['never', 'dangerous', 'mutating', 'always'] as const satisfies readonly ApprovalMode[];

/** Maps the names of other agents to our modes. `plan`: plan mode, over the mode that is set otherwise. */
export const approvalNames = {
  default: { mode: 'mutating' },
  'accept-edits': { mode: 'mutating', acceptsEdits: true },
  plan: { plan: true },
  bypass: { mode: 'never' },
  yolo: { mode: 'never' },
} as const satisfies Readonly<Record<string, ApprovalName>>;

interface ApprovalName {
  readonly mode?: ApprovalMode;
  /** File edits in the project run unasked. */
  readonly acceptsEdits?: true;
  readonly plan?: true;
}

/** Reads a mode or one of its other names; null for any other text. */
export function readApproval(text: string): ApprovalName | null {
  const mode = approvalModes.find((one) => one === text);
  if (mode !== undefined) return { mode };
  return Object.entries<ApprovalName>(approvalNames).find(([name]) => name === text)?.[1] ?? null;
}

/** The notes that inform the model of plan mode. */
export const planNotes = {
  on: '[Note: plan mode is on. Only read-only calls run; others are denied. Find out what you need, then answer with the plan: what you would change, where and how. The user decides whether to run it.]',
  off: '[Note: plan mode is off. Calls that change something may run again.]',
} as const;

/** Returns the current state of plan mode as a note before the next message; empty if the model already has it. */
export function planNews(isOn: boolean, events: readonly Event[]): readonly string[] {
  const told = events.findLast(({ content }) => content === planNotes.on || content === planNotes.off);
  return isOn === (told?.content === planNotes.on) ? [] : [isOn ? planNotes.on : planNotes.off];
}

/** Returns true if the model has answered, or proposed a plan, since the note that plan mode is on. */
export function hasPlan(events: readonly Event[]): boolean {
  const from = events.findLastIndex(({ kind, content }) => kind === 'user' && content === planNotes.on);
  return from >= 0 && events.slice(from).some(isPlan);
}

function isPlan({ kind, content, data }: Event): boolean {
  if (kind === 'assistant') return Boolean(content?.trim());
  return kind === 'tool_result' && isRecord(data) && data.name === 'propose_plan' && data.success === true;
}

/** The verdict of policy on a call, before anything runs. */
export interface Verdict {
  readonly risk: Risk;
  readonly decision: 'allow' | 'ask' | 'deny';
  /** Sentences, most important first; empty for an allowed reader. */
  readonly reasons: readonly string[];
  readonly sandbox: Sandbox;
  /** Names what decided, if `agent` does not ask: the list of commands that only read, a rule of the user, or the mode. */
  readonly decidedBy?: 'static' | 'rule' | 'mode';
  /** A rehearsal that shows no effects replaces the approval, or lifts the denial of plan mode. */
  readonly rehearsable?: true;
  /** True where no approval mode allows the call unasked: secret files, protected paths. */
  readonly everyMode?: true;
  /** True where a rule of the user wants the call asked. */
  readonly ruled?: true;
  /** Absolute paths that the call would touch, as the kernel resolves them, for the question. */
  readonly targets?: readonly string[];
  /** Absolute paths that the call names, whatever it does with them: what undo watches first. Links are not resolved;
   * wildcards of a shell are as the command has them. */
  readonly named?: readonly string[];
  /** The resolved paths of a file tool at the time when the call was judged. A verdict does not cover a call whose
   * paths lead elsewhere. */
  readonly landings?: readonly string[];
  /** Rules that would have allowed this call and those like it. Absent where no rule may. */
  readonly rules?: readonly Rule[];
}

/** The one place that decides. */
export interface Policy {
  /** `session`: absent for a call of none. */
  assess(call: BoundCall, cwd: string, session?: SessionView): Promise<Verdict>;
  /** Returns why writing these absolute paths is dangerous whatever writes them, a sentence for each; none where it is
   * not. Never rejects. Absent: nothing is protected. */
  dangersOf?(paths: readonly string[]): Promise<readonly string[]>;
  /** Adds to the user's own allow rules, which count at once; says where they are kept, or why not. Absent: none can be
   * added. Never rejects. */
  allow?(rules: readonly Rule[]): Promise<SaveResult>;
  /** Returns notes that the model of this session does not have yet; called before each message. */
  news?(events: readonly Event[]): readonly string[];
  /** Returns the event for how freely the session may act, where its log does not say so yet; asked for before each
   * message. */
  record?(events: readonly Event[]): EventDraft | null;
}

/** Denies what does more than read. `who`: a sentence without a full stop that says why. */
export function onlyReading(policy: Policy, who: string): Policy {
  return {
    ...policy,
    assess: async (...call) => {
      const verdict = await policy.assess(...call);
      if (verdict.risk === 'read-only' || verdict.decision === 'deny') return verdict;
      return { ...verdict, decision: 'deny', reasons: [who, ...verdict.reasons] };
    },
  };
}

/** Ends the reason that a command is asked about for no other reason. Its effects, once they are known, say more. */
export const unlistedReason = 'is not on the list of commands that only read';

/** Returns the reason of a call of a file tool that writes. A prompt that names the paths in its title leaves it out. */
export function writesReason(tool: string, paths: readonly string[]): string {
  return `${tool} writes ${paths.join(', ')}`;
}

/** The outcome of an attempt to save something, as a sentence. */
export interface SaveResult {
  readonly done: boolean;
  readonly said: string;
}

/** Asks a person. Never rejects; an aborted signal answers `deny`. */
export interface Approver {
  ask(question: Question, signal: AbortSignal): Promise<PermissionAnswer>;
}

export interface Question {
  readonly callId: string;
  readonly title: string;
  readonly call: BoundCall;
  readonly argumentsText: string;
  /** The lines at which it begins to change its file, where that is known. */
  readonly lines?: readonly number[];
  /** The lines around its change. */
  readonly surroundings?: Surroundings;
  /** The directory where its relative paths begin. */
  readonly cwd?: string;
  readonly verdict: Verdict;
  /** A rehearsal can show what it would do. */
  readonly canPreview?: true;
  /** The effects of its rehearsal. */
  readonly effects?: EffectsSummary;
}

/** The effects of a rehearsed call, as a question shows them. */
export interface EffectsSummary {
  readonly effects: Effects;
  /** `would write 2 files (…)`. */
  readonly text: string;
  /** One effect on each line, deletions first. */
  readonly lines: readonly string[];
  /** Unified diff of the changes. */
  readonly diff: string;
  /** The reason why they cannot be kept; null if the user may keep them. */
  readonly keepProblem: string | null;
  /** Some of them are dangerous whatever does them. */
  readonly dangers: readonly string[];
}

export type PermissionAnswer = AnswerChoice & {
  /** The kind of screen that answered; absent: a terminal with the session on it. */
  readonly source?: AnswerSource;
};

type AnswerChoice =
  | { readonly answer: 'once' }
  /** Keeps the changes of its rehearsal; nothing runs again. */
  | { readonly answer: 'keep' }
  /** Preview what it would do. The same question follows, with the effects. */
  | { readonly answer: 'preview' }
  /** This exact call (same tool, same argument bytes) for the rest of the session. */
  | { readonly answer: 'session' }
  /** Whatever the rules of the verdict allow: for the rest of the session, or for good as rules of the user. */
  | { readonly answer: 'rules'; readonly lasts: 'session' | 'always' }
  | { readonly answer: 'deny'; readonly message?: string }
  /** Nobody could be asked. */
  | { readonly answer: 'unavailable' };

/** A rule of the user. It applies to a call that fits every field given: `argv` are the leading words of a command,
 * `path` a glob over the paths that the call touches, `pattern` a text in which `*` matches any characters, held against
 * the whole command, the host, or the name of the skill or agent. Source: contracts, `rules` of the configuration. */
export interface Rule {
  readonly tool?: string;
  readonly argv?: readonly string[];
  readonly path?: string;
  /** Of an allow rule: it allows nothing that is dangerous. */
  readonly risk?: 'mutating';
  /** Of an allow rule: `argv` is the whole command. */
  readonly exact?: boolean;
  readonly pattern?: string;
  /** `path` is about calls that write the path. */
  readonly writes?: boolean;
}

export interface Rules {
  readonly allow: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly deny: readonly Rule[];
}

/** The three lists of rules; the first of them to fit decides. */
export type RuleList = keyof Rules;

/** Rules with the same key are the same rule. */
export function ruleKey({ tool, argv, path, risk, exact, pattern, writes }: Rule): string {
  const more = pattern === undefined && writes === undefined ? [] : [pattern ?? null, writes ?? null];
  return JSON.stringify([tool ?? null, argv ?? null, path ?? null, risk ?? null, exact ?? null, ...more]);
}

import type { BoundCall, Risk, Sandbox, SessionView } from './tool.js';

export type ApprovalMode = 'never' | 'dangerous' | 'mutating' | 'always';

/** The verdict of policy on a call, before anything runs. */
export interface Verdict {
  readonly risk: Risk;
  readonly decision: 'allow' | 'ask' | 'deny';
  /** Sentences, most important first; empty for an allowed reader. */
  readonly reasons: readonly string[];
  readonly sandbox: Sandbox;
  /** True where no approval mode allows the call unasked: secret files, protected paths. */
  readonly everyMode?: true;
  /** True where a rule of the user wants the call asked. */
  readonly ruled?: true;
  /** Absolute paths that the call would touch, as the kernel resolves them, for the question. */
  readonly targets?: readonly string[];
  /** Where the kernel found each path of a file tool when the call was judged. A call whose paths lead elsewhere was
   * not judged. */
  readonly landings?: readonly string[];
  /** Rules that would have allowed this call and those like it. Absent where no rule may. */
  readonly rules?: readonly Rule[];
}

/** The one place that decides. */
export interface Policy {
  /** `session`: absent for a call of none. */
  assess(call: BoundCall, cwd: string, session?: SessionView): Promise<Verdict>;
  /** Adds to the user's own allow rules, which count at once; says where they are kept, or why not. Absent: none can be
   * added. Never rejects. */
  allow?(rules: readonly Rule[]): Promise<Kept>;
}

/** What became of something to be kept, as a sentence. */
export interface Kept {
  readonly done: boolean;
  readonly said: string;
}

/** Asks a person. Never rejects; an aborted signal answers `deny`. */
export interface Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

export interface Question {
  readonly callId: string;
  readonly title: string;
  readonly call: BoundCall;
  readonly argumentsText: string;
  readonly verdict: Verdict;
}

export type Answer =
  | { readonly answer: 'once' }
  /** This exact call (same tool, same argument bytes) for the rest of the session. */
  | { readonly answer: 'session' }
  /** Whatever the rules of the verdict allow: for the rest of the session, or for good as rules of the user. */
  | { readonly answer: 'rules'; readonly lasts: 'session' | 'always' }
  | { readonly answer: 'deny'; readonly message?: string }
  /** Nobody could be asked. */
  | { readonly answer: 'unavailable' };

/** A rule of the user. It applies to a call that fits every field given: `argv` are the leading words of a command,
 * `path` a glob over the paths that the call touches. Source: contracts, `rules` of the configuration. */
export interface Rule {
  readonly tool?: string;
  readonly argv?: readonly string[];
  readonly path?: string;
}

export interface Rules {
  readonly allow: readonly Rule[];
  readonly ask: readonly Rule[];
  readonly deny: readonly Rule[];
}

/** The three lists of rules; the first of them to fit decides. */
export type RuleList = keyof Rules;

/** Rules with the same key are the same rule. */
export function ruleKey({ tool, argv, path }: Rule): string {
  return JSON.stringify([tool ?? null, argv ?? null, path ?? null]);
}

import type { Envelope, ErrorEnvelope } from './envelope.js';
import type {
  AnswerSource,
  CallTarget,
  ChangeData,
  Event,
  FileState,
  FolderData,
  CommandSource,
  ToolCallData,
  ToolSpec,
} from './event.js';
import type { Form, FormAnswer, HookedForm, ServerQuestion } from './form.js';
import type { Json } from './json.js';
import type { SearchAnswer, SearchRequest } from './provider.js';
import type { Effects } from './effects.js';
import type { StreamMask } from './secrets/guard.js';
import type { TurnSettings } from './turn-settings.js';

/** The effect of a tool on the world. Policy needs no more to judge a tool it does not know. */
export type Effect = 'read' | 'write' | 'execute' | 'network';
export type Risk = 'read-only' | 'mutating' | 'dangerous';
/** Tools that are switched on and off as one (`tools.fs: false`, `toolsets: ["web"]`, `--tools +web`). */
export interface Toolset {
  readonly name: string;
  /** True if it is enabled unless the settings say otherwise. */
  readonly on: boolean;
  /** A REPL offers it unless the settings switch it off. */
  readonly inRepl?: true;
  /** It is switched on, but its code is loaded only where there is something to offer. */
  readonly lazy?: true;
  /** A description of the switch, for the user. */
  readonly about: string;
  /** A sentence of the system prompt, for a session that has one of its tools. */
  readonly guidance?: string;
}
/** The limits that the operating system sets for a process. */
export type Sandbox = 'off' | 'workspace' | 'read-only';

/** A tool whose calls are those of other tools. */
interface Forwarding {
  /** Says which tool this call is a call of. Whatever comes after `bind` sees that one. */
  resolve?(args: ToolArgs): Promise<Resolved>;
}

/** A tool whose calls change lines of a file. */
interface Placed {
  /** Numbers the lines at which a call begins to change its file, for the permission prompt; none if they are not
   * known. Never rejects. */
  linesOf?(args: ToolArgs, place: Pick<ToolContext, 'cwd' | 'landings'>): Promise<readonly number[]>;
  /** Returns the lines of the file around a change, for the permission prompt; null if they are not known. Never
   * rejects. */
  surroundingsOf?(args: ToolArgs, place: Pick<ToolContext, 'cwd' | 'landings'>): Promise<Surroundings | null>;
}

/** The part of a file that stays as it is around a change: whole lines, and the rest of the lines that the change begins
 * and ends in. `diff` is a unified diff of a file that is overwritten. */
export interface Surroundings {
  readonly above: readonly string[];
  readonly head: string;
  readonly tail: string;
  readonly below: readonly string[];
  readonly diff?: string;
}

/** A command that ran on a copy-on-write view of the files. Nothing of what it did is on the disk. */
export interface Rehearsal {
  /** The result of the call if this run counts. */
  readonly outcome: ToolOutcome;
  readonly effects: Effects;
  /** The reason why the run does not show what the command would do, although it wrote nothing; null if it shows it. */
  readonly unclear: string | null;
  /** The reason why its changes cannot be kept; null if they can. */
  readonly keepProblem: string | null;
  /** The changes as a unified diff, cut at `maxBytes`. */
  diff(maxBytes: number): Promise<string>;
  /** Applies the changes. All of them are made, or none. */
  keep(): Promise<KeepResult>;
  /** Throws the changes away. */
  discard(): Promise<void>;
}

export type KeepResult =
  | { readonly ok: true; readonly outcome: ToolOutcome }
  /** A sentence: nothing was changed, and why. */
  | { readonly ok: false; readonly problem: string };

/** A tool whose calls can be tried on a copy-on-write view of the files. */
interface Rehearsed {
  /** Runs a call so that nothing of what it does reaches the disk, the network or other processes. Returns a sentence
   * without its end where this call cannot be run so. Never rejects. */
  rehearse?(args: ToolArgs, ctx: ToolContext): Promise<Rehearsal | string>;
}

/** A tool whose first call takes long to begin. */
interface Prepared {
  /** Begins to load what its calls run with. Called before policy judges one. */
  prepare?(): void;
}

/** A tool whose arguments may stand for others, such as an alias of the user's shell. */
interface Expanding {
  /** Returns the arguments that run instead, before hooks and policy judge the call; null where they run as they are.
   * Never rejects. */
  expand?(args: ToolArgs, signal: AbortSignal): Promise<ExpandedArgs | null>;
}

/** Arguments that run instead of those of a call, and what the result of the call says about that. */
export interface ExpandedArgs {
  readonly args: ToolArgs;
  readonly facts: Readonly<Record<string, Json>>;
}

export interface Tool extends ToolSpec, Forwarding, Placed, Prepared, Rehearsed, Expanding {
  readonly effect: Effect;
  readonly toolset: Toolset;
  /** Its calls do nothing (`--test`), so they are asked about only where every call is. */
  readonly inert?: true;
  /** A line about this tool for the system prompt. */
  readonly guidance?: Guidance;
  /** Its limits, unless the settings give others. */
  readonly limits?: ToolLimits;
  /** Its results are words of the user, which are never left out of requests. */
  readonly asksUser?: true;
  /** Names of such a tool in other programs. Users may use them; requests to a model have our name. */
  readonly otherNames?: readonly string[];
  /** The same call gives the same result as long as the files are the same, so `replay --verify` makes it again. */
  readonly repeatable?: true;
  /** Placeholders in its arguments are replaced by the secrets they stand for: as they are, or where a shell reads them
   * as text. Without it they stay. */
  readonly placeholders?: 'plain' | 'shell';
  /** `glob(pattern="*.ts")`: the content of the `tool_call` event. `args` have passed the schema. */
  describe(args: ToolArgs): string;
  /** Finds what is wrong with arguments that pass the schema but cannot be meant (a NUL in a path), or null. Pure; part
   * of `bind`. */
  check?(args: ToolArgs): ArgumentProblem | null;
  /** Returns the text that this call types where a shell may run it; null for none. Rules and guards for commands hold
   * for it. Pure. */
  typedText?(args: ToolArgs): string | null;
  /** Judges what this call may do, where the effect alone does not show it. Policy calls this before the call runs. */
  judge?(args: ToolArgs, place: CallPlace): Judged | Promise<Judged>;
  /** May throw; the dispatcher turns that into an `internal` envelope and logs it. Never rejects because of
   * `ctx.signal`: it returns. */
  run(args: ToolArgs, ctx: ToolContext): Promise<ToolOutcome>;
}

/** The tool that a call reaches through another one, and its arguments, which have been checked. */
export type Resolved =
  | { readonly ok: true; readonly tool: Tool; readonly args: ToolArgs; readonly target: CallTarget }
  | { readonly ok: false; readonly error: ErrorEnvelope };

/** The judgement of a tool on one of its calls. `everyMode`: no approval mode allows the call without a prompt.
 * `allowed`: the user has allowed it, as a rule would. */
export interface Judged {
  readonly risk: Risk;
  /** Sentences, most important first. */
  readonly reasons: readonly string[];
  readonly everyMode?: true;
  /** No rule for all calls of the tool is offered: its arguments say what is run, or it is not what it was. */
  readonly singular?: true;
  readonly allowed?: true;
}

/** The place where a call is made. `cwd` is absolute. */
export interface CallPlace {
  readonly cwd: string;
  readonly session: SessionView;
}

/** The session of a call, as far as its tool may see it. A call without a session sees one without events. */
export interface SessionView {
  readonly id: string;
  /** All events; those of a long session are read from the store first. */
  events(): readonly Event[];
  /** The events that are in memory (see `SessionPort`). */
  recent(): readonly Event[];
}

/** A task for another agent. */
export interface SubagentRequest {
  /** Its name. */
  readonly agent: string;
  readonly prompt: string;
  /** The task in a few words. */
  readonly description: string;
  /** The id of an existing session of a sub-agent, to continue it. */
  readonly resume?: string;
  /** The call returns at once, and a note reports the end. Absent: as the file of the agent says. */
  readonly background?: boolean;
  /** It works in a git worktree of its own. */
  readonly isolation?: 'worktree';
}

/** The session of a call that runs: what it may ask of the model's provider and of the user. */
export interface CallSession extends SessionView {
  /** Has the provider of the session's model search the web; its usage is recorded. Never rejects. Absent outside of a
   * session. */
  readonly searchWeb?: ((request: SearchRequest) => Promise<SearchAnswer>) | undefined;
  /** Puts questions to the user. Never rejects. Absent where nobody can be asked. */
  readonly putForm?: ((form: Form) => Promise<FormAnswer>) | undefined;
  /** Has hooks answer a question of a server. Null: none of them does. Never rejects. Absent: no hook listens. */
  readonly answerForm?: ((question: ServerQuestion) => Promise<HookedForm | null>) | undefined;
  /** Has another agent do a task, in a session of its own. Never rejects. Absent in a session of an agent. */
  readonly runAgent?: ((order: SubagentRequest, signal: AbortSignal) => Promise<ToolOutcome>) | undefined;
  /** Uses the settings of a skill for the rest of the turn. Absent: the settings of the session stay. */
  readonly useSettings?: ((settings: TurnSettings, source: CommandSource) => Promise<void>) | undefined;
  /** Merges the changes of an agent, by its number, into the working directory. Never rejects. */
  readonly mergeAgent?: ((number: number, signal: AbortSignal) => Promise<ToolOutcome>) | undefined;
}

/** For a call of no session. */
export const noSession: SessionView = { id: '', events: () => [], recent: () => [] };

/** A line of the system prompt. It is left out where one of the tools it `needs` is missing. */
interface Guidance {
  readonly line: string;
  readonly needs?: readonly string[];
}

/** One bad argument, for `details` of `invalid_args`. `argument` is its name, a path such as `list/0`, or '' for the
 * whole. */
export interface ArgumentProblem {
  readonly argument: string;
  readonly problem: string;
  readonly expected: string;
}

/** Arguments that have passed the tool's schema. `defineTool` gives them its type. */
export type ToolArgs = Readonly<Record<string, unknown>>;

/** An image or document as it arrived: from a path, the clipboard, a tool, a server. */
export interface MatchedFile {
  /** For the reader: `shot.png`. */
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The media type that its source declares. Images and PDFs are recognised by their bytes alone. */
  readonly mediaType?: string;
}

export interface ToolOutcome {
  readonly envelope: Envelope;
  /** One line: `3 files found`; the content of the `tool_result` event. */
  readonly summary: string;
  /** Files the call read whole or wrote, absolute paths. */
  readonly files?: readonly FileState[];
  /** Unified diff of what was written. */
  readonly diff?: string;
  /** Bytes before and after, for undo; `before` is null for a file that is new. */
  readonly changes?: readonly FileChange[];
  /** Changes whose contents the store has from the session of an agent. */
  readonly recorded?: RecordedChanges;
  /** The calls of sub-agents that were not allowed. */
  readonly denials?: readonly Denial[];
  /** Images and documents for the model, and others that are stored with the result. */
  readonly attachments?: readonly MatchedFile[];
  /** The kind of screen on which the user answered its questions. */
  readonly answerSource?: AnswerSource;
}

/** A call that was not run because it was not allowed. */
export interface Denial {
  readonly tool_call_id: string;
  readonly name: string;
  /** JSON, as it is recorded. */
  readonly arguments: string;
  /** The call on one line, as its event has it: `bash(rm -rf src)`. */
  readonly content: string;
  /** A sentence without a full stop. */
  readonly reason: string;
  /** The call needed a yes, and nobody could be asked. */
  readonly unasked: boolean;
  /** An instruction for the user, after which such a call runs. */
  readonly remedy: string;
  /** The effects of its rehearsal, if there was one. */
  readonly effects?: Effects;
  /** The session of the sub-agent that made the call. */
  readonly agent_session_id?: string;
}

/** `unwatched`: why there may be more changes than these. */
export interface RecordedChanges {
  readonly changes: readonly ChangeData[];
  readonly folders?: readonly FolderData[];
  readonly unwatched?: string;
}

/** Contents of a link are its target. `null`: there was no file. */
export interface FileChange {
  readonly path: string;
  readonly before: Uint8Array | null;
  readonly after: Uint8Array | null;
  /** `st_mode`, file type included, where it is known. */
  readonly beforeMode?: number;
  readonly afterMode?: number;
  /** Other paths of the same file (hard links), as far as they were seen. */
  readonly beforeLinks?: readonly string[];
  readonly afterLinks?: readonly string[];
}

export interface ToolContext {
  /** Absolute; relative paths start here. */
  readonly cwd: string;
  readonly session: CallSession;
  readonly signal: AbortSignal;
  readonly sandbox: Sandbox;
  /** Policy judged that the call changes nothing. */
  readonly readsOnly?: boolean;
  /** The user answered yes to exactly this call. */
  readonly approved?: boolean;
  /** The resolved paths of this call at the time when policy judged them; absent if policy did not judge them. */
  readonly landings?: readonly string[];
  /** The limits of this call. The tool collects at most `maxOutputBytes`. */
  readonly limits: { readonly timeoutMs: number | null; readonly maxOutputBytes: number };
  /** Files that the session has read or written: sha256 (hex) by absolute path; null for a file that did not exist
   * then. */
  readonly knownFiles: ReadonlyMap<string, string | null>;
  /** The stored output of an event, for `event:SEQ`; null where there is none. */
  eventOutput(seq: number): string | null;
  /** Live output for the screen; a slow reader may lose chunks. */
  progress(chunk: string): void;
  /** Hides secrets in that output; absent where nothing is hidden. */
  readonly outputMask?: StreamMask;
}

/** A call whose tool exists and whose arguments passed the schema. */
export interface BoundCall {
  readonly tool: Tool;
  readonly args: ToolArgs;
  /** Limits of `tools.limits.<name>` applied. */
  readonly limits: ToolContext['limits'];
  /** Of a call that reached its tool through another one. */
  readonly target?: CallTarget;
  /** Of a call whose arguments were expanded: those that the model gave. Rules that stop a call hold for both. */
  readonly given?: ToolArgs;
  /** Facts about the expansion, for the result. */
  readonly facts?: ExpandedArgs['facts'];
}

export type Binding =
  | { readonly ok: true; readonly bound: BoundCall }
  | { readonly ok: false; readonly error: ErrorEnvelope };

/** The catalogue of one session. Names are matched exactly. */
export interface Registry {
  /** Throws on a name that is taken and on a bad name. */
  register(tool: Tool, limits?: ToolLimits): void;
  /** False where there was no such tool. */
  unregister(name: string): boolean;
  list(): readonly Tool[];
  get(name: string): Tool | undefined;
  /** Exists → arguments are JSON (depth ≤ 64, size ≤ 8 MiB) → schema. Never rejects. */
  bind(call: ToolCallData['function']): Promise<Binding>;
  /** The same for a tool that is not in the catalogue. */
  bindOwn(tool: Tool, args: string): Promise<Binding>;
  /** Takes one unit of the tool's `rate_per_min`; the error envelope where none is left. */
  admit(name: string): ErrorEnvelope | null;
}

/** `tools.limits.<name>` in the configuration. */
export interface ToolLimits {
  readonly timeout_ms?: number;
  readonly rate_per_min?: number;
  readonly max_output_bytes?: number;
}

/** Returns a call with the arguments that run in place of those it was made with, where its tool expands them. */
export async function expandCall(bound: BoundCall, signal: AbortSignal): Promise<BoundCall> {
  const expanded = (await bound.tool.expand?.(bound.args, signal)) ?? null;
  return expanded === null ? bound : { ...bound, args: expanded.args, given: bound.args, facts: expanded.facts };
}

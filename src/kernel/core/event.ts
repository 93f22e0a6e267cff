import type { Decider, Effects } from './effects.js';
import { isRecord, type Json, type JsonObject, type JsonSchema } from './json.js';
import type { usageRoles } from './model-names.js';

/** One row of the log as it is stored. Unknown kinds are passed on. Order is `seq` (from 1), never time. Source:
 * contracts 2. */
export interface Event {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data: unknown;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/** A tool as a model sees it. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
  /** The return value that its author declares: a text, any JSON value, or one that fits a schema. Neither sent nor
   * stored, because no wire has a place for it. */
  readonly returns?: 'string' | 'json' | JsonSchema;
}

/** Settings that shape requests; frozen with the catalogue so that a resumed session sends the same bytes. */
export interface RequestSettings {
  /** Most bytes of one tool result's `output` that a model is sent. */
  readonly model_output_size: number;
  readonly tool_protocol?: 'native' | 'text';
  readonly max_output_tokens?: number;
  readonly effort?: string;
}

/** The origin of a message: typed at a terminal (or given on the command line), typed there while a turn ran, `agent
 * send`, the browser page, the HTTP API, an editor, a scheduled or background task, a goal, the end of a usage limit. */
export type MessageSource = 'terminal' | 'queue' | 'send' | 'web' | 'api' | 'editor' | 'task' | 'goal' | 'limit';

/** `note`: the user did not type this; the program informs the model of a change. `command`: the user typed a command,
 * and this is the text that it expands to. `typed`: what the user typed, where the text has more. `withdrawn`: files
 * that the model refused. `source`: what sent the message in the user's place. */
interface UserData {
  readonly note?: true;
  readonly source?: MessageSource;
  /** Identifies a message that another process sent. */
  readonly message_id?: string;
  readonly command?: CommandData;
  readonly typed?: string;
  readonly attachments?: readonly AttachmentData[];
  readonly withdrawn?: {
    readonly provider: string;
    readonly model: string;
    readonly sha256: readonly string[];
  };
}

/** An image or document that was attached to a message or a result. Its bytes are in the store. */
export interface AttachmentData {
  readonly sha256: string;
  /** Derived from the bytes of an image or a PDF. */
  readonly media_type: string;
  /** Pixels, upright. Absent if the file is not an image. */
  readonly width?: number;
  readonly height?: number;
  /** As stored. */
  readonly bytes: number;
  readonly name: string;
}

/** A command that the user typed, and the SHA-256 (hex) of the file that defines it. */
export interface CommandData {
  readonly name: string;
  readonly args: string;
  readonly sha256: string;
}

export interface ToolsData {
  readonly tools: readonly ToolSpec[];
  readonly settings: RequestSettings;
}

/** The reason why a response ended. `interrupted` is our own; the others come from the provider, under the same names
 * for all of them. After `pause` the provider wants to continue. */
export type Stop = 'stop' | 'tool' | 'pause' | 'length' | 'refusal' | 'content_filter' | 'interrupted';

export interface AssistantData {
  /** Shared by the assistant text and the calls of one response; unique within the session. */
  readonly response_id: string;
  readonly provider: string;
  readonly api: string;
  readonly model: string;
  readonly stop: Stop;
  readonly interrupted?: true;
  /** The provider's reasoning items in wire order, byte for byte. Only the wire that made them may read them. */
  readonly reasoning?: readonly Json[];
}

/** The tool of a server that a call reaches through `tool_run`. */
export interface CallTarget {
  readonly name: string;
  readonly server: string;
  /** Of the tool as its server described it then. */
  readonly schema_sha256: string;
}

/** The fields that a provider added to a call beyond its protocol. It goes back with the call to the same provider, wire and model; to
 * others it means nothing. */
export interface CallExtra {
  readonly provider: string;
  readonly api: string;
  readonly model: string;
  /** Fields as the server named them, for example `extra_content` with a signature. */
  readonly fields?: JsonObject;
  /** The id as received, where it is no plain one: it may hold a signature (LiteLLM). */
  readonly signed_id?: string;
}

export interface ToolCallData {
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is the JSON text exactly as received, kept even where it does not parse. */
  readonly function: { readonly name: string; readonly arguments: string };
  readonly response_id: string;
  /** The model's own text of the call, where `arguments` were read from another form. */
  readonly received?: string;
  readonly extra?: CallExtra;
  /** A command of the user made this call for the text of their message. It is no part of the conversation. */
  readonly by?: 'command';
  readonly target?: CallTarget;
}

/** A file as the session knows it after a call: `sha256` of its bytes (hex), or null where it did not exist. */
export interface FileState {
  readonly path: string;
  readonly sha256: string | null;
}

/** A change to one file, as the log has it. `before` and `after` are the SHA-256 (hex) of the contents, or of the
 * target of a link; null where there was no file, or if the contents were not read (`what` distinguishes the two). */
export interface ChangeData {
  /** Absolute. */
  readonly path: string;
  readonly what: 'created' | 'changed' | 'deleted';
  readonly before: string | null;
  readonly after: string | null;
  /** True where the store has the contents for an undo. */
  readonly captured: boolean;
  /** The reason why the contents were not captured. */
  readonly reason?: string;
  /** `st_mode`, file type included, where it is known. */
  readonly before_mode?: number;
  readonly after_mode?: number;
  /** Other paths of the same file (hard links) before and after, as far as they were watched. */
  readonly before_links?: readonly string[];
  readonly after_links?: readonly string[];
  /** Written by earlier versions in place of `folders`: the topmost folder that was made for this file. */
  readonly made_folder?: string;
  /** Written by earlier versions: the topmost folder that went with this file. */
  readonly gone_folder?: string;
}

/** A folder that a call made, removed, or gave another mode. */
export interface FolderData {
  /** Absolute. */
  readonly path: string;
  /** `st_mode`, file type included; null where there was no folder. */
  readonly before_mode: number | null;
  readonly after_mode: number | null;
}

export interface ToolResultData {
  readonly tool_call_id: string;
  readonly name: string;
  /** The envelope of contracts 3 as a JSON text. */
  readonly output: string;
  readonly success: boolean;
  readonly duration_ms?: number;
  /** The files that the call read whole or wrote, with the hashes they had then. */
  readonly files?: readonly FileState[];
  /** A unified diff of what the call changed, for the screen. */
  readonly diff?: string;
  /** The changes to files that the tool reported or that were found by looking at the working tree before and after. */
  readonly changes?: readonly ChangeData[];
  /** The folders that were made, removed, or given another mode. */
  readonly folders?: readonly FolderData[];
  /** The reason why there may be changes that are not listed. */
  readonly unwatched?: string;
  readonly attachments?: readonly AttachmentData[];
  /** Names what decided whether the call ran. Absent: the call could not run at all. */
  readonly decided_by?: Decider;
  /** The kind of screen on which the user answered the questions of the call; absent: a terminal with the session on
   * it, or there were none. */
  readonly answer_source?: AnswerSource;
  /** The effects of its rehearsal. Absent: it was not rehearsed. */
  readonly effects?: Effects;
  readonly kept?: boolean;
  /** True where the program ended before there was a result, and this one was added when the session was resumed. */
  readonly synthetic?: true;
}

/** Tokens of one request; the four are disjoint. */
export interface TokenUsage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
}

export interface UsageData {
  readonly response_id: string;
  readonly provider: string;
  readonly model: string;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  /** Null where the price is not known. */
  readonly cost_usd: number | null;
  /** The request was not part of the conversation: it asked for a summary of it, a title, a search of the web, whether a
   * goal is met, or the answer to a side question. */
  readonly purpose?: 'compaction' | 'web_search' | 'title' | 'hook' | 'goal' | 'side_question';
  /** The kind of work that the request was for: a turn of a session (`main`), one in plan mode, one of a sub-agent, or
   * its purpose. Absent in older events. */
  readonly role?: (typeof usageRoles)[number];
}

/** The usage of a request in the session of a sub-agent, in the log of the session that started the sub-agent. */
interface AgentUsageData extends UsageData {
  readonly agent: string;
  readonly agent_session_id: string;
  readonly tool_call_id: string;
}

/** The conversation is again as it was right after event `to_seq`; later events stay in the log. */
interface RewindData {
  readonly to_seq: number;
  /** The `tool_result` events whose changes to files were undone with it. */
  readonly undone?: readonly number[];
  /** The `tool_result` events whose changes to files were redone with it. */
  readonly redone?: readonly number[];
}

/** Figures of a compaction. */
interface CompactionFigures {
  readonly trigger: 'manual' | 'auto' | 'overflow';
  /** Estimated tokens of the next request. */
  readonly tokens_before: number;
  readonly tokens_after: number;
  /** Estimated cost of the input of a cached request, in US dollars. Absent where the price is not known. */
  readonly usd_before?: number;
  readonly usd_after?: number;
}

/** `content` replaces the events `from_seq` to `to_seq` in requests. The log keeps these events. */
export interface CompactionData extends CompactionFigures {
  readonly from_seq: number;
  readonly to_seq: number;
}

/** Requests have no output of these results any more. The log keeps it. */
export interface OmissionData extends CompactionFigures {
  /** The `seq` of each `tool_result`. */
  readonly seqs: readonly number[];
}

/** The kinds of events that make requests shorter. */
const compactionKinds = ['compaction', 'results_omitted'] as const;

/** Returns true for an event that makes requests shorter. */
export function isCompaction({ kind }: Pick<Event, 'kind'>): boolean {
  return compactionKinds.some((known) => known === kind);
}

/** The changes to files by `undo`, `redo` or `restore`. `content` informs the model of them. */
interface RevertData {
  /** The `tool_result` that was undone or redone; for `restore` the event whose state was asked for. */
  readonly of_seq: number;
  readonly changes: readonly ChangeData[];
  readonly folders?: readonly FolderData[];
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  /** The worktree of a sub-agent that was made again, or removed again. */
  readonly worktree?: AgentWorktree;
}

/** The kinds of other screens on which a permission question can be answered. */
export type AnswerSource = 'watch' | 'web' | 'api' | 'editor';

export interface ApprovalData {
  readonly tool_call_id: string;
  readonly decision: 'allow' | 'deny';
  /** The source of the decision: the user, the policy, a grant of this session, a hook, or headless mode, where no user
   * can be asked. */
  readonly by: 'user' | 'policy' | 'session_grant' | 'hook' | 'headless';
  /** The kind of screen on which the user answered; absent: a terminal with the session on it. */
  readonly source?: AnswerSource;
  readonly risk: string;
  readonly reasons: readonly string[];
  /** SHA-256 (hex) of `name`, a NUL and the arguments as received. */
  readonly call_sha256: string;
  /** The number of times that the call had given the same result, which is why the user was asked. */
  readonly repeated?: number;
  /** The effects of the rehearsal of the call. Absent: it was not rehearsed. */
  readonly effects?: Effects;
  /** The rules that the user made with this answer, and how long they last. */
  readonly rules?: readonly object[];
  readonly lasts?: 'session' | 'always';
}

interface ErrorData {
  readonly code: string;
  readonly message: string;
}

/** A command that the user ran (`!!command`): recorded and not sent to the model. `content` is its output. */
interface ShellData {
  readonly command: string;
  readonly exit_code: number | null;
}

/** A question of the user beside the conversation. No request of the conversation has it, unless the user adds it as a
 * message. `content` is the question. */
export interface SideQuestionData {
  readonly question: string;
  readonly answer: string;
  /** The same as in its `usage` event; null if the provider reported none. */
  readonly usage: UsageData | null;
  /** The user closed the answer before its end. */
  readonly interrupted?: true;
}

/** The model of the conversation from here on. `base_url` is its address without anything secret; absent for the
 * embedded provider and in older events. */
interface ModelData {
  readonly provider: string;
  readonly model: string;
  readonly api?: string;
  readonly base_url?: string;
}

/** Identifies the file of a command or skill whose settings a turn has. */
export type CommandSource = Pick<CommandData, 'name' | 'sha256'>;

/** Settings of a turn beside those of its session, which the file of a command or skill has. `set`: they count until
 * `ended`, which is missing where the program was killed in the turn. */
export interface TurnSettingsData {
  readonly state: 'set' | 'ended';
  readonly command: CommandSource;
  readonly model?: ModelData;
  readonly effort?: string;
  /** Names and patterns of the tools that the turn has. Absent: those of the session. */
  readonly tools?: readonly string[];
  readonly without_tools?: readonly string[];
  readonly only_reads?: true;
  /** Patterns of calls that run without approval. */
  readonly allow?: readonly string[];
}

/** The approval mode, sandbox and limits of the session from here on. A resumed session keeps each value that is
 * stricter than the settings. */
export interface ModeData {
  /** An approval mode: `mutating`. */
  readonly approval: string;
  /** Plan mode: only calls that read are run. */
  readonly plan: boolean;
  /** `off`, `workspace` or `read-only`. */
  readonly sandbox: string;
  /** Null: there is no limit. */
  readonly max_cost_usd: number | null;
  /** Absolute directories beside the working directory, with `:ro` behind those that are only read. Absent: none. */
  readonly directories?: readonly string[];
}

/** The session is a run of a task. `missed` runs that nobody was there for are made good by it. Times are Unix ms. */
interface TaskData {
  readonly task_id: string;
  readonly run_id: string;
  readonly scheduled_for: number;
  readonly missed: number;
}

/** A program of the user that was run at a point of the session. */
export interface HookData {
  /** The point: `PreToolUse`. */
  readonly event: string;
  /** For a server, its address. */
  readonly command: string;
  /** SHA-256 (hex) of the command and of the file that it names. */
  readonly sha256: string;
  /** Null where it was not started, or ended by a signal or in time, and for a server. */
  readonly exit: number | null;
  /** The HTTP status of the answer of a server. */
  readonly status?: number;
  readonly duration_ms: number;
  readonly decision: 'none' | 'allow' | 'ask' | 'deny' | 'stop' | 'failed';
  readonly reason?: string;
  readonly tool_call_id?: string;
  /** The arguments that the tool is given in the place of those of the call. */
  readonly updated_input?: unknown;
  /** Names of the headers that the hook has added to a request. */
  readonly added_headers?: readonly string[];
  /** The output that the hook has replaced. */
  readonly original_output?: string;
}

/** A change of the goal of the session, a condition that turns work towards. A goal that is `paused` continues with
 * `resumed`; one that is `met` or has `ended` is over, unless `resumed` raises the limit that ended it. */
export interface GoalData {
  readonly state: 'set' | 'checked' | 'met' | 'paused' | 'resumed' | 'ended';
  readonly condition: string;
  /** The command whose exit code 0 meets the goal; null: the model shows with results that it is met. */
  readonly check: string | null;
  /** Turns since the goal was set. */
  readonly turns: number;
  readonly max_turns: number;
  /** Most USD since the goal was set; null: no limit of its own. */
  readonly max_cost_usd: number | null;
  /** Of `checked` and `met`: the call that was the check. */
  readonly tool_call_id?: string;
  /** Of a check; null if it was not started or was ended before it finished. */
  readonly exit_code?: number | null;
  /** SHA-256 (hex) of how the check failed, without times and the like: equal ones failed in the same way. */
  readonly failure_sha256?: string;
  /** Of a goal without a check: the events that show that it is met, and the model's sentence about it. */
  readonly evidence?: readonly number[];
  readonly reason?: string;
  /** Of `paused` and `ended`. */
  readonly cause?: GoalCause;
}

/** The cause of a stop of a goal: the user or a denial of the check, a limit, the same failure again and again, a turn that
 * failed, or what only the user can do. */
export type GoalCause = 'user' | 'denied' | 'turns' | 'cost' | 'same_failure' | 'turn_failed' | 'blocked';

/** A usage limit of the provider that a turn has met. `reached`: it stopped the turn. `set`: the turn waits for its end.
 * `continued`: the turn continues. `ended`: the wait was given up. */
export interface LimitData {
  readonly state: 'reached' | 'set' | 'continued' | 'ended';
  readonly provider: string;
  readonly model: string;
  /** ISO 8601, UTC: when the limit ends, as the provider says. */
  readonly retry_at: string;
  /** The words of the provider. */
  readonly message: string;
  /** Of `ended` and `continued`: the user ended the wait, another model is used, or the limit was reached again and
   * again. Absent of `continued`: the time was over. */
  readonly cause?: 'user' | 'model' | 'again';
}

/** The git worktree of a sub-agent. */
export interface AgentWorktree {
  /** Absolute. */
  readonly path: string;
  /** The branch that was made for it; null: a hook made the worktree. */
  readonly branch: string | null;
  /** The commit with the state that it began with. */
  readonly base: string;
  /** The commit with the state of its files at this step. */
  readonly commit?: string;
  /** Submodules that have a worktree inside of it, parents first. Absent: none has. */
  readonly submodules?: readonly SubmoduleWorktree[];
}

/** The worktree of a submodule, inside that of its repository. */
export interface SubmoduleWorktree {
  /** Relative to the top folder. */
  readonly path: string;
  readonly base: string;
  readonly commit?: string;
}

/** A step of a sub-agent that works in the background or in a worktree, in the log of the session that started it. */
export interface AgentData {
  readonly state: 'started' | 'ended' | 'merged' | 'discarded';
  readonly agent_session_id: string;
  readonly agent: string;
  /** The task in a few words. */
  readonly description: string;
  /** The call that started it. */
  readonly tool_call_id: string;
  readonly background: boolean;
  /** Absent: it works in the directory of the session. */
  readonly worktree?: AgentWorktree;
  /** Of `ended`. */
  readonly outcome?: AgentOutcome;
  /** Of `ended`: the last message of the agent, or why there is none. */
  readonly output?: string;
  /** Of `ended`: what it has used so far; null if a price is not known. */
  readonly cost_usd?: number | null;
  /** Of `ended` in a worktree: the files that differ from its base. */
  readonly files?: number;
  readonly added?: number;
  readonly removed?: number;
  /** Of `merged`: the `seq` of the `tool_result` that has the changes of files. */
  readonly of_seq?: number;
  /** Of `merged`: the files that both sides changed, and what is in them now. */
  readonly conflicts?: readonly { readonly path: string; readonly reason: string }[];
}

/** The end of a sub-agent. `stopped`: by the user, or with the program; `interrupted`: the program was killed. */
export type AgentOutcome = 'completed' | 'limit_reached' | 'failed' | 'stopped' | 'interrupted';

/** The command line of a run with options that the session alone does not show. */
interface RunData {
  readonly version: string;
  /** The words behind `agent`; files that options name are written out. */
  readonly arguments: readonly string[];
}

/** The state of the repository before the first call of a run that may change files. `content` says it in a line. */
export interface BaseData {
  /** The top folder of the checkout, absolute. */
  readonly root: string;
  /** The commit that is checked out. */
  readonly commit: string;
  /** The changes since the commit, new files included, as a patch for `git apply`; '' for none, null where they were
   * left out. */
  readonly patch: string | null;
  /** The reason why there is no patch. */
  readonly left_out?: string;
}

/** The session was read from the files of another program. */
interface ImportData {
  /** The program: `claude-code`. */
  readonly tool: string;
  /** Of the program, as its file says; null where it does not. */
  readonly version: string | null;
  /** The id of the conversation there. */
  readonly session: string;
  /** Of the file as it was read (hex). */
  readonly file_sha256: string;
  /** The number of entries that were left out, by kind. */
  readonly dropped: Readonly<Record<string, number>>;
}

/** An event before it is recorded, of one of the kinds that this program writes. */
export type EventDraft =
  | { readonly kind: 'system'; readonly content: string; readonly data: null }
  | { readonly kind: 'tools'; readonly content: string; readonly data: ToolsData }
  | { readonly kind: 'user'; readonly content: string; readonly data: UserData | null }
  | { readonly kind: 'assistant'; readonly content: string; readonly data: AssistantData }
  | { readonly kind: 'tool_call'; readonly content: string; readonly data: ToolCallData }
  | { readonly kind: 'tool_started'; readonly content: null; readonly data: { readonly tool_call_id: string } }
  | { readonly kind: 'tool_result'; readonly content: string; readonly data: ToolResultData }
  | { readonly kind: 'usage'; readonly content: null; readonly data: UsageData }
  | { readonly kind: 'agent_usage'; readonly content: null; readonly data: AgentUsageData }
  | { readonly kind: 'approval'; readonly content: string; readonly data: ApprovalData }
  | { readonly kind: 'shell'; readonly content: string; readonly data: ShellData }
  | { readonly kind: 'side_question'; readonly content: string; readonly data: SideQuestionData }
  | { readonly kind: 'model'; readonly content: string; readonly data: ModelData }
  | { readonly kind: 'mode'; readonly content: string; readonly data: ModeData }
  | { readonly kind: 'turn_settings'; readonly content: string; readonly data: TurnSettingsData }
  | { readonly kind: 'error'; readonly content: string; readonly data: ErrorData }
  | { readonly kind: 'task'; readonly content: string; readonly data: TaskData }
  | { readonly kind: 'hook'; readonly content: string; readonly data: HookData }
  | { readonly kind: 'goal'; readonly content: string; readonly data: GoalData }
  | { readonly kind: 'limit'; readonly content: string; readonly data: LimitData }
  | { readonly kind: 'agent'; readonly content: string; readonly data: AgentData }
  | { readonly kind: 'import'; readonly content: string; readonly data: ImportData }
  | { readonly kind: 'base'; readonly content: string; readonly data: BaseData }
  /** `content`: the same as a line for a shell. */
  | { readonly kind: 'run'; readonly content: string; readonly data: RunData }
  | { readonly kind: 'rewind'; readonly content: string; readonly data: RewindData }
  | { readonly kind: 'compaction'; readonly content: string; readonly data: CompactionData }
  | { readonly kind: 'results_omitted'; readonly content: string; readonly data: OmissionData }
  /** Takes back the compaction, or the omission of results, of that `seq`. */
  | { readonly kind: 'compaction_undone'; readonly content: null; readonly data: { readonly compaction_seq: number } }
  | { readonly kind: 'undo' | 'redo' | 'restore'; readonly content: string; readonly data: RevertData };

/** An event of a kind this program knows. */
export type KnownEvent = EventDraft & { readonly seq: number; readonly createdAt: number };

const required: { readonly [K in EventDraft['kind']]: readonly string[] } = {
  system: [],
  user: [],
  tools: ['tools', 'settings'],
  assistant: ['response_id'],
  tool_call: ['id', 'function', 'response_id'],
  tool_started: ['tool_call_id'],
  tool_result: ['tool_call_id', 'name', 'output'],
  usage: ['input_tokens', 'output_tokens'],
  agent_usage: ['agent_session_id', 'input_tokens', 'output_tokens'],
  approval: ['tool_call_id', 'decision'],
  shell: ['command'],
  side_question: ['question', 'answer'],
  model: ['provider', 'model'],
  mode: ['approval', 'sandbox'],
  turn_settings: ['state', 'command'],
  error: ['code', 'message'],
  task: ['task_id', 'run_id'],
  hook: ['event', 'command'],
  goal: ['state', 'condition'],
  limit: ['state', 'retry_at'],
  agent: ['state', 'agent_session_id', 'agent'],
  import: ['tool', 'session'],
  base: ['root', 'commit'],
  run: ['arguments'],
  rewind: ['to_seq'],
  compaction: ['from_seq', 'to_seq'],
  results_omitted: ['seqs'],
  compaction_undone: ['compaction_seq'],
  undo: ['of_seq', 'changes'],
  redo: ['of_seq', 'changes'],
  restore: ['of_seq', 'changes'],
};

/** The event as a kind we know, or null for an unknown kind and for one whose data lacks what that kind needs. */
export function knownEvent(event: Event): KnownEvent | null {
  if (!Object.hasOwn(required, event.kind)) return null;
  const keys = required[event.kind as EventDraft['kind']];
  if (keys.length > 0 && !isRecord(event.data)) return null;
  const data = event.data as Readonly<Record<string, unknown>>;
  return keys.every((key) => data[key] !== undefined) ? (event as KnownEvent) : null;
}

/** Returns how long a call took (ms); null if its result does not have the time. */
export function tookMs({ duration_ms: ms }: { readonly duration_ms?: unknown }): number | null {
  return typeof ms === 'number' && ms >= 0 && Number.isFinite(ms) ? ms : null;
}

/** The attachments of an event's data. */
export function attachmentsOf(data: unknown): readonly AttachmentData[] {
  const list = isRecord(data) ? data.attachments : null;
  return Array.isArray(list) ? (list as readonly unknown[]).filter(isAttachment) : [];
}

function isAttachment(value: unknown): value is AttachmentData {
  return (
    isRecord(value) &&
    typeof value.sha256 === 'string' &&
    typeof value.media_type === 'string' &&
    typeof value.name === 'string'
  );
}

/** Returns what a request used, of this session or of an agent that works for it; null for any other event. */
export function spentBy(raw: Event): UsageData | null {
  const event = raw.kind === 'usage' || raw.kind === 'agent_usage' ? knownEvent(raw) : null;
  return event?.kind === 'usage' || event?.kind === 'agent_usage' ? event.data : null;
}

/** Returns what the user typed for a message; null for one that the program wrote. */
export function typedText({ content, data }: Extract<EventDraft, { readonly kind: 'user' }>): string | null {
  if (data?.note === true) return null;
  if (data?.command) return `/${data.command.name} ${data.command.args}`.trimEnd();
  return data?.typed ?? content;
}

/** Returns an event after which the conversation continues from event `seq`. `files`: the changes to files that were
 * undone or redone with it. */
export function rewindTo(seq: number, files: Omit<RewindData, 'to_seq'> = {}): EventDraft {
  return { kind: 'rewind', content: `Rewound to event ${seq}.`, data: { to_seq: seq, ...files } };
}

/** Selects the events of a log that count for the conversation. After a `rewind` the same events count as right after
 * event `to_seq`, so a rewind to the event before a rewind takes that one back. A `compaction_undone` takes out the
 * earlier compaction that it names. */
export interface Timeline {
  /** Returns true if the event changes which earlier events count: the conversation must then be built again from
   * `events`. */
  add(event: KnownEvent): boolean;
  /** The events that count, in order, without rewinds and without compactions that were undone. */
  events(): readonly KnownEvent[];
}

/** Returns the events of `log` that count. */
export function countingEvents(log: readonly Event[]): readonly KnownEvent[] {
  const timeline = createTimeline();
  for (const event of log) {
    const known = knownEvent(event);
    if (known) timeline.add(known);
  }
  return timeline.events();
}

export function createTimeline(): Timeline {
  const added: KnownEvent[] = [];
  /** The index of the event each one follows; -1 for the beginning. */
  const before: number[] = [];
  let head = -1;

  const lastUpTo = (seq: number): number => {
    let low = 0;
    let high = added.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((added[middle]?.seq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  };

  return {
    add(event) {
      const isRewind = event.kind === 'rewind' && Number.isInteger(event.data.to_seq);
      before.push(isRewind ? lastUpTo(event.data.to_seq) : head);
      added.push(event);
      head = added.length - 1;
      return isRewind || event.kind === 'compaction_undone';
    },
    events() {
      const chain: KnownEvent[] = [];
      for (let index = head; index >= 0; index = before[index] ?? -1) {
        const event = added[index];
        if (event && event.kind !== 'rewind') chain.push(event);
      }
      const undone = new Set(
        chain.flatMap((event) =>
          event.kind === 'compaction_undone' && event.data.compaction_seq < event.seq
            ? [event.data.compaction_seq]
            : [],
        ),
      );
      return chain.toReversed().filter((event) => !isCompaction(event) || !undone.has(event.seq));
    },
  };
}

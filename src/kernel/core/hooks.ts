import type { Envelope } from './envelope.js';
import type { Event, HookData } from './event.js';
import type { HookedForm, ServerQuestion } from './form.js';
import type { Json } from './json.js';
import type { ToolArgs } from './tool.js';

/** The points of a session at which programs of the user are asked. The names are those of Claude Code; those of
 * requests to a model are those of Gemini CLI. */
export const hookEvents = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionDenied',
  'PostToolBatch',
  'BeforeModel',
  'AfterModel',
  'MessageDisplay',
  'FileChanged',
  'ConfigChange',
  'InstructionsLoaded',
  'Elicitation',
  'Notification',
  'Stop',
  'StopFailure',
  'SubagentStart',
  'SubagentStop',
  'WorktreeCreate',
  'WorktreeRemove',
  'PreCompact',
  'PostCompact',
  'SessionEnd',
] as const;

export type HookEvent = (typeof hookEvents)[number];

/** The way in which a session began. */
export type SessionSource = 'startup' | 'resume' | 'fork' | 'clear' | 'compact';

/** A call as hooks receive it, with placeholders for secrets. */
export interface HookedCall {
  readonly id: string;
  /** Our own name. */
  readonly tool: string;
  readonly args: ToolArgs;
}

/** A call that has a result. */
interface HookedResult {
  readonly call: HookedCall;
  readonly envelope: Envelope;
}

/** A file that the hooks of a session look at. */
export type ChangedFile =
  /** Of a file that the session has read or written. */
  | { readonly event: 'FileChanged'; readonly path: string; readonly change: 'change' | 'unlink' }
  | {
      readonly event: 'ConfigChange';
      readonly source: 'user_settings' | 'project_settings' | 'local_settings';
      readonly path: string;
    };

/** A file of instructions that the model has been given. */
export interface LoadedInstructions {
  readonly path: string;
  readonly memory: 'User' | 'Project' | 'Local';
  readonly reason: 'session_start' | 'nested_traversal' | 'path_glob_match';
  /** The patterns of a rule. */
  readonly globs: readonly string[] | null;
}

/** The input of a hook at such a point. */
export type Occasion =
  | { readonly event: 'SessionStart'; readonly source: SessionSource; readonly model: string }
  | { readonly event: 'UserPromptSubmit'; readonly prompt: string }
  | { readonly event: 'PreToolUse' | 'PermissionRequest'; readonly call: HookedCall }
  | {
      readonly event: 'PostToolUse' | 'PostToolUseFailure';
      readonly call: HookedCall;
      readonly envelope: Envelope;
      readonly durationMs: number;
    }
  | {
      readonly event: 'PermissionDenied';
      readonly call: HookedCall;
      readonly reason: string;
      readonly by: string | null;
    }
  | { readonly event: 'PostToolBatch'; readonly calls: readonly HookedResult[] }
  /** `body`: the request as it is sent, with placeholders for secrets. */
  | { readonly event: 'BeforeModel'; readonly provider: string; readonly model: string; readonly body: Json }
  | { readonly event: 'AfterModel'; readonly provider: string; readonly model: string; readonly answer: Json }
  | { readonly event: 'MessageDisplay'; readonly message: string; readonly text: string }
  | ChangedFile
  | { readonly event: 'InstructionsLoaded'; readonly file: LoadedInstructions }
  | { readonly event: 'Elicitation'; readonly question: ServerQuestion }
  | { readonly event: 'Notification'; readonly type: string; readonly message: string }
  /** `again`: the turn already continues because of a hook. */
  | { readonly event: 'Stop' | 'SubagentStop'; readonly again: boolean; readonly text: string }
  /** `error`: the kind of failure, as Claude Code names it. */
  | { readonly event: 'StopFailure'; readonly error: string; readonly message: string }
  | { readonly event: 'SubagentStart' }
  /** `name`: a word for the new worktree. */
  | { readonly event: 'WorktreeCreate'; readonly name: string }
  | { readonly event: 'WorktreeRemove'; readonly path: string }
  | { readonly event: 'PreCompact'; readonly trigger: 'manual' | 'auto'; readonly instructions: string }
  | { readonly event: 'PostCompact'; readonly trigger: 'manual' | 'auto'; readonly summary: string }
  | { readonly event: 'SessionEnd'; readonly reason: string };

/** The session in which it happens. */
export interface HookScene {
  readonly session: string;
  readonly cwd: string;
  /** Of the user's message that is being worked on, or ''. */
  readonly prompt: string;
  readonly events: () => readonly Event[];
  /** Takes what a hook in the background reports when it has ended. Absent: that is dropped. */
  readonly later?: (answer: HookAnswer) => void;
  /** Asks the model of the session, beside the conversation. Absent: a hook that is a question to a model fails. */
  readonly askModel?: AskModel;
  /** Has a sub-agent that reads files answer. Absent: a hook that needs one fails. */
  readonly askAgent?: AskModel;
}

/** Resolves with the answer, or the reason why there is none. Never rejects. */
export type AskModel = (question: string, signal: AbortSignal) => Promise<ModelAnswer>;

export interface ModelAnswer {
  readonly text: string;
  readonly problem: string | null;
}

/** The combined result of all hooks of one occasion: the strictest decision, and every text. */
export interface HookAnswer {
  /** For the record, in the order of the file. */
  readonly runs: readonly HookData[];
  /** `deny` of a prompt, a stop or a compaction keeps it from happening. */
  readonly decision: 'none' | 'allow' | 'ask' | 'deny';
  /** The reason, in the words of the hook that decided; '' if the hook gave none. */
  readonly reason: string;
  /** Arguments to put in the place of those of the call. */
  readonly args: ToolArgs | null;
  /** A text to put in the place of the output. */
  readonly output: string | null;
  /** Headers to add to a request. */
  readonly headers: Readonly<Record<string, string>>;
  /** The answer to a question of a server; null: the user answers. */
  readonly form: HookedForm | null;
  /** The folder of the worktree that a hook has made; null: none did. */
  readonly worktree: string | null;
  /** Texts to add to the conversation, for the model. */
  readonly context: readonly string[];
  /** The reason why the turn must end here; null: it continues. */
  readonly stop: string | null;
  /** Messages for the user. */
  readonly messages: readonly { readonly level: 'info' | 'warn'; readonly message: string }[];
}

/** A sub-agent, in whose session something happens. */
export interface HookedAgent {
  /** Of its own session. */
  readonly id: string;
  /** Its name: `explore`. */
  readonly type: string;
  /** The user's session, whose id hooks receive. */
  readonly within: { readonly session: string; readonly events: () => readonly Event[] };
}

/** The hooks of one session. */
export interface Hooks {
  readonly source: SessionSource;
  /** Absent: it is a session of the user. That of a sub-agent has no start, no end and no prompt of the user. */
  readonly agent?: HookedAgent;
  /** False: `ask` would start nothing, so nothing need be made ready for it. */
  listens(event: HookEvent): boolean;
  /** Runs the hooks of an occasion side by side. Never rejects. */
  ask(occasion: Occasion, scene: HookScene, signal: AbortSignal): Promise<HookAnswer>;
  /** Returns what has changed on the disk since the last look. `known`: hashes of the files of the session by path. */
  changes?(known: ReadonlyMap<string, string | null>): readonly ChangedFile[];
  /** Waits for hooks in the background until they have ended or the signal is aborted. */
  finish?(signal: AbortSignal): Promise<void>;
}

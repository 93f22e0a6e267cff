import type { Envelope } from './envelope.js';
import type { Event, HookData } from './event.js';
import type { ToolArgs } from './tool.js';

/** The points of a session at which programs of the user are asked. The names are those of Claude Code. */
export const hookEvents = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'PostToolUseFailure',
  'Notification',
  'Stop',
  'SubagentStop',
  'PreCompact',
  'SessionEnd',
] as const;

export type HookEvent = (typeof hookEvents)[number];

/** How a session began. */
export type SessionSource = 'startup' | 'resume' | 'fork' | 'clear' | 'compact';

/** A call as hooks are told of it, with placeholders for secrets. */
export interface HookedCall {
  readonly id: string;
  /** Our own name. */
  readonly tool: string;
  readonly args: ToolArgs;
}

/** What happens at such a point. */
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
  | { readonly event: 'Notification'; readonly type: string; readonly message: string }
  /** `again`: the turn goes on already because a hook wanted it to. */
  | { readonly event: 'Stop' | 'SubagentStop'; readonly again: boolean; readonly text: string }
  | { readonly event: 'PreCompact'; readonly trigger: 'manual' | 'auto'; readonly instructions: string }
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
}

/** What all hooks of one occasion say together: the strictest decision, and every text. */
export interface HookAnswer {
  /** For the record, in the order of the file. */
  readonly runs: readonly HookData[];
  /** `deny` of a prompt, a stop or a compaction keeps it from happening. */
  readonly decision: 'none' | 'allow' | 'ask' | 'deny';
  /** Why, in the words of the hook that decided; '' where it did not say. */
  readonly reason: string;
  /** Arguments to put in the place of those of the call. */
  readonly args: ToolArgs | null;
  /** A text to put in the place of the output. */
  readonly output: string | null;
  /** What the model is to know. */
  readonly context: readonly string[];
  /** Why the turn is to end here; null: it goes on. */
  readonly stop: string | null;
  /** What the user is to know. */
  readonly messages: readonly { readonly level: 'info' | 'warn'; readonly message: string }[];
}

/** A sub-agent, in whose session something happens. */
export interface HookedAgent {
  /** Of its own session. */
  readonly id: string;
  /** Its name: `explore`. */
  readonly type: string;
  /** The session of the user, which is the one that hooks are told of. */
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
  /** Waits for hooks in the background until they have ended or the signal is aborted. */
  finish?(signal: AbortSignal): Promise<void>;
}

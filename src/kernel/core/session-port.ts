import type { CommandData, Event, MessageSource } from './event.js';
import type { Form, FormAnswer } from './form.js';
import type { PermissionAnswer, Question } from './policy.js';
import type { ModelRef } from './projection.js';
import type { Fault } from './provider.js';
import type { Denial, Tool } from './tool.js';
import type { TurnSettings } from './turn-settings.js';
import type { UsageTotals } from './usage-totals.js';

/** The messages of a session to its front ends. `event` is durable: one for each stored row, never merged, dropped or
 * repeated. The others are ephemeral: a slow reader may merge or drop them. */
export type AgentEvent =
  | { readonly type: 'event'; readonly event: Event }
  | { readonly type: 'text_delta' | 'reasoning_delta'; readonly text: string }
  /** All text since the last durable event is void: the request is sent again in `delayMs`. */
  | {
      readonly type: 'retry_scheduled';
      readonly attempt: number;
      readonly maxRetries: number;
      readonly delayMs: number;
      readonly reason: string;
    }
  | { readonly type: 'request_started' }
  | { readonly type: 'tool_output'; readonly callId: string; readonly chunk: string }
  | { readonly type: 'approval_requested'; readonly question: Question }
  | { readonly type: 'approval_resolved'; readonly callId: string; readonly answer: PermissionAnswer['answer'] }
  | { readonly type: 'form_opened'; readonly id: string; readonly form: Form }
  | { readonly type: 'form_closed'; readonly id: string }
  | {
      readonly type: 'notice';
      readonly level: 'info' | 'warn' | 'error';
      readonly code: string;
      readonly message: string;
      /** A note on record says the same: a screen that shows the record shows it once. */
      readonly noted?: true;
      /** A message from elsewhere that a hook held back: no event will have it. */
      readonly heldMessage?: string;
    }
  /** The turn waits for the end of a usage limit, in Unix milliseconds. */
  | { readonly type: 'limit_waiting'; readonly until: number; readonly provider: string }
  /** The wait is over. False: the turn does not continue now. */
  | { readonly type: 'limit_ended'; readonly continued: boolean }
  | { readonly type: 'queue_changed'; readonly queue: readonly QueuedMessage[] }
  | { readonly type: 'turn_started' }
  | { readonly type: 'turn_ended'; readonly end: TurnEnd };

/** `steer`: delivered after the results of the current response; `after`: once the turn has ended. */
export interface QueuedMessage {
  readonly text: string;
  readonly when: 'steer' | 'after';
  /** It is a slash command or a `!command` for the screen, not a message for the model. */
  readonly typed?: true;
  /** Absent: typed at a terminal. */
  readonly source?: MessageSource;
  /** Of a message from elsewhere: it is delivered once, however often it is sent. */
  readonly id?: string;
  /** The screen of this process where it was typed: a command runs there. Not saved. */
  readonly screen?: number;
}

/** A message from elsewhere that is kept on the disk until an event has it. */
export interface KeptMessage extends QueuedMessage {
  readonly id: string;
  readonly source: MessageSource;
}

/** A part of the program that sends a message. `note`: the text is the program's own, not the user's. `source` null:
 * nobody sent it, it is a note like those between turns. */
export interface SentBy {
  readonly source: MessageSource | null;
  readonly note: boolean;
  /** A user wrote it, so that commands in it are expanded. */
  readonly typed?: true;
  /** Of a message from elsewhere. The event has it, so that the message is delivered once. */
  readonly id?: string;
}

export interface TurnEnd {
  readonly status: 'completed' | 'limit_reached' | 'failed' | 'interrupted';
  /** The text of the last response. */
  readonly text: string;
  /** Responses that asked for tools. */
  readonly turns: number;
  readonly toolCalls: number;
  /** The calls that were not allowed, also those of sub-agents, in the order in which they were denied. */
  readonly denials: readonly Denial[];
  /** The limit that ended the turn with `limit_reached`, where it was not `max_tool_turns`. */
  readonly limit?: 'repeated_calls' | 'goal_turns';
  readonly fault?: Fault;
  /** The message from elsewhere that was to begin the turn and that a hook held back. */
  readonly heldMessage?: string;
}

/** The expansion of a message that is a command of the user. */
export interface Expansion {
  /** Null: a message that names what is to be added to it. */
  readonly command: CommandData | null;
  /** A sentence for the user. */
  readonly notice?: string | null;
  /** The settings that the file of the command has for its turn. */
  readonly turn?: TurnSettings;
  /** The sub-agent that does the work of the text. The message has its report instead of the text. */
  readonly delegate?: string;
  /** The calls whose outputs are part of the text, in order. */
  readonly calls: readonly ExpansionCall[];
  /** Returns the text for the model. `outputs`: one for each call. Without a command it begins with the message. */
  text(outputs: readonly string[]): string;
}

/** A call of an expansion. Policy judges it like a call of the model. */
export interface ExpansionCall {
  readonly name: string;
  readonly arguments: string;
  /** A tool that is not in the catalogue. The files of its result are attached to the message, and a message without
   * them is not sent. */
  readonly tool?: Tool;
}

/** Expands a message that begins with a slash or a dollar. Returns null if the message is no command, and a sentence if
 * its command cannot be read. */
export type Expand = (message: string) => Promise<Expansion | string | null>;

/** Everything a front end may do with a session: the REPL, headless mode, a test. */
export interface SessionPort {
  readonly id: string;
  readonly cwd: string;
  ref(): ModelRef;
  /** Runs one user turn. `source`: the sender of the text; without it the user, at a terminal. What others send is
   * taken as it is: no command in it is expanded, unless it is `typed`.
   * Rejects only where a turn is running already: queue the message instead. */
  submit(text: string, source?: SentBy): Promise<TurnEnd>;
  /** Ends the running turn; every open call gets a result. Does nothing when idle. `leaving`: the session is left, and a
   * wait for a usage limit stays. */
  interrupt(why?: 'leaving'): void;
  busy(): boolean;
  enqueue(message: QueuedMessage): void;
  /** Takes every queued message back, oldest first. */
  takeQueue(): readonly QueuedMessage[];
  /** Answers the question about a call, or the form, that was opened under this id. */
  answer(id: string, answer: PermissionAnswer | FormAnswer): void;
  /** The next request goes to this model. */
  switchModel(ref: ModelRef): Promise<void>;
  subscribe(listener: (event: AgentEvent) => void): () => void;
  /** All events. Of a long session most of them may have to be read from the store first. */
  events(): readonly Event[];
  /** The events that are in memory: all since the last compaction, and of those before it all of which there are few,
   * notes to the model among them, and the first messages. The conversation of these is that of all events. */
  recent(): readonly Event[];
  /** The usage so far. */
  totals(): UsageTotals;
}

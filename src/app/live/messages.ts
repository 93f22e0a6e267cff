import type { AnswerSource, MessageSource } from '../../kernel/core/event.js';
import type { FormField, FormValue } from '../../kernel/core/form.js';
import type { TurnEnd } from '../../kernel/core/session-port.js';

/** The protocol between the process that owns a session and its clients: one JSON value on each line, both ways, over
 * `live/<session>.sock`, which only its user can open. A client speaks first, with `hello`. Whoever reads skips a type
 * that it does not know, so processes of other versions can talk. Schema: `config/session-protocol.schema.json`. */

/** A question of the owner as a client shows it. */
export interface FollowerApproval {
  readonly id: string;
  readonly tool: string;
  readonly risk: string;
  /** The act, as the prompt names it: `Run this command?  Dangerous: deletes recursively`. */
  readonly head: string;
  /** All that the call would do, a row each. */
  readonly rows: readonly string[];
  readonly reasons: readonly string[];
  readonly targets: readonly string[];
  /** The calls that "yes, in this session" would allow; null if it allows only this exact call. */
  readonly rules: string | null;
  /** The digest of all the above. An answer names it. */
  readonly shown: string;
}

/** One question of a form as a client shows it. */
export interface FollowerField {
  readonly name: string;
  readonly question: string;
  readonly label: string | null;
  readonly kind: FormField['kind'];
  readonly options: readonly { readonly value: string; readonly label: string; readonly about: string | null }[];
  /** Any number of options may be chosen: the answer is a list. */
  readonly several: boolean;
  /** The answer may be other words than the options. */
  readonly free: boolean;
  readonly required: boolean;
  readonly preset: FormValue | null;
}

/** A form of the owner as a client shows it: questions of the model or of a server. */
export interface FollowerForm {
  readonly id: string;
  /** The source: `the model`, `the server github`. */
  readonly from: string;
  readonly title: string | null;
  readonly message: string;
  readonly fields: readonly FollowerField[];
  /** The digest of all the above. An answer names it. */
  readonly shown: string;
}

/** The kind of a client. `terminal`: its keys go to the owner, which draws its screen. */
type ClientKind = 'watch' | 'web' | 'api' | 'editor' | 'send' | 'ps' | 'terminal';

/** The terminal of a client. `env`: the variables that say what the terminal can do. */
interface ClientTerminal {
  readonly columns: number;
  readonly rows: number;
  readonly env: Readonly<Record<string, string>>;
}

/** From a client to the owner. `ref`: chosen by the client; the owner's `done` repeats it. */
export type ClientMessage =
  | {
      readonly type: 'hello';
      readonly client: ClientKind;
      readonly pid: number;
      readonly version: string;
      readonly terminal?: ClientTerminal;
    }
  /** Queues a message, or starts a turn with it. A second message with the same `ref` is the same message. `done` comes
   * once the message is on the disk. */
  | {
      readonly type: 'message';
      readonly ref: string;
      readonly text: string;
      readonly source: MessageSource;
      readonly when: 'steer' | 'after';
      /** Interrupts the running turn, so that the message is next. */
      readonly interrupt?: true;
    }
  /** Takes a message back that waits in the queue, or on the disk. `id`: its `ref`. `unknown`: the session has it already. */
  | { readonly type: 'withdraw'; readonly ref: string; readonly id: string }
  | { readonly type: 'interrupt'; readonly ref: string }
  /** `shown`: of the question that the client has shown. An answer that allows the call is refused without it. */
  | {
      readonly type: 'answer';
      readonly ref: string;
      readonly id: string;
      readonly shown?: string;
      readonly answer: 'once' | 'session' | 'deny';
      readonly message?: string;
      readonly source: AnswerSource;
    }
  /** Answers a form. `shown`: of the form that the client has shown; values are refused without it. */
  | {
      readonly type: 'fill';
      readonly ref: string;
      readonly id: string;
      readonly shown?: string;
      readonly answer: 'filled' | 'declined';
      readonly values?: Readonly<Record<string, FormValue>>;
      readonly source: AnswerSource;
    }
  /** Ends the owner in order. */
  | { readonly type: 'stop'; readonly ref: string }
  /** Of a terminal: what it sent, base64 (the bytes need not be whole characters). */
  | { readonly type: 'keys'; readonly data: string }
  | { readonly type: 'size'; readonly columns: number; readonly rows: number }
  /** The terminal is stopped (Ctrl-Z), and continues. */
  | { readonly type: 'pause' | 'resume' }
  /** A program that the owner had it run has ended. */
  | {
      readonly type: 'ran';
      readonly ref: string;
      readonly exitCode: number | null;
      /** The output of the program, where `run` asks for that. */
      readonly output?: string;
    };

/** The activity of a session. Source: the formats of `agent ps`. */
export type SessionState = 'working' | 'waiting_for_approval' | 'waiting_for_limit' | 'idle';

/** A session as `agent ps` shows it. */
export interface OwnerFacts {
  readonly session_id: string;
  readonly title: string | null;
  readonly state: SessionState;
  readonly pid: number;
  readonly model: string;
  readonly cost_usd: number;
  /** ISO 8601, UTC: since when it is in this state. */
  readonly since: string;
  readonly cwd: string;
  /** The clients, and the terminal of the owner if it has one. */
  readonly clients: number;
}

/** The end of a turn, as clients get it. */
export interface EndedTurn {
  readonly status: TurnEnd['status'];
  /** Of a turn that has failed. */
  readonly fault?: { readonly code: string; readonly message: string; readonly hint: string };
  /** The `ref` of the message that was to begin the turn and that a hook held back. */
  readonly held?: string;
}

/** From the owner to a client. `state` comes first, and again where a client was too slow. `text` is a part of the answer
 * that is not recorded yet; `after` is the number of the last event before that answer, so the event of the answer,
 * whose number is greater, replaces the text. */
export type OwnerMessage =
  | {
      readonly type: 'state';
      readonly busy: boolean;
      readonly questions: readonly FollowerApproval[];
      /** Absent: the owner is of a version that sends no forms. */
      readonly forms?: readonly FollowerForm[];
      readonly text: string;
      readonly after: number;
      readonly facts: OwnerFacts;
    }
  | { readonly type: 'event'; readonly seq: number }
  | { readonly type: 'text'; readonly text: string; readonly after: number }
  | { readonly type: 'void' }
  | { readonly type: 'output'; readonly callId: string; readonly text: string }
  | { readonly type: 'question'; readonly question: FollowerApproval }
  | { readonly type: 'answered'; readonly id: string }
  | { readonly type: 'form'; readonly form: FollowerForm }
  | { readonly type: 'form_closed'; readonly id: string }
  /** A turn has begun, or has ended. `seq`: the number of the last event by then, so a message whose event has no greater
   * number was in that turn or in an earlier one. `end`: how it has ended. */
  | { readonly type: 'busy'; readonly busy: boolean; readonly seq: number; readonly end?: EndedTurn }
  /** A hook held back the message with this `ref`: no event will have it. `problem`: why. */
  | { readonly type: 'held'; readonly id: string; readonly problem: string }
  /** Reports what became of a message. `problem`: why it was refused; `code` for programs. `kept`: the message is on the disk,
   * and the session gets it when it is opened the next time. */
  | {
      readonly type: 'done';
      readonly ref: string;
      readonly kept?: true;
      readonly problem?: string;
      readonly code?: 'changed' | 'answered' | 'unknown' | 'invalid' | 'failed';
    }
  /** To a terminal: what to print, base64. `rows_above`: then so many rows above the cursor belong to the frame, and a
   * client erases them where the owner is gone. */
  | { readonly type: 'screen'; readonly data: string; readonly rows_above?: number }
  /** To a terminal: a program to run on it, such as an editor. `ran` says how it ended. */
  | {
      readonly type: 'run';
      readonly ref: string;
      readonly command: readonly string[];
      readonly cwd: string;
      readonly env: Readonly<Record<string, string>>;
      /** Keeps what it prints, up to this many bytes, and sends it with `ran`. */
      readonly keepsBytes?: number;
    }
  /** To a terminal: end the program. */
  | { readonly type: 'end_program'; readonly ref: string }
  /** To a terminal: raw mode. */
  | { readonly type: 'raw'; readonly on: boolean }
  /** To a terminal: stop, as for Ctrl-Z. `resume` says that it continues. */
  | { readonly type: 'suspend' }
  /** To a terminal: open a session in its own process, with these arguments of `agent`. */
  | { readonly type: 'open'; readonly arguments: readonly string[] }
  /** The owner lets the client go, in order. `detached`: the session continues without it. */
  | { readonly type: 'end'; readonly exitCode: number; readonly detached: boolean; readonly text: string };

/** The first message of a client. */
export type Hello = Extract<ClientMessage, { readonly type: 'hello' }>;
/** The outcome of a message of a client. */
export type Done = Extract<OwnerMessage, { readonly type: 'done' }>;
/** The first message to a client. */
export type OwnerState = Extract<OwnerMessage, { readonly type: 'state' }>;

import type { AssistantData, RequestSettings, ToolSpec } from './event.js';

/** A conversation as a request shows it: what every wire serialises. Built by `project`, never stored. Each call of an
 * assistant message is answered exactly once, inside that message, so no serialiser can leave one open. */
export interface Conversation {
  readonly system: string;
  readonly tools: readonly ToolSpec[];
  readonly settings: RequestSettings;
  readonly messages: readonly Message[];
}

export type Message = UserMessage | AssistantMessage;

export interface UserMessage {
  readonly role: 'user';
  readonly seq: number;
  readonly content: string;
}

/** One response of a model: its text, its calls in order, each with its result. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly seq: number;
  readonly text: string;
  /** Null where the response had calls and no text or reasoning. */
  readonly data: AssistantData | null;
  readonly calls: readonly AnsweredCall[];
}

export interface AnsweredCall {
  /** Unique within the conversation. */
  readonly id: string;
  readonly name: string;
  /** As received; may not be JSON. A wire sends `{}` for what is not a JSON object. */
  readonly arguments: string;
  readonly result: {
    /** The envelope as JSON text, cut to `model_output_size`. */
    readonly output: string;
    readonly success: boolean;
  };
}

/** Which model a request is for. */
export interface ModelRef {
  readonly provider: string;
  readonly api: Api;
  readonly model: string;
  /** Where it is asked: the base URL without user name, password and query. Absent for the embedded provider. */
  readonly baseUrl?: string;
}

/** The wires. `offline` is the embedded provider. */
export type Api = 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'offline';

import type { Json, JsonSchema } from './json.js';
import { isRecord } from './json.js';

/** One row of the log as it is stored. Unknown kinds are carried along. Order is `seq` (from 1), never time. Source: contracts 2. */
export interface Event {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data: unknown;
  /** Unix milliseconds. */
  readonly createdAt: number;
}

/** A tool as a model sees it. */
export interface ToolSpec { readonly name: string; readonly description: string; readonly input_schema: JsonSchema }

/** Settings that shape requests; frozen with the catalogue so that a resumed session sends the same bytes. */
export interface RequestSettings {
  /** Most bytes of one tool result's `output` that a model is sent. */
  readonly model_output_size: number;
  readonly tool_protocol?: 'native' | 'text';
  readonly max_output_tokens?: number;
  readonly effort?: string;
}

/** `note`: not typed by the person; the program tells the model what has changed around it. */
export interface UserData { readonly note: true }

export interface ToolsData { readonly tools: readonly ToolSpec[]; readonly settings: RequestSettings }

/** How a response ended. `interrupted` is ours, the others are the provider's, named alike for all of them. */
export type Stop = 'stop' | 'tool' | 'length' | 'refusal' | 'content_filter' | 'interrupted';

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

export interface ToolCallData {
  readonly id: string;
  readonly type: 'function';
  /** `arguments` is the JSON text exactly as received, kept even where it does not parse. */
  readonly function: { readonly name: string; readonly arguments: string };
  readonly response_id: string;
}

/** A file as the session knows it after a call: `sha256` of its bytes (hex), or null where it did not exist. */
export interface FileState { readonly path: string; readonly sha256: string | null }

export interface ToolResultData {
  readonly tool_call_id: string;
  readonly name: string;
  /** The envelope of contracts 3 as a JSON text. */
  readonly output: string;
  readonly success: boolean;
  readonly duration_ms: number;
  /** Absolute paths the call read whole or wrote, with what their bytes hashed to then. */
  readonly files?: readonly FileState[];
  /** A unified diff of what the call changed, for the screen. */
  readonly diff?: string;
  /** True where the result was made up on restore, because the program ended before there was one. */
  readonly synthetic?: true;
}

/** Tokens of one request; the four are disjoint. */
export interface Usage { readonly input: number; readonly cacheRead: number; readonly cacheWrite: number; readonly output: number }

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
}

export interface ApprovalData {
  readonly tool_call_id: string;
  readonly decision: 'allow' | 'deny';
  /** Who decided: the person, the policy, a grant of this session, or nobody who could be asked. */
  readonly by: 'user' | 'policy' | 'session_grant' | 'headless';
  readonly risk: string;
  readonly reasons: readonly string[];
  /** SHA-256 (hex) of `name`, a NUL and the arguments as received. */
  readonly call_sha256: string;
}

export interface ErrorData { readonly code: string; readonly message: string }

/** A command the person ran themselves (`!!command`): on record, not sent to the model. `content` is its output. */
export interface ShellData { readonly command: string; readonly exit_code: number | null }

/** What may be appended: the kinds this program writes. */
export type EventDraft =
  | { readonly kind: 'system'; readonly content: string; readonly data: null }
  | { readonly kind: 'tools'; readonly content: string; readonly data: ToolsData }
  | { readonly kind: 'user'; readonly content: string; readonly data: UserData | null }
  | { readonly kind: 'assistant'; readonly content: string; readonly data: AssistantData }
  | { readonly kind: 'tool_call'; readonly content: string; readonly data: ToolCallData }
  | { readonly kind: 'tool_started'; readonly content: null; readonly data: { readonly tool_call_id: string } }
  | { readonly kind: 'tool_result'; readonly content: string; readonly data: ToolResultData }
  | { readonly kind: 'usage'; readonly content: null; readonly data: UsageData }
  | { readonly kind: 'approval'; readonly content: string; readonly data: ApprovalData }
  | { readonly kind: 'shell'; readonly content: string; readonly data: ShellData }
  | { readonly kind: 'model'; readonly content: string; readonly data: { readonly provider: string; readonly model: string } }
  | { readonly kind: 'error'; readonly content: string; readonly data: ErrorData };

/** An event of a kind this program knows. */
export type KnownEvent = EventDraft & { readonly seq: number; readonly createdAt: number };

const required: { readonly [K in EventDraft['kind']]: readonly string[] } = {
  system: [], user: [],
  tools: ['tools', 'settings'],
  assistant: ['response_id'],
  tool_call: ['id', 'function', 'response_id'],
  tool_started: ['tool_call_id'],
  tool_result: ['tool_call_id', 'name', 'output'],
  usage: ['input_tokens', 'output_tokens'],
  approval: ['tool_call_id', 'decision'],
  shell: ['command'],
  model: ['provider', 'model'],
  error: ['code', 'message'],
};

/** The event as a kind we know, or null for an unknown kind and for one whose data lacks what that kind needs. */
export function knownEvent(event: Event): KnownEvent | null {
  if (!Object.hasOwn(required, event.kind)) return null;
  const keys = required[event.kind as EventDraft['kind']];
  if (keys.length > 0 && !isRecord(event.data)) return null;
  const data = event.data as Readonly<Record<string, unknown>>;
  return keys.every((key) => data[key] !== undefined) ? (event as KnownEvent) : null;
}

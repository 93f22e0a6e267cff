import type { AgentEvent, QueuedMessage, TurnEnd } from './agent-event.js';
import type { Event } from './event.js';
import type { ModelRef } from './conversation.js';
import type { Answer } from './policy.js';

/** All that a front end may do with a session: the REPL, headless mode, a test. */
export interface SessionPort {
  readonly id: string;
  readonly cwd: string;
  ref(): ModelRef;
  /** One user turn. Rejects never. A second call while a turn runs is refused by a rejected promise: queue instead. */
  submit(text: string): Promise<TurnEnd>;
  /** Ends the running turn; every open call gets a result. Does nothing when idle. */
  interrupt(): void;
  busy(): boolean;
  enqueue(message: QueuedMessage): void;
  /** Takes every queued message back, oldest first. */
  takeQueue(): readonly QueuedMessage[];
  answer(callId: string, answer: Answer): void;
  /** The next request goes to this model. */
  switchModel(ref: ModelRef): Promise<void>;
  subscribe(listener: (event: AgentEvent) => void): () => void;
  events(): readonly Event[];
}

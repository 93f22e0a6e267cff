import type { Event } from '../../kernel/core/event.js';
import type { Form } from '../../kernel/core/form.js';
import type { Question } from '../../kernel/core/policy.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import type { SessionState } from './messages.js';
import type { OwnedSession } from './owner-host.js';

/** Returns true if the event holds the text that streamed before it, or follows that text. */
export function endsText({ kind }: Pick<Event, 'kind'>): boolean {
  return kind === 'assistant' || kind === 'tool_call';
}

/** The present activity of a session, for clients that come later. */
export class OwnedState {
  readonly questions = new Map<string, Question>();
  /** The ids of questions and forms that were answered. */
  readonly answered = new Set<string>();
  readonly forms = new Map<string, Form>();
  readonly #session: OwnedSession;
  /** The answer that is not recorded yet. */
  #text: string[] = [];
  #textAfter = 0;
  #isLimited = false;
  #state: SessionState = 'idle';
  #sinceMs = Date.now();

  constructor(session: OwnedSession) {
    this.#session = session;
  }

  take(event: AgentEvent): void {
    if (event.type === 'approval_requested') this.questions.set(event.question.callId, event.question);
    if (event.type === 'approval_resolved') this.close(event.callId);
    if (event.type === 'form_opened') this.forms.set(event.id, event.form);
    if (event.type === 'form_closed') this.closeForm(event.id);
    if (event.type === 'limit_waiting') this.#isLimited = true;
    if (event.type === 'limit_ended' || event.type === 'turn_ended') this.#isLimited = false;
    this.#noteText(event);
    const state = this.#now();
    if (state === this.#state) return;
    this.#state = state;
    this.#sinceMs = Date.now();
  }

  /** A question is answered. */
  close(id: string): void {
    if (this.questions.delete(id)) this.answered.add(id);
  }

  /** A form is answered. */
  closeForm(id: string): void {
    if (this.forms.delete(id)) this.answered.add(id);
  }

  /** The answer in flight. `after`: the number of the last event before it. */
  text(): { readonly text: string; readonly after: number } {
    return { text: this.#text.join(''), after: this.#textAfter };
  }

  state(): { readonly state: SessionState; readonly sinceMs: number } {
    return { state: this.#state, sinceMs: this.#sinceMs };
  }

  #now(): SessionState {
    if (this.questions.size + this.forms.size > 0) return 'waiting_for_approval';
    if (!this.#session.busy()) return 'idle';
    return this.#isLimited ? 'waiting_for_limit' : 'working';
  }

  #noteText(event: AgentEvent): void {
    if (event.type === 'text_delta') {
      // Events that are recorded and not announced yet have their numbers, too.
      if (this.#text.length === 0) this.#textAfter = this.#session.recent().at(-1)?.seq ?? 0;
      this.#text.push(event.text);
    } else if (event.type === 'retry_scheduled' || (event.type === 'event' && endsText(event.event))) this.#text = [];
  }
}

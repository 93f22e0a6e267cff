import type { Session } from '../../kernel/agent/session.js';
import { addNote } from '../../kernel/agent/session-note.js';
import { clampText } from '../../kernel/core/envelope.js';
import type { Event } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import { addAll } from '../../kernel/core/lists.js';
import type { Denial, ToolOutcome } from '../../kernel/core/tool.js';
import { succeeded } from '../../kernel/tools/define-tool.js';
import { agentName, sizeText, type TrackedAgent } from './agent-log.js';
import { endWords } from './record-agents.js';

/** The result of a call whose agent works in the background. */
export function receiptOf(agent: TrackedAgent, place: string | null): ToolOutcome {
  const where = place === null ? '' : ` It works in the worktree ${agent.worktree?.path ?? ''}.`;
  return succeeded(`Running in the background as agent ${agent.number}`, {
    output: `Agent ${agent.number} works in the background.${where} A note reports its end; do not wait for it.`,
    agent_id: agent.number,
    agent_session_id: agent.sessionId,
    running: true,
    ...(agent.worktree === null ? {} : { worktree: { path: agent.worktree.path } }),
  });
}

const maxOutputBytes = 16 * 1024;

/** Says to the model that an agent in the background has ended, with its last message. */
export function endNote(agent: TrackedAgent, merged: string | null): string {
  const { outcome, output, worktree, sessionId } = agent;
  const said =
    output.trim() === '' ? 'It said nothing.' : `Its last message:\n${clampText(output, maxOutputBytes).text}`;
  const tree = worktree === null ? '' : `\n${treeNote(agent, merged)}`;
  return `[Note: ${agentName(agent)} ${endWords[outcome ?? 'completed']} (agent_session_id ${sessionId}). ${said}${tree}]`;
}

/** Says to the model where the changes of an agent are. */
export function treeNote(agent: TrackedAgent, merged: string | null): string {
  const { worktree, size, number } = agent;
  if (worktree === null) return 'It changed nothing, and its worktree was removed.';
  if (merged?.startsWith('Merged')) return merged;
  const why = merged === null ? '' : ` ${merged}`;
  return (
    `Its changes (${sizeText(size)}) are in ${worktree.path}, not in the working directory.${why} ` +
    `The user decides about them; to propose a merge, call agent with merge ${number}.`
  );
}

/** Turns that begin by themselves, one after the other without a message of the user. */
const mostWakes = 20;
const seenLate = '[Note: the note above came after your last answer. Continue if there is something to do.]';

/** Gives the notes about the ends of agents to the session: to a turn that runs, or as the beginning of the next. */
export class EndNotes {
  /** Returns the session with the id, and whether its notes begin turns. */
  readonly #find: (sessionId: string) => { readonly session: Session | undefined; readonly wakes: boolean };
  /** Notes that no turn has had. */
  #pending: string[] = [];
  /** Notes that a turn was given while it ran. */
  #told: string[] = [];
  #denials: Denial[] = [];
  #session: Session | null = null;
  #unfollow = (): void => undefined;
  #inRow = 0;
  #queued = 0;
  #isClosed = false;
  /** A headless run waits for agents in place of a turn, and begins the turns itself. */
  #isDriven = false;

  constructor(find: (sessionId: string) => { readonly session: Session | undefined; readonly wakes: boolean }) {
    this.#find = find;
  }

  follow(sessionId: string): void {
    const { session } = this.#find(sessionId);
    if (this.#session !== null || !session) return;
    this.#session = session;
    this.#unfollow = session.subscribe((event) => {
      if (event.type === 'queue_changed') this.#queued = event.queue.length;
      if (event.type === 'event' && isTyped(event.event)) this.#inRow = 0;
      if (event.type === 'turn_ended' || event.type === 'queue_changed') this.#wakeSoon();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#unfollow();
    const session = this.#session;
    if (session) for (const note of this.#pending.splice(0)) addNote(session, note);
  }

  /** Begins turns for whoever waits for the agents. */
  drive(on: boolean): void {
    this.#isDriven = on;
  }

  /** Adds a note, and the calls of its agent that were not allowed. */
  add(note: string, denials: readonly Denial[]): void {
    addAll(this.#denials, denials);
    const session = this.#session;
    if (!session) return;
    if (this.#isClosed) addNote(session, note);
    else if (session.busy() && !this.#isDriven) {
      session.tell(note);
      this.#told.push(note);
    } else if (this.#mayWake() || this.#isDriven) {
      this.#pending.push(note);
      this.#wakeSoon();
    } else addNote(session, note);
  }

  /** Takes the calls of agents in the background that were not allowed. */
  takeDenials(): readonly Denial[] {
    return this.#denials.splice(0);
  }

  /** Returns the message that the next turn begins with; null where there is nothing new. */
  nextMessage(): string | null {
    const session = this.#session;
    const late = session !== null && this.#told.some((note) => isUnseen(session.recent(), note));
    const pending = this.#pending.splice(0);
    this.#told = [];
    if (pending.length > 0) return pending.join('\n\n');
    return late ? seenLate : null;
  }

  #mayWake(): boolean {
    return this.#session !== null && this.#find(this.#session.id).wakes && this.#inRow < mostWakes;
  }

  /** Other listeners hear of the end of a turn first. */
  #wakeSoon(): void {
    if (this.#pending.length + this.#told.length === 0 || this.#isDriven || this.#isClosed) return;
    setImmediate(() => {
      this.#wake();
    });
  }

  #wake(): void {
    const session = this.#session;
    if (!session || this.#isClosed || this.#isDriven || session.busy() || this.#queued > 0) return;
    if (!this.#mayWake()) {
      for (const note of this.#pending.splice(0)) addNote(session, note);
      this.#told = [];
      return;
    }
    const message = this.nextMessage();
    if (message === null) return;
    this.#inRow += 1;
    if (this.#inRow === mostWakes)
      session.notify({
        level: 'warn',
        code: 'agent_wakes',
        message: `${mostWakes} turns began because an agent had ended. The next ends wait for your message.`,
      });
    void session.submit(message, { source: null, note: true }).catch(() => undefined);
  }
}

function isTyped({ kind, data }: Event): boolean {
  return kind === 'user' && !(isRecord(data) && data.note === true);
}

/** Returns true if the model has said or called nothing since it got a note. */
function isUnseen(events: readonly Event[], note: string): boolean {
  const from = events.findLastIndex(({ kind, content }) => kind === 'user' && content === note);
  return from >= 0 && !events.slice(from).some(({ kind }) => kind === 'assistant' || kind === 'tool_call');
}

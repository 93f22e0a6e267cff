import type { Session } from '../../kernel/agent/session.js';
import { PartKey } from '../../kernel/console/parts.js';
import type { EndNotes } from './end-notes.js';

/** An agent that runs now, in the background or in a worktree. */
export interface RunningAgent {
  /** Null while it is opened. */
  readonly child: Session | null;
  readonly background: boolean;
  /** Its last step. */
  readonly line: string;
  stop(): void;
}

/** The agents of one session that run, and the notes about their ends. */
export interface RunningAgents {
  readonly notes: Pick<EndNotes, 'drive' | 'nextMessage' | 'takeDenials'>;
  /** Returns those that run, by the ids of their sessions. */
  running(): ReadonlyMap<string, RunningAgent>;
  /** Resolves once an agent in the background has ended; null if none runs. */
  nextEnd(): Promise<unknown> | null;
}

/** The agents of a run, by the sessions that they work for. */
export interface AgentDesk {
  /** The sessions of the user that are open. */
  readonly sessions: Map<string, Session>;
  /** The agents of each session in which one was started. */
  readonly agents: Map<string, RunningAgents>;
  /** Notes for the model begin a turn: a REPL looks after the sessions. */
  wakes: boolean;
  /** Merges and discards that run: sessions end after them. */
  readonly settling: Set<Promise<unknown>>;
}

export const agentDesk = new PartKey<AgentDesk>('sub-agents');

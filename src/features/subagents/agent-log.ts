import { changeSets } from '../../kernel/agent/file-history.js';
import {
  type AgentData,
  type AgentOutcome,
  type AgentWorktree,
  type Event,
  knownEvent,
} from '../../kernel/core/event.js';

/** A sub-agent that works in the background or in a worktree, as the log of its session shows it. */
export interface TrackedAgent {
  /** Its number in the session, from 1. */
  readonly number: number;
  readonly sessionId: string;
  readonly agent: string;
  readonly description: string;
  readonly callId: string;
  readonly background: boolean;
  /** `running`: its end is not in the log. A merge or a discard that was undone does not count. */
  readonly state: 'running' | 'ended' | 'merged' | 'discarded';
  /** Null: it works in the directory of the session, or its worktree had no changes. */
  readonly worktree: AgentWorktree | null;
  readonly outcome: AgentOutcome | null;
  readonly output: string;
  readonly costUsd: number | null;
  readonly size: { readonly files: number; readonly added: number; readonly removed: number };
  readonly conflicts: NonNullable<AgentData['conflicts']>;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly endedAt: number | null;
}

const noSize = { files: 0, added: 0, removed: 0 };

/** Returns the agents of a session in the order in which they were started. */
export function trackedAgents(events: readonly Event[]): readonly TrackedAgent[] {
  const tracked = new Map<string, TrackedAgent>();
  if (!events.some(({ kind }) => kind === 'agent')) return [];
  const undone = new Set(changeSets(events).flatMap((set) => (set.undoneBy === null ? [] : [set.seq])));
  for (const raw of events) {
    const event = raw.kind === 'agent' ? knownEvent(raw) : null;
    if (event?.kind !== 'agent') continue;
    const { agent_session_id: id } = event.data;
    const known = tracked.get(id);
    const isUndone = undone.has(event.seq) || (event.data.of_seq !== undefined && undone.has(event.data.of_seq));
    if (known === undefined) tracked.set(id, begun(tracked.size + 1, event.data, event.createdAt));
    else if (!isUndone) tracked.set(id, stepped(known, event.data, event.createdAt));
    else if (event.data.worktree) tracked.set(id, { ...known, worktree: event.data.worktree });
  }
  return [...tracked.values()];
}

function begun(number: number, data: AgentData, at: number): TrackedAgent {
  return {
    number,
    sessionId: data.agent_session_id,
    agent: data.agent,
    description: data.description,
    callId: data.tool_call_id,
    background: data.background,
    state: 'running',
    worktree: data.worktree ?? null,
    outcome: null,
    output: '',
    costUsd: null,
    size: noSize,
    conflicts: [],
    startedAt: at,
    endedAt: null,
  };
}

function stepped(known: TrackedAgent, data: AgentData, at: number): TrackedAgent {
  const worktree = data.worktree ?? (data.state === 'ended' ? null : known.worktree);
  switch (data.state) {
    case 'started':
      return { ...begun(known.number, data, at), worktree: data.worktree ?? null };
    case 'ended': {
      const { files = 0, added = 0, removed = 0 } = data;
      return {
        ...known,
        state: 'ended',
        worktree,
        outcome: data.outcome ?? 'completed',
        output: data.output ?? '',
        costUsd: data.cost_usd ?? null,
        size: { files, added, removed },
        endedAt: at,
      };
    }
    case 'merged':
      return { ...known, state: 'merged', worktree, conflicts: data.conflicts ?? [] };
    case 'discarded':
      return { ...known, state: 'discarded', worktree };
    default:
      return data.state satisfies never;
  }
}

/** Finds an agent by its number, or by the beginning of the id of its session. */
export function findTracked(agents: readonly TrackedAgent[], text: string): TrackedAgent | undefined {
  const wanted = text.trim().toLowerCase();
  if (/^#?\d{1,6}$/.test(wanted)) return agents.find(({ number }) => number === Number(wanted.replace('#', '')));
  return wanted.length < 6 ? undefined : agents.find(({ sessionId }) => sessionId.toLowerCase().startsWith(wanted));
}

/** Returns true where its changes wait to be merged or discarded. */
export function isUnmerged({ state, worktree }: TrackedAgent): boolean {
  return state === 'ended' && worktree !== null;
}

/** `agent 2 (general: write the parser)`. */
export function agentName({
  number,
  agent,
  description,
}: Pick<TrackedAgent, 'number' | 'agent' | 'description'>): string {
  return `agent ${number} (${agent}: ${description})`;
}

/** `3 files, +12 −4`. */
export function sizeText({ files, added, removed }: TrackedAgent['size']): string {
  return `${files} ${files === 1 ? 'file' : 'files'}, +${added} −${removed}`;
}

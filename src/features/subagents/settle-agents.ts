import { addNote } from '../../kernel/agent/session-note.js';
import type { Session } from '../../kernel/agent/session.js';
import { spentUsd } from '../../kernel/agent/budget.js';
import type { Event } from '../../kernel/core/event.js';
import type { TurnEnd } from '../../kernel/core/session-port.js';
import type { Store } from '../../kernel/core/store.js';
import type { GitPlace } from '../../kernel/tools/worktrees/agent-worktree.js';
import type { AgentDesk } from './agent-parts.js';
import { agentName, isUnmerged, sizeText, type TrackedAgent, trackedAgents } from './agent-log.js';
import { endNote } from './end-notes.js';
import { appendEnd, waysOut } from './record-agents.js';
import { syncUsage } from './run-agent.js';
import { endWorktree, type MergeScene, recoverWorktrees } from './settle-worktrees.js';

/** Waits for the agents in the background of a session. Each end begins a turn, until there is nothing to wait for. */
export async function settleAgents(desk: AgentDesk, session: Session, first: TurnEnd): Promise<TurnEnd> {
  const agents = desk.agents.get(session.id);
  if (!agents) return first;
  let end = withDenials(first, agents.notes.takeDenials());
  agents.notes.drive(true);
  try {
    while (end.status === 'completed') {
      const message = agents.notes.nextMessage();
      if (message !== null) {
        const next = await session.submit(message, { source: null, note: true });
        end = withDenials(joinEnds(end, next), agents.notes.takeDenials());
        continue;
      }
      const nextEnd = agents.nextEnd();
      if (nextEnd === null) return end;
      const isAborted = await session.workAlone(async ({ signal }) => {
        const aborted = new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
        await Promise.race([nextEnd, aborted]);
        return signal.aborted;
      });
      if (isAborted) end = { ...end, status: 'interrupted' };
    }
    return end;
  } finally {
    agents.notes.drive(false);
    for (const agent of trackedAgents(session.recent()).filter(isUnmerged))
      session.notify({ level: 'warn', code: 'agent_changes', message: unmergedText(agent, session.id) });
  }
}

function unmergedText(agent: TrackedAgent, sessionId: string): string {
  const { number, worktree, size } = agent;
  const more = `-r ${sessionId.slice(0, 13)}`;
  return (
    `${agentName(agent)} changed ${sizeText(size)} in ${worktree?.path ?? ''}. ` +
    `agent agents diff ${number} ${more} shows them; agent agents merge ${number} ${more} or discard.`
  );
}

function joinEnds(sum: TurnEnd, end: TurnEnd): TurnEnd {
  return {
    ...end,
    turns: sum.turns + end.turns,
    toolCalls: sum.toolCalls + end.toolCalls,
    denials: [...sum.denials, ...end.denials],
  };
}

function withDenials(end: TurnEnd, denials: TurnEnd['denials']): TurnEnd {
  return denials.length === 0 ? end : { ...end, denials: [...end.denials, ...denials] };
}

/** Brings the agents of a resumed session up to date: those that the end of the program interrupted get their end and
 * what they spent, merges are finished, and the user hears of changes that wait. */
export async function settleTracked(
  session: Session,
  at: GitPlace,
  store: Pick<Store, 'load' | 'session'>,
): Promise<void> {
  const { capture } = session.deps().tools;
  if (!capture) return;
  try {
    await endInterrupted({ record: session.record, at, capture }, store, (note) => {
      addNote(session, note);
    });
  } catch (error) {
    const message = `The worktrees of sub-agents could not be looked at: ${error instanceof Error ? error.message : String(error)}`;
    session.notify({ level: 'warn', code: 'agent_changes', message });
  }
  for (const agent of trackedAgents(session.recent()).filter(isUnmerged)) {
    const message = `The changes of ${agentName(agent)} are not merged (${sizeText(agent.size)}): ${waysOut(agent)}.`;
    session.notify({ level: 'info', code: 'agent_changes', message });
  }
}

/** Gives the agents that run no more their end, and finishes merges and removals that were interrupted. `addModelNote`: gets notes for the model. */
export async function endInterrupted(
  scene: MergeScene,
  store: Pick<Store, 'load' | 'session'>,
  addModelNote: (note: string) => Promise<void> | void,
): Promise<void> {
  for (const agent of trackedAgents(scene.record.recent()).filter(({ state }) => state === 'running')) {
    const events = (await store.session(agent.sessionId)) === null ? [] : await store.load(agent.sessionId);
    await syncUsage(scene.record, events, agent);
    const tree = agent.worktree && (await endWorktree(scene, agent.worktree));
    const ended: TrackedAgent = {
      ...agent,
      state: 'ended',
      outcome: 'interrupted',
      output: lastText(events),
      costUsd: spentUsd(events),
      size: tree ?? { files: 0, added: 0, removed: 0 },
      worktree: tree?.worktree ?? null,
    };
    await appendEnd(ended, scene.record);
    if (agent.background) await addModelNote(endNote(ended, null));
  }
  await recoverWorktrees(scene);
}

function lastText(events: readonly Event[]): string {
  return events.findLast(({ kind, content }) => kind === 'assistant' && Boolean(content?.trim()))?.content ?? '';
}

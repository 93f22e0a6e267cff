import type { AgentCall, TurnDeps } from '../../kernel/agent/dependencies.js';
import { changesData } from '../../kernel/agent/file-history.js';
import type { Recorder } from '../../kernel/agent/recorder.js';
import { isError } from '../../kernel/core/envelope.js';
import type { AgentOutcome, AgentWorktree } from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import type { RecordedChanges, ToolOutcome } from '../../kernel/core/tool.js';
import { isRecord } from '../../kernel/core/json.js';
import { agentName, sizeText, type TrackedAgent, trackedAgents } from './agent-log.js';
import type { AgentWork } from './run-agent.js';
import { type EndedWorktree, stepOf } from './settle-worktrees.js';

/** Records that an agent begins, with the place of its worktree, which need not be there yet: a kill leaves none that
 * nobody knows. */
export async function recordStart(
  { role, order, id }: AgentWork,
  { parent, call, background }: { readonly parent: TurnDeps; readonly call: AgentCall; readonly background: boolean },
  worktree: AgentWorktree | null,
): Promise<TrackedAgent> {
  const { record, secrets } = parent;
  const find = (): TrackedAgent | undefined => trackedAgents(record.recent()).find(({ sessionId }) => sessionId === id);
  const known = find();
  const number = known?.number ?? trackedAgents(record.recent()).length + 1;
  const description = firstLine(secrets?.text(order.description) ?? order.description, 120);
  const name = agentName({ number, agent: role.name, description });
  const where = worktree === null ? '' : ` in the worktree ${worktree.path}`;
  await record.append({
    kind: 'agent',
    content: `${known ? 'Continued' : 'Started'} ${name}${background ? ' in the background' : ''}${where}.`,
    data: {
      state: 'started',
      agent_session_id: id,
      agent: role.name,
      description,
      tool_call_id: call.id,
      background,
      ...(worktree ? { worktree } : {}),
    },
  });
  const found = find();
  if (!found) throw new Error('the start of an agent is not in its log');
  return found;
}

/** The end of an agent. `tree`: its worktree, where it changed anything. */
interface Ending {
  readonly outcome: ToolOutcome;
  readonly tree: EndedWorktree | null;
  readonly wasStopped: boolean;
}

const noSize = { files: 0, added: 0, removed: 0 };

export const endWords: Readonly<Record<AgentOutcome, string>> = {
  completed: 'has finished',
  limit_reached: 'has reached its limit',
  failed: 'has failed',
  stopped: 'was stopped',
  interrupted: 'was interrupted, because the program ended',
};

/** Records the end of an agent. */
export async function recordEnd(agent: TrackedAgent, ending: Ending, parent: TurnDeps): Promise<TrackedAgent> {
  const { outcome, tree } = ending;
  const { envelope } = outcome;
  const said = isError(envelope) ? envelope.error : envelope.output;
  const facts = isError(envelope) ? envelope.details : envelope;
  const ended: TrackedAgent = {
    ...agent,
    state: 'ended',
    outcome: howEnded(ending),
    output: parent.secrets?.text(said) ?? said,
    costUsd: isRecord(facts) && typeof facts['cost_usd'] === 'number' ? facts['cost_usd'] : null,
    size: tree === null ? noSize : { files: tree.files, added: tree.added, removed: tree.removed },
    worktree: tree?.worktree ?? null,
    endedAt: parent.host.now(),
  };
  await appendEnd(ended, parent.record);
  return ended;
}

/** Writes the end of an agent into the log of its session. */
export async function appendEnd(ended: TrackedAgent, record: Pick<Recorder, 'append'>): Promise<void> {
  const { outcome, worktree, size } = ended;
  const how = endWords[outcome ?? 'completed'];
  const changed = worktree === null ? '' : ` It changed ${sizeText(size)}: ${waysOut(ended)}.`;
  const name = agentName(ended);
  await record.append({
    kind: 'agent',
    content: `${name[0]?.toUpperCase()}${name.slice(1)} ${how}.${changed}`,
    data: {
      ...stepOf(ended, 'ended'),
      ...(outcome === null ? {} : { outcome }),
      output: ended.output,
      cost_usd: ended.costUsd,
      ...(worktree === null ? {} : { worktree, ...size }),
    },
  });
}

/** The commands with which the user decides. */
export function waysOut({ number }: Pick<TrackedAgent, 'number'>): string {
  return `/agents diff ${number}, /agents merge ${number} or /agents discard ${number}`;
}

function howEnded({ outcome: { envelope }, wasStopped }: Ending): AgentOutcome {
  if (wasStopped) return 'stopped';
  if (isError(envelope)) return envelope.code === 'limit_reached' ? 'limit_reached' : 'failed';
  return envelope['status'] === 'limit_reached' ? 'limit_reached' : 'completed';
}

/** Records what an agent in the background changed in the directory of the session, as a call that can be undone. */
export async function recordChanges(
  agent: TrackedAgent,
  recorded: RecordedChanges,
  record: Pick<Recorder, 'append' | 'lastSeq'>,
): Promise<void> {
  const changes = changesData(recorded);
  if (!changes.changes && !changes.folders) return;
  const id = `agent_${record.lastSeq() + 1}`;
  const made = { name: 'agent', arguments: JSON.stringify({ agent: agent.agent, description: agent.description }) };
  await record.append({
    kind: 'tool_call',
    content: `agent(${agent.agent}: ${agent.description})`,
    data: { id, type: 'function', function: made, response_id: id, by: 'command' },
  });
  const output = `Changes of ${agentName(agent)}`;
  await record.append({
    kind: 'tool_result',
    content: output,
    data: {
      tool_call_id: id,
      name: 'agent',
      output: JSON.stringify({ output }),
      success: true,
      duration_ms: 0,
      ...changes,
    },
  });
}

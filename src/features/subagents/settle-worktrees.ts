import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { captureChanges, changesData } from '../../kernel/agent/file-history.js';
import type { Recorder } from '../../kernel/agent/recorder.js';
import {
  type AgentData,
  type AgentWorktree,
  type ChangeData,
  type Event,
  knownEvent,
  type ToolCallData,
} from '../../kernel/core/event.js';
import type { ChangeCapture } from '../../kernel/core/file-changes.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { clampText } from '../../kernel/core/envelope.js';
import { presentState, replaceFile } from '../../kernel/tools/changes/replace-file.js';
import { pathStats } from '../../kernel/disk/path-stats.js';
import { counted } from '../../kernel/tools/define-tool.js';
import {
  diffOfWorktree,
  type DiffSize,
  type GitPlace,
  removeAgentWorktree,
  sizeOfWorktree,
  unknownSubmodules,
  withPresentState,
} from '../../kernel/tools/worktrees/agent-worktree.js';
import { agentName, type TrackedAgent, trackedAgents } from './agent-log.js';
import { applyMerge, type MergeConflict, type MergePlan, planMerge } from './merge-worktree.js';

/** The session whose agents have changes, as far as they are merged or discarded. */
export interface MergeScene {
  readonly record: Pick<Recorder, 'events' | 'recent' | 'lastSeq' | 'append'> & Partial<Pick<Recorder, 'blob'>>;
  /** The working directory of the session. */
  readonly at: GitPlace;
  readonly capture: ChangeCapture;
  /** Called before a worktree is removed. */
  readonly removing?: (path: string) => Promise<void>;
}

/** The outcome of a merge. */
export interface Merged {
  readonly paths: readonly string[];
  readonly conflicts: readonly MergeConflict[];
  /** Says what was done, in a sentence or two. */
  readonly summary: string;
}

/** An agent with a worktree. */
type WithWorktree = TrackedAgent & { readonly worktree: AgentWorktree };

const maxDiffBytes = 64 * 1024;

/** Carries out a planned merge. The log has all changes, with the contents for an undo, before the first file is
 * changed: a merge that a kill interrupts is finished when the session is resumed. Without conflicts the worktree is
 * removed. */
export async function mergeAgent(
  scene: MergeScene,
  agent: WithWorktree,
  plan: MergePlan,
  decidedBy: 'user' | 'mode' | 'rule',
): Promise<Merged> {
  const { record, at } = scene;
  const seq = plan.changes.length === 0 ? undefined : await recordMerge(scene, agent, plan, decidedBy);
  const conflicts = [...plan.conflicts, ...(await applyMerge(plan))];
  const { worktree } = plan;
  const paths = plan.changes.map(({ path }) => path).filter((path) => !isLeft(conflicts, path));
  const summary = mergeText(agent, paths.length, conflicts, at.cwd);
  await record.append({
    kind: 'agent',
    content: summary,
    data: {
      ...stepOf(agent, 'merged'),
      worktree,
      ...(seq === undefined ? {} : { of_seq: seq }),
      ...(conflicts.length > 0 ? { conflicts } : {}),
    },
  });
  if (conflicts.length === 0) await removeWorktree(scene, worktree);
  return { paths, conflicts, summary };
}

function isLeft(conflicts: readonly MergeConflict[], path: string): boolean {
  return conflicts.some((conflict) => conflict.path === path && !conflict.reason.startsWith('has both'));
}

/** Returns the fields that every step of an agent has. */
export function stepOf(agent: TrackedAgent, state: AgentData['state']): AgentData {
  return {
    state,
    agent_session_id: agent.sessionId,
    agent: agent.agent,
    description: agent.description,
    tool_call_id: agent.callId,
    background: agent.background,
  };
}

/** Records a merge as a call of the user. Returns the `seq` of its result. */
async function recordMerge(
  { record, at, capture }: MergeScene,
  agent: WithWorktree,
  plan: MergePlan,
  decidedBy: 'user' | 'mode' | 'rule',
): Promise<number> {
  const { number, description } = agent;
  const id = `merge_${record.lastSeq() + 1}`;
  const made = { name: 'agent', arguments: JSON.stringify({ merge: number }) };
  const content = `agent(merge ${number}: ${description})`;
  await record.append({
    kind: 'tool_call',
    content,
    data: { id, type: 'function', function: made, response_id: id, by: 'command' },
  });
  await record.append({ kind: 'tool_started', content: null, data: { tool_call_id: id } });
  const folders = missingFolders(plan).map((path) => ({ path, before_mode: null, after_mode: 0o040755 }));
  const captured = captureChanges(capture, { changes: plan.changes }, { changes: [], folders });
  const diff = await diffOfWorktree(at, plan.worktree)
    .then((text) => clampText(text, maxDiffBytes).text)
    .catch(() => '');
  const output = `Merges ${counted(plan.changes.length, 'file')} of ${agentName(agent)}`;
  const result = await record.append(
    {
      kind: 'tool_result',
      content: output,
      data: {
        tool_call_id: id,
        name: 'agent',
        output: JSON.stringify({ output }),
        success: true,
        duration_ms: 0,
        ...changesData(captured),
        ...(diff === '' ? {} : { diff }),
        decided_by: decidedBy,
      },
    },
    captured.blobs,
  );
  return result.seq;
}

/** The folders that a merge makes. */
function missingFolders({ changes }: MergePlan): readonly string[] {
  const found = new Set<string>();
  for (const { path, after } of changes)
    for (
      let folder = dirname(path);
      after !== null && pathStats(folder, 'keep').kind === 'missing';
      folder = dirname(folder)
    )
      found.add(folder);
  return [...found].sort();
}

function mergeText(agent: TrackedAgent, files: number, conflicts: readonly MergeConflict[], cwd: string): string {
  const name = agentName(agent);
  if (conflicts.length === 0) return `Merged ${counted(files, 'file')} of ${name}. /undo reverts it.`;
  const listed = conflicts.map(({ path, reason }) => `  ${shortPath(path, cwd)}: ${reason}`);
  return [
    `Merged ${counted(files, 'file')} of ${name}, with ${counted(conflicts.length, 'conflict')}:`,
    ...listed,
    `/undo reverts the merge. The worktree remains: ${agent.worktree?.path ?? ''}. /agents discard ${agent.number} removes it.`,
  ].join('\n');
}

function shortPath(path: string, cwd: string): string {
  return path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

async function removeWorktree({ at, removing }: MergeScene, worktree: AgentWorktree): Promise<void> {
  if (existsSync(worktree.path)) await removing?.(worktree.path);
  await removeAgentWorktree(at, worktree);
}

/** Throws the changes of an agent away. The log names the commit that has them, from which an undo makes the worktree
 * again. */
export async function discardAgent(scene: MergeScene, agent: WithWorktree): Promise<string> {
  const { record, at } = scene;
  const isThere = existsSync(agent.worktree.path);
  const worktree = isThere ? await withPresentState(at, agent.worktree, 'Discarded state') : agent.worktree;
  const content = `Discarded the changes of ${agentName(agent)}. /undo brings the worktree back.`;
  await record.append({ kind: 'agent', content, data: { ...stepOf(agent, 'discarded'), worktree } });
  await removeWorktree(scene, worktree);
  return content;
}

/** Returns the changes of an agent as they are now, as a unified diff. */
export async function currentDiff(at: GitPlace, worktree: AgentWorktree): Promise<string> {
  if (!existsSync(worktree.path)) return await diffOfWorktree(at, worktree);
  const unknown = await unknownSubmodules(at, worktree);
  const refused = unknown.map((name) => `Files of the submodule ${name} were changed. They are not merged.\n`);
  return (await diffOfWorktree(at, await withPresentState(at, worktree, 'State now'))) + refused.join('');
}

/** The worktree of an agent that has ended, with the commit of its files. */
export interface EndedWorktree extends DiffSize {
  readonly worktree: AgentWorktree;
}

/** Looks at a worktree at the end of its agent. One without changes is removed: null. */
export async function endWorktree(
  { at, removing }: Pick<MergeScene, 'at' | 'removing'>,
  worktree: AgentWorktree,
): Promise<EndedWorktree | null> {
  const { path } = worktree;
  const isThere = existsSync(path);
  if (isThere) {
    const present = await withPresentState(at, worktree, 'State at the end');
    const size = await sizeOfWorktree(at, present);
    const files = size.files + (await unknownSubmodules(at, worktree)).length;
    if (files > 0) return { ...size, files, worktree: present };
    await removing?.(path);
  }
  await removeAgentWorktree(at, worktree);
  return null;
}

/** Finishes what the end of the program interrupted: merges whose files were not all changed, and worktrees that were
 * merged or discarded and are still there. */
export async function recoverWorktrees(scene: MergeScene): Promise<void> {
  for (const agent of trackedAgents(scene.record.recent())) {
    if (agent.worktree === null) continue;
    const withWorktree = { ...agent, worktree: agent.worktree };
    const seq = unfinishedMerge(scene.record.recent(), agent);
    if (seq !== null) await finishMerge(scene, withWorktree, seq);
    else if (agent.state === 'discarded' || (agent.state === 'merged' && agent.conflicts.length === 0))
      await removeAgentWorktree(scene.at, agent.worktree);
  }
}

/** Returns the `seq` of the last result of a merge that neither `merged` nor an undo follows; null if there is none. */
function unfinishedMerge(events: readonly Event[], { number }: TrackedAgent): number | null {
  const known = events.flatMap((event) => knownEvent(event) ?? []);
  const calls = known.flatMap((event) =>
    event.kind === 'tool_call' && event.data.by === 'command' && mergedNumber(event.data.function) === number
      ? [event.data.id]
      : [],
  );
  const result = known.findLast(
    ({ kind, data }) => kind === 'tool_result' && data.success && calls.includes(data.tool_call_id),
  );
  if (!result) return null;
  const isFinished = known.some(
    ({ kind, data }) => (kind === 'agent' || kind === 'undo' || kind === 'redo') && data.of_seq === result.seq,
  );
  return isFinished ? null : result.seq;
}

/** Returns the number of the agent that a call merges, or null. */
function mergedNumber({ name, arguments: text }: ToolCallData['function']): number | null {
  if (name !== 'agent') return null;
  try {
    const given: unknown = parseJson(text);
    return isRecord(given) && typeof given['merge'] === 'number' ? given['merge'] : null;
  } catch {
    return null;
  }
}

/** Makes the changes of a merge that a kill interrupted. */
async function finishMerge(scene: MergeScene, agent: WithWorktree, seq: number): Promise<void> {
  const { record, at } = scene;
  const raw = record.recent().find((event) => event.seq === seq);
  const event = raw ? knownEvent(raw) : null;
  const changes = event?.kind === 'tool_result' ? (event.data.changes ?? []) : [];
  const left: MergeConflict[] = [];
  for (const change of changes) {
    const reason = await finishChange(scene, change);
    if (reason !== null)
      left.push({ path: change.path, reason: `left as it is: the merge was interrupted, ${reason}` });
  }
  const nothing: Pick<MergePlan, 'worktree' | 'conflicts'> = { worktree: agent.worktree, conflicts: [] };
  const plan = await planMerge(at, agent.worktree, agent.agent).catch(() => nothing);
  const both = plan.conflicts.filter(({ path }) => !left.some((known) => known.path === path));
  const conflicts = [...left, ...both];
  await record.append({
    kind: 'agent',
    content: mergeText(agent, changes.length - left.length, conflicts, at.cwd),
    data: {
      ...stepOf(agent, 'merged'),
      worktree: plan.worktree,
      of_seq: seq,
      ...(conflicts.length > 0 ? { conflicts } : {}),
    },
  });
  if (conflicts.length === 0) await removeWorktree(scene, agent.worktree);
}

/** Makes one change of a merge if it is not made. Returns why it cannot be made, or null. */
async function finishChange({ record }: MergeScene, change: ChangeData): Promise<string | null> {
  const { path, before, after, after_mode: mode = null } = change;
  const now = presentState(path);
  const hash = now.is === 'file' || now.is === 'link' ? now.sha256 : now.is === 'missing' ? null : now.is;
  if (hash === after) return null;
  if (hash !== before) return 'and the file has changed since';
  const bytes = after === null ? null : ((await record.blob?.(after)) ?? undefined);
  if (bytes === undefined) return 'and its contents were not saved';
  return await replaceFile({ path, expected: before, bytes, mode, links: [] }).then(() => null, writeProblem);
}

function writeProblem(error: unknown): string {
  return `and it cannot be written: ${error instanceof Error ? error.message : String(error)}`;
}

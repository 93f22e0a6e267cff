import { addNote } from '../../kernel/agent/session-note.js';
import type { Session } from '../../kernel/agent/session.js';
import type { Repl } from '../../kernel/console/command.js';
import { type FileChangeText, turnRuns } from '../../kernel/console/slash-command.js';
import { isError } from '../../kernel/core/envelope.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import type { GitPlace } from '../../kernel/tools/worktrees/agent-worktree.js';
import { agentDesk, type RunningAgent } from './agent-parts.js';
import { AgentPage, conversationText } from './follow-agent.js';
import { agentName, findTracked, isUnmerged, sizeText, type TrackedAgent, trackedAgents } from './agent-log.js';
import { planMerge } from './merge-worktree.js';
import { endWords } from './record-agents.js';
import { sceneOf } from './session-agents.js';
import { currentDiff, discardAgent, mergeAgent } from './settle-worktrees.js';

/** An agent with what is known of it now. */
interface Shown extends TrackedAgent {
  readonly now: RunningAgent | null;
  readonly model: string;
}

/** The agents of the session that is shown, which work in the background or in a worktree. */
async function shownAgents({ sessions, store, parts }: Repl): Promise<readonly Shown[]> {
  const { session } = sessions.current();
  const tracked = trackedAgents(session.recent());
  if (tracked.length === 0) return [];
  const running = parts.find(agentDesk)?.agents.get(session.id)?.running();
  const rows = new Map((await store.agentsOf(session.id)).map((row) => [row.id, row]));
  return tracked.map((agent) => {
    const now = running?.get(agent.sessionId) ?? null;
    const row = rows.get(agent.sessionId);
    const ref = now?.child?.ref() ?? { provider: row?.provider ?? '', model: row?.model ?? '' };
    const costUsd = agent.costUsd ?? spentOn(session.events(), agent.sessionId);
    return { ...agent, costUsd, now, model: `${ref.provider}/${ref.model}` };
  });
}

function spentOn(events: readonly Event[], sessionId: string): number {
  return events.reduce((sum, raw) => {
    const event = raw.kind === 'agent_usage' ? knownEvent(raw) : null;
    const isIts = event?.kind === 'agent_usage' && event.data.agent_session_id === sessionId;
    return isIts ? sum + (event.data.cost_usd ?? 0) : sum;
  }, 0);
}

function stateText({ state, outcome, conflicts, worktree, size }: Shown): string {
  if (state === 'running') return 'running';
  if (state === 'merged')
    return conflicts.length === 0
      ? 'merged'
      : `merged with ${conflicts.length} conflict${conflicts.length === 1 ? '' : 's'}`;
  if (state === 'discarded') return 'discarded';
  const how = (outcome === null ? 'ended' : endWords[outcome]).replace(/^(?:has|was) /, '').replace(/,.*/, '');
  return worktree === null ? how : `${how}, ${sizeText(size)} not merged`;
}

function detailOf(agent: Shown): string {
  const { model, costUsd, startedAt, endedAt, now, output } = agent;
  const seconds = Math.max(0, Math.round(((endedAt ?? Date.now()) - startedAt) / 1000));
  const last = firstLine(now?.line.split(' · ').at(-1) ?? output, 60);
  const cost = `$${(costUsd ?? 0).toFixed(4)}`;
  return [stateText(agent), model, cost, `${seconds} s`, last].filter((part) => part !== '').join(' · ');
}

function rowOf({ number, agent, description }: Shown): string {
  return `${number}: ${firstLine(`${agent}: ${description}`, 60)}`;
}

const verbs = ['show', 'diff', 'merge', 'discard', 'stop', 'send'] as const;
type Verb = (typeof verbs)[number];

/** `/agents` with the agents of the session: lists them, opens one, shows its changes, merges or discards them, stops it
 * or sends it a message. Returns false where the session has none and none is named. */
export async function steerAgents(argument: string, repl: Repl): Promise<boolean> {
  const agents = await shownAgents(repl);
  const [first = '', second = '', ...rest] = argument.trim().split(/\s+/);
  const verb = verbs.find((known) => known === first);
  const named = verb === undefined ? first : second;
  if (named === '' && verb === undefined) {
    const picked = await pickAgent(agents, repl);
    if (picked) await openAgentMenu(picked, repl);
    return agents.length > 0;
  }
  const wanted = named === '' && agents.length === 1 ? agents[0] : findTracked(agents, named);
  const agent = agents.find((one) => one === wanted);
  if (!agent) refuseUnknown(named, agents, repl);
  else if (verb === undefined) await openAgentMenu(agent, repl);
  else await act(verb, agent, rest.join(' '), repl);
  return true;
}

function refuseUnknown(named: string, agents: readonly Shown[], { screen }: Repl): void {
  const known = agents.map(({ number }) => number).join(', ');
  const none = 'No agent of this session works in the background or in a worktree.';
  const what = named === '' ? 'Name an agent by its number.' : `There is no agent ${named}.`;
  const there = known === '' ? none : `There are: ${known}.`;
  screen.notice('error', `${what} ${there} /agents list shows those you can use.`);
}

async function pickAgent(agents: readonly Shown[], { screen }: Repl): Promise<Shown | undefined> {
  if (agents.length === 0) return undefined;
  const items = agents.map((agent) => ({ label: rowOf(agent), detail: detailOf(agent), value: agent.number }));
  const listing = agents.map((agent) => `${rowOf(agent)} (${detailOf(agent)})`).join('\n');
  const number = await screen.pick({ title: 'Which agent?', items, listing });
  return agents.find((agent) => agent.number === number);
}

async function openAgentMenu(agent: Shown, repl: Repl): Promise<void> {
  const { screen } = repl;
  const items = [
    { label: 'Show its conversation', value: 'show' as Verb },
    ...(agent.worktree && agent.now === null && agent.state !== 'discarded'
      ? [{ label: 'Show its changes', value: 'diff' as Verb }]
      : []),
    ...(isUnmerged(agent)
      ? [{ label: 'Merge its changes', detail: 'into the working directory', value: 'merge' as Verb }]
      : []),
    ...(hasWorktree(agent) && agent.now === null
      ? [{ label: 'Discard its worktree', detail: '/undo brings it back', value: 'discard' as Verb }]
      : []),
    { label: 'Send it a message', value: 'send' as Verb },
    ...(agent.now ? [{ label: 'Stop it', value: 'stop' as Verb }] : []),
  ];
  const listing = `${rowOf(agent)} (${detailOf(agent)})\n${agent.output}`.trimEnd();
  const verb = await screen.pick({ title: `${rowOf(agent)} (${stateText(agent)})`, items, listing });
  if (verb === 'send') screen.setDraft(`/agents send ${agent.number} `);
  else if (verb !== null) await act(verb, agent, '', repl);
}

/** Its worktree is there, whether merged with conflicts or not at all. */
function hasWorktree(agent: TrackedAgent): boolean {
  return isUnmerged(agent) || (agent.state === 'merged' && agent.conflicts.length > 0);
}

async function act(verb: Verb, agent: Shown, text: string, repl: Repl): Promise<void> {
  switch (verb) {
    case 'show':
      await showConversation(agent, repl);
      return;
    case 'diff':
      await showChanges(agent, repl);
      return;
    case 'merge':
    case 'discard':
      await settle(verb, agent, repl);
      return;
    case 'stop':
      if (agent.now) agent.now.stop();
      else repl.screen.notice('info', `Agent ${agent.number} does not run.`);
      return;
    case 'send':
      await send(agent, text, repl);
      return;
    default:
      verb satisfies never;
  }
}

/** Shows the conversation of an agent. That of one that runs grows until the page is closed. */
async function showConversation(agent: Shown, repl: Repl): Promise<void> {
  const { screen, store, sessions, parts } = repl;
  const title = (shown: Shown): string => `${rowOf(shown)} (${detailOf(shown)})`;
  const events = agent.now?.child?.events() ?? (await store.load(agent.sessionId));
  if (agent.now === null) {
    await screen.page(title(agent), conversationText(events), { prose: true });
    return;
  }
  const { session } = sessions.current();
  const running = (): RunningAgent | null =>
    parts.find(agentDesk)?.agents.get(session.id)?.running().get(agent.sessionId) ?? null;
  const live = new AgentPage({
    title: () => {
      const known = trackedAgents(session.events()).find(({ sessionId }) => sessionId === agent.sessionId) ?? agent;
      const costUsd = known.costUsd ?? spentOn(session.events(), agent.sessionId);
      return title({ ...agent, ...known, costUsd, now: running() });
    },
    child: () => running()?.child ?? null,
    parent: session,
  });
  await screen.page(title(agent), live.text(), { prose: true, live });
}

function placeOf({ settings: { cwd, env } }: Repl): GitPlace {
  return { cwd, env };
}

async function showChanges(agent: Shown, repl: Repl): Promise<void> {
  const { screen } = repl;
  if (agent.worktree === null) {
    screen.notice('info', `Agent ${agent.number} has no changes in a worktree.`);
    return;
  }
  const diff = await currentDiff(placeOf(repl), agent.worktree);
  const keys = isUnmerged(agent) ? { m: 'merge', d: 'discard' } : {};
  const title = `Changes of agent ${agent.number} (${sizeText(agent.size)}) in ${agent.worktree.path}`;
  const key = await screen.page(title, diff, { changes: changesIn(diff), keys });
  if (key === 'm') await settle('merge', agent, repl);
  if (key === 'd') await settle('discard', agent, repl);
}

/** Splits a diff of git into the changes of its files. */
function changesIn(diff: string): readonly FileChangeText[] {
  return diff.split(/^(?=diff --git )/m).flatMap((part) => {
    const title = /^\+\+\+ b\/(.*)$/m.exec(part)?.[1] ?? /^--- a\/(.*)$/m.exec(part)?.[1] ?? firstLine(part, 120);
    const from = part.search(/^--- /m);
    return part.trim() === '' ? [] : [{ title, diff: from < 0 ? part : part.slice(from) }];
  });
}

/** Merges or discards. The program does not exit in the middle of it. */
async function settle(verb: 'merge' | 'discard', agent: Shown, repl: Repl): Promise<void> {
  const { settling } = repl.parts.get(agentDesk);
  const work = (verb === 'merge' ? merge : discard)(agent, repl);
  settling.add(work);
  await work.finally(() => settling.delete(work));
}

function restingSession(verb: string, { sessions, screen }: Repl): Session | null {
  const { session } = sessions.current();
  if (!session.busy()) return session;
  screen.notice('warn', turnRuns(verb, screen));
  return null;
}

async function merge(agent: Shown, repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const session = restingSession(`/agents merge ${agent.number}`, repl);
  if (!session) return;
  const { worktree } = agent;
  if (!isUnmerged(agent) || worktree === null) {
    screen.notice('info', `Agent ${agent.number} has nothing to merge: it is ${stateText(agent)}.`);
    return;
  }
  const scene = sceneOf(session.deps(), settings);
  const plan = await planMerge(scene.at, worktree, agent.agent);
  const merged = await mergeAgent(scene, { ...agent, worktree }, plan, 'user');
  addNote(session, `[Note: the user merged the changes of ${agentName(agent)}. ${merged.summary}]`);
}

async function discard(agent: Shown, repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const session = restingSession(`/agents discard ${agent.number}`, repl);
  if (!session) return;
  const { worktree } = agent;
  if (!hasWorktree(agent) || worktree === null) {
    screen.notice('info', `Agent ${agent.number} has no worktree to discard: it is ${stateText(agent)}.`);
    return;
  }
  await discardAgent(sceneOf(session.deps(), settings), { ...agent, worktree });
  addNote(session, `[Note: the user discarded the worktree of ${agentName(agent)}.]`);
}

async function send(agent: Shown, text: string, repl: Repl): Promise<void> {
  const { screen, sessions } = repl;
  const { session } = sessions.current();
  if (text.trim() === '') {
    screen.notice('error', `Add the message: /agents send ${agent.number} use the other parser`);
    return;
  }
  const { child } = agent.now ?? {};
  if (child) {
    child.enqueue({ text, when: 'steer' });
    screen.notice('info', `Agent ${agent.number} gets it with its next request.`);
    return;
  }
  const d = session.deps();
  const order = { agent: agent.agent, prompt: text, description: agent.description, resume: agent.sessionId };
  const call = { id: agent.callId, signal: AbortSignal.any([]), whileAsking: <T>(work: () => Promise<T>) => work() };
  const started = await d.tools.agents?.run({ ...order, background: true }, d, call);
  if (!started || isError(started.envelope))
    screen.notice('error', started && isError(started.envelope) ? started.envelope.error : 'There are no agents here.');
}

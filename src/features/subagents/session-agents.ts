import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { askHooks } from '../../kernel/agent/apply-hooks.js';
import type { AgentCall, Agents, TurnDeps } from '../../kernel/agent/dependencies.js';
import type { Session } from '../../kernel/agent/session.js';
import { CliError } from '../../kernel/console/command.js';
import type { AgentHost } from '../../kernel/console/feature.js';
import { isError } from '../../kernel/core/envelope.js';
import { firstLine } from '../../kernel/core/text.js';
import type { BoundCall, SubagentRequest, ToolOutcome } from '../../kernel/core/tool.js';
import { theirNames } from '../../kernel/tools/claude-names.js';
import { failed, succeeded } from '../../kernel/tools/define-tool.js';
import {
  adoptWorktree,
  insideOf,
  type MadeWorktree,
  makeWorktree,
  planWorktree,
  topOf,
  WorktreeError,
} from '../../kernel/tools/worktrees/agent-worktree.js';
import type { AgentDesk, RunningAgent, RunningAgents } from './agent-parts.js';
import { findTracked, isUnmerged, type TrackedAgent, trackedAgents } from './agent-log.js';
import { mergeDecision } from './allow-merge.js';
import { endNote, EndNotes, receiptOf, treeNote } from './end-notes.js';
import { planMerge } from './merge-worktree.js';
import { type AgentRole, findAgents, toolsOf } from './roles.js';
import {
  type AgentEnd,
  type Client,
  newAgentId,
  openAgent,
  type OpenedAgent,
  type OwnPlace,
  resumeProblem,
  type AgentWork,
} from './run-agent.js';
import { recordChanges, recordEnd, recordStart } from './record-agents.js';
import { keptOut, placeNote } from './own-place.js';
import { WaitTogether } from './wait-together.js';
import { endWorktree, mergeAgent, type Merged, type MergeScene } from './settle-worktrees.js';

interface Running extends RunningAgent {
  child: Session | null;
  line: string;
  readonly writesHere: boolean;
  readonly ended: Promise<unknown>;
}

/** The manner in which an agent is started. */
interface Starting {
  readonly parent: TurnDeps;
  readonly call: AgentCall;
  readonly background: boolean;
  readonly isolated: boolean;
  /** The agent that is continued. */
  readonly known: TrackedAgent | undefined;
}

/** An agent that does not stop is left behind. */
const longestEndMs = 6000;

/** Runs the agents of one session. */
export class SessionAgents implements Agents, RunningAgents {
  readonly notes: EndNotes;
  readonly #host: AgentHost;
  readonly #desk: AgentDesk;
  readonly #running = new Map<string, Running>();
  readonly #limits = new WaitTogether();
  #count = 0;
  /** Agents begin one after the other, in the order of their calls. */
  #begun: Promise<void> = Promise.resolve();

  constructor(host: AgentHost, desk: AgentDesk) {
    this.#host = host;
    this.#desk = desk;
    this.notes = new EndNotes((id) => ({
      session: desk.sessions.get(id),
      wakes: desk.wakes && host.settings.config.agents.wake,
    }));
  }

  running(): ReadonlyMap<string, RunningAgent> {
    return this.#running;
  }

  nextEnd(): Promise<unknown> | null {
    const ends = [...this.#running.values()].flatMap((one) => (one.background ? [one.ended] : []));
    return ends.length === 0 ? null : Promise.race(ends);
  }

  async end(): Promise<void> {
    this.notes.close();
    for (const one of this.#running.values()) one.stop();
    const ends = Promise.all([...this.#running.values()].map(({ ended }) => ended));
    await Promise.race([ends, wait(longestEndMs, undefined, { ref: false })]);
  }

  async run(order: SubagentRequest, parent: TurnDeps, call: AgentCall): Promise<ToolOutcome> {
    this.#desk.agents.set(parent.record.id, this);
    this.notes.follow(parent.record.id);
    const before = this.#begun;
    let pass = (): void => undefined;
    this.#begun = new Promise((resolve) => {
      pass = resolve;
    });
    try {
      const role = (await findAgents(this.#host.settings)).agents.find(({ name }) => name === order.agent);
      if (!role) return failed('not_found', `There is no agent ${firstLine(order.agent, 64)} any more.`);
      const problem = await resumeProblem(this.#host, { role, order }, parent);
      if (problem !== null) return failed('not_found', problem);
      const work: AgentWork = { role, order, id: order.resume ?? newAgentId(parent.host.now()) };
      const known = trackedAgents(parent.record.recent()).find(({ sessionId }) => sessionId === order.resume);
      const background = order.background ?? role.background;
      const isolated = (order.isolation ?? role.isolation) === 'worktree';
      const starting: Starting = { parent, call, background, isolated, known };
      if (!background && !isolated && !known?.worktree) {
        pass();
        return await this.#runHere(work, starting);
      }
      await before;
      return this.#refusal(work, starting) ?? (await this.#runTracked(work, starting, pass));
    } catch (error) {
      parent.host.log({ at: 'agents', message: 'an agent could not be run', error: String(error) });
      return failed('execution_failed', `The agent ${order.agent} could not be run: ${reasonOf(error)}`);
    } finally {
      pass();
    }
  }

  /** Runs an agent in the directory of the session while its call waits. */
  async #runHere(work: AgentWork, { parent, call }: Starting): Promise<ToolOutcome> {
    const step = (text: string): void => {
      parent.emit({ type: 'tool_output', callId: call.id, chunk: `${text}\n` });
    };
    this.#count += 1;
    try {
      const opened = await openAgent(this.#host, work, this.#client(parent, call, step, work.role.name), null);
      try {
        const { outcome, recorded, denials } = await opened.work();
        return { ...outcome, recorded, denials };
      } finally {
        await opened.close();
      }
    } finally {
      this.#count -= 1;
    }
  }

  /** Only an agent whose call waits can hold up the turn of its session for a usage limit. */
  #client(parent: TurnDeps, call: AgentCall, step: Client['step'], waits: string | null): Client {
    const waitForLimit = waits === null ? undefined : this.#limits.of(parent, waits);
    return { parent, call, share: () => this.#count, step, ...(waitForLimit ? { waitForLimit } : {}) };
  }

  /** Returns why an agent cannot be started now, as a result for the model; null if it can. */
  #refusal(work: AgentWork, starting: Starting): ToolOutcome | null {
    const { resume } = work.order;
    const { known, background } = starting;
    if (resume !== undefined && this.#running.has(resume))
      return failed('execution_failed', `resume: ${resume} is still running. A note reports its end.`);
    if (known?.worktree && (known.state === 'merged' || known.state === 'discarded'))
      return failed('not_found', `resume: the worktree of ${known.sessionId} was ${known.state}. Start a new agent.`);
    return background ? this.#backgroundRefusal(work, starting) : null;
  }

  #backgroundRefusal({ role }: AgentWork, { isolated, known }: Starting): ToolOutcome | null {
    const others = [...this.#running.values()].filter((one) => one.background);
    const most = this.#host.settings.config.agents.maxBackground;
    if (others.length >= most)
      return failed(
        'limit_reached',
        `${most} agents run in the background, the limit of agents.max_background. Wait for the end of one.`,
      );
    const isSafe = isolated || known?.worktree || !this.#writes(role);
    return isSafe || !others.some((one) => one.writesHere)
      ? null
      : failed(
          'execution_failed',
          'Another agent in the background may write into the working directory. Wait for its end, or add isolation: worktree.',
        );
  }

  #writes(role: AgentRole): boolean {
    return toolsOf(role, this.#host.registry.list(), theirNames).some(({ effect }) => effect !== 'read');
  }

  /** Starts an agent whose steps are recorded. Waits for its end unless it works in the background. */
  async #runTracked(work: AgentWork, given: Starting, onBegun: () => void): Promise<ToolOutcome> {
    const { background, call } = given;
    const stopping = new AbortController();
    const signal = background ? stopping.signal : AbortSignal.any([call.signal, stopping.signal]);
    const whileAsking: AgentCall['whileAsking'] = background ? (asking) => asking() : call.whileAsking;
    const starting = { ...given, call: { id: call.id, signal, whileAsking } };
    let finish = (_done: unknown): void => undefined;
    const running: Running = {
      child: null,
      background,
      line: 'starts',
      writesHere: !given.isolated && !given.known?.worktree && this.#writes(work.role),
      stop: () => {
        stopping.abort();
      },
      ended: new Promise((resolve) => {
        finish = resolve;
      }),
    };
    this.#running.set(work.id, running);
    this.#count += 1;
    const isOver = (): void => {
      this.#running.delete(work.id);
      this.#count -= 1;
      finish(undefined);
    };
    try {
      const started = await this.#begin(work, starting, running);
      onBegun();
      const result = this.#finish(started, starting).finally(isOver);
      return background ? receiptOf(started.agent, started.place?.note ?? null) : await result;
    } catch (error) {
      isOver();
      throw error;
    }
  }

  /** Records the start of an agent, makes its worktree, and opens its session. Where that fails, its end is recorded, and
   * nothing is left of the worktree. */
  async #begin(work: AgentWork, starting: Starting, running: Running): Promise<Begun> {
    const { parent, call, background } = starting;
    const planned = await this.#planPlace(work, starting);
    const agent = await recordStart(work, starting, planned?.worktree ?? null);
    let place: OwnPlace | null = null;
    try {
      place = planned === null ? null : await this.#openPlace(await planned.make(), parent);
      const step = (text: string): void => {
        running.line = text;
        if (!background) parent.emit({ type: 'tool_output', callId: call.id, chunk: `${text}\n` });
      };
      const client = this.#client(parent, call, step, background ? null : work.role.name);
      const opened = await openAgent(this.#host, work, client, place);
      running.child = opened.child;
      return { agent, opened, place };
    } catch (error) {
      await place?.close();
      const tree = agent.worktree && (await endWorktree(this.scene(parent), agent.worktree).catch(() => null));
      const outcome = failed('execution_failed', `It could not begin: ${reasonOf(error)}`);
      await recordEnd(agent, { outcome, tree, wasStopped: false }, parent);
      throw error;
    }
  }

  /** Waits for the end of an agent, and records it. Never rejects. */
  async #finish({ agent, opened, place }: Begun, { parent, background, call }: Starting): Promise<ToolOutcome> {
    const wasStopped = (): boolean => call.signal.aborted;
    const end = await opened.work().catch((error: unknown): AgentEnd => {
      parent.host.log({ at: 'agents', message: 'an agent failed', error: String(error) });
      const outcome = failed('execution_failed', `The agent ${agent.agent} failed: ${reasonOf(error)}`);
      return { outcome, recorded: { changes: [] }, denials: [] };
    });
    const { outcome, recorded, denials } = end;
    try {
      await place?.close();
      const tree = agent.worktree && (await endWorktree(this.scene(parent), agent.worktree));
      const ended = await recordEnd(agent, { outcome, tree, wasStopped: wasStopped() }, parent);
      if (background && place === null) await recordChanges(ended, recorded, parent.record);
      const merged = tree === null || wasStopped() ? null : await this.#mergeByItself(ended, parent, call);
      if (background) this.notes.add(endNote(ended, merged), denials);
      return { ...withTree(outcome, ended, merged), denials };
    } catch (error) {
      parent.host.log({ at: 'agents', message: 'the end of an agent was not recorded', error: String(error) });
      parent.emit({
        type: 'notice',
        level: 'error',
        code: 'agent_end',
        message: `The end of agent ${agent.number} could not be recorded: ${reasonOf(error)}`,
      });
      return { ...outcome, denials };
    } finally {
      await opened.close();
    }
  }

  /** Plans the worktree of an agent; null: it works in the directory of the session. */
  async #planPlace({ role }: AgentWork, { parent, call, isolated, known }: Starting): Promise<PlannedPlace | null> {
    const { at } = this.scene(parent);
    const before = known?.worktree;
    if (before) {
      if (!existsSync(before.path)) throw new WorktreeError(`its worktree ${before.path} is gone`);
      return { worktree: before, make: () => insideOf(at, before) };
    }
    if (!isolated) return null;
    const word =
      role.name
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, '-')
        .replaceAll(/^-+|-+$/g, '') || 'agent';
    const name = `${word.slice(0, 24)}-${newAgentId(parent.host.now()).slice(-6).toLowerCase()}`;
    const said = await askHooks(parent, { event: 'WorktreeCreate', name }, call.signal);
    if (said !== null && said.worktree === null)
      throw new WorktreeError('no hook of WorktreeCreate printed the absolute path of a worktree');
    if (said?.worktree) {
      const made = await adoptWorktree(at, said.worktree);
      return { worktree: made.worktree, make: () => Promise.resolve(made) };
    }
    const worktree = await planWorktree(at, name);
    return { worktree, make: () => makeWorktree(at, worktree) };
  }

  async #openPlace(made: MadeWorktree, parent: TurnDeps): Promise<OwnPlace> {
    const elsewhere = await this.#host.openPlace(made.directory);
    const top = await topOf(this.scene(parent).at);
    return {
      ...elsewhere,
      cwd: made.directory,
      policy: keptOut(parent.tools.confine?.(elsewhere.policy) ?? elsewhere.policy, {
        worktree: made.worktree.path,
        top,
      }),
      note: placeNote(made, parent.cwd),
    };
  }

  scene(parent: TurnDeps): MergeScene {
    return sceneOf(parent, this.#host.settings);
  }

  /** Merges the changes of an agent at its end where the settings say so. Returns a sentence, or null. */
  async #mergeByItself(agent: TrackedAgent, parent: TurnDeps, call: AgentCall): Promise<string | null> {
    if (this.#host.settings.config.agents.merge !== 'auto') return null;
    const merged = await this.#mergeNow(agent, parent, call);
    return typeof merged === 'string' ? merged : merged.summary;
  }

  /** Merges the changes of an agent if edits of the same files would be allowed. A sentence says why it did not. */
  async #mergeNow(agent: TrackedAgent, parent: TurnDeps, call: AgentCall): Promise<Merged | string> {
    const { worktree } = agent;
    if (worktree === null) return `Agent ${agent.number} has no changes to merge.`;
    const scene = this.scene(parent);
    const plan = await planMerge(scene.at, worktree, agent.agent);
    const decision = await mergeDecision(agent, plan, parent, call);
    if ('problem' in decision) return `Not merged: ${decision.problem}`;
    return await mergeAgent(scene, { ...agent, worktree }, plan, decision.decidedBy);
  }

  async merge(number: number, parent: TurnDeps, call: AgentCall): Promise<ToolOutcome> {
    try {
      const all = trackedAgents(parent.record.recent());
      const agent = findTracked(all, String(number));
      if (!agent) return failed('not_found', `merge: there is no agent ${number}; there are ${all.length}.`);
      if (!isUnmerged(agent))
        return failed('not_found', `merge: agent ${number} is ${agent.state} and has nothing to merge.`);
      const merged = await this.#mergeNow(agent, parent, call);
      if (typeof merged === 'string') return failed('permission_denied', merged);
      const { summary, conflicts } = merged;
      return succeeded(firstLine(summary, 120), { output: summary, conflicts: conflicts.map((one) => ({ ...one })) });
    } catch (error) {
      return failed('execution_failed', `merge: ${reasonOf(error)}`);
    }
  }

  async runTogether(calls: readonly (BoundCall | null)[]): Promise<boolean> {
    if (!calls.every((call) => call?.tool.name === 'agent')) return false;
    const { agents } = await findAgents(this.#host.settings);
    return calls.every((call) => {
      const { agent, resume, background, isolation, merge } = call?.args ?? {};
      const role = agents.find(({ name }) => name === agent);
      if (role === undefined || resume !== undefined || merge !== undefined) return false;
      const isApart = (background ?? role.background) === true || (isolation ?? role.isolation) === 'worktree';
      return isApart || !this.#writes(role);
    });
  }
}

/** Returns the log and the directory that merges and discards of a session work with. */
export function sceneOf(parent: TurnDeps, { cwd, env }: Pick<AgentHost['settings'], 'cwd' | 'env'>): MergeScene {
  const { capture } = parent.tools;
  if (!capture) throw new Error('this session records no changes of files');
  return {
    record: parent.record,
    at: { cwd, env },
    capture,
    removing: async (path) => {
      await askHooks(parent, { event: 'WorktreeRemove', path }, AbortSignal.timeout(60_000));
    },
  };
}

/** Adds to the result of an agent where its changes are. */
function withTree(outcome: ToolOutcome, ended: TrackedAgent, merged: string | null): ToolOutcome {
  const { envelope } = outcome;
  if (isError(envelope)) return outcome;
  const size = ended.worktree === null ? {} : { worktree: { path: ended.worktree.path, ...ended.size } };
  const output = `${envelope.output}\n\n[${treeNote(ended, merged)}]`;
  return { ...outcome, envelope: { ...envelope, output, agent_id: ended.number, ...size } };
}

interface Begun {
  readonly agent: TrackedAgent;
  readonly opened: OpenedAgent;
  readonly place: OwnPlace | null;
}

interface PlannedPlace {
  readonly worktree: MadeWorktree['worktree'];
  readonly make: () => Promise<MadeWorktree>;
}

function reasonOf(error: unknown): string {
  if (error instanceof CliError) return `${error.message}. ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

import type { Agents } from '../kernel/agent/dependencies.js';
import type { WaitForLimit } from '../kernel/agent/limit-wait.js';
import type { Session } from '../kernel/agent/session.js';
import type {
  AgentHost,
  Menu,
  ObservedSession,
  PromptBlock,
  PromptListing,
  PromptStyle,
  RunHost,
  RunPart,
} from '../kernel/console/feature.js';
import type { Notice, SessionChoice } from '../kernel/console/run-settings.js';
import type { Event } from '../kernel/core/event.js';
import type { HookedAgent, Hooks, SessionSource } from '../kernel/core/hooks.js';
import type { Expand, Expansion, SessionPort } from '../kernel/core/session-port.js';
import { smallestOf } from '../kernel/core/lists.js';
import type { Store } from '../kernel/core/store.js';
import type { Registry, Tool } from '../kernel/core/tool.js';
import { features } from './features.js';

/** The parts that all features add to a run. */
export class RunParts {
  readonly #parts: readonly RunPart[];

  constructor(parts: readonly RunPart[]) {
    this.#parts = parts;
  }

  notices(): readonly Notice[] {
    return this.#parts.flatMap(({ notices }) => notices ?? []);
  }

  /** Returns the names of tools that are offered because of files of the user or of a trusted project. */
  offers(): readonly string[] {
    return this.#parts.flatMap(({ offers }) => offers ?? []);
  }

  /** Returns tools that are offered beside those of the sets. */
  tools(): readonly Tool[] {
    return this.#parts.flatMap(({ tools }) => tools ?? []);
  }

  /** Returns the session to open, which a feature may have fetched. */
  async find(asked: SessionChoice, store: Store): Promise<SessionChoice> {
    let choice = asked;
    for (const part of this.#parts) choice = (await part.find?.(choice, store)) ?? choice;
    return choice;
  }

  sessionNotices(): readonly Notice[] {
    return this.#parts.flatMap((part) => part.sessionNotices?.() ?? []);
  }

  /** Has a session followed until the function that it returns is called. */
  follow(followed: ObservedSession): () => void {
    const ends = this.#parts.flatMap((part) => part.follow?.(followed) ?? []);
    return () => {
      for (const end of ends) end();
    };
  }

  /** Notes the state of the working directory before the first call of a session that may change something. */
  async beforeChanges(session: Session): Promise<void> {
    for (const part of this.#parts) await part.beforeChanges?.(session);
  }

  /** Returns what is asked at points of a session; null where nothing is. */
  hooks(source: SessionSource, agent?: HookedAgent): Hooks | null {
    for (const part of this.#parts) if (part.hooks) return part.hooks(source, agent);
    return null;
  }

  /** Returns what the system prompt of a new session lists of features. */
  async listing(registry: Registry, windowTokens: number | null): Promise<PromptListing> {
    const listings = await this.#each(async (part) => [await part.listing?.(registry, windowTokens)]);
    return {
      text: joinTexts(listings.map((listing) => listing?.text ?? '')),
      notices: listings.flatMap((listing) => listing?.notices ?? []),
    };
  }

  /** Returns how a new session answers; null for no style. */
  async style(): Promise<PromptStyle | null> {
    for (const part of this.#parts) if (part.style) return await part.style();
    return null;
  }

  /** Returns the blocks that the prompt of a new session ends with; '' for none. */
  async promptText(): Promise<string> {
    return joinTexts(await Promise.all(this.#blocks().map((block) => block.text())));
  }

  /** Returns a prompt with these blocks as they are now. */
  async renewPrompt(prompt: string): Promise<string> {
    let renewed = prompt;
    for (const block of this.#blocks()) renewed = await block.replaceIn(renewed, await block.text());
    return renewed;
  }

  async namedTexts(names: readonly string[]): Promise<readonly string[]> {
    return await this.#each(async (part) => await part.namedTexts?.(names));
  }

  async notesBefore(restored: readonly Event[]): Promise<readonly string[]> {
    return await this.#each(async (part) => await part.notesBefore?.(restored));
  }

  async news(events: readonly Event[]): Promise<readonly string[]> {
    return await this.#each(async (part) => await part.news?.(events));
  }

  readonly expand: Expand = async (message) => {
    let sum: Expansion | null = null;
    for (const { expand } of this.#parts) {
      const expanded = expand ? await expand(message) : null;
      if (expanded === null) continue;
      if (typeof expanded === 'string' || expanded.command !== null) return expanded;
      sum = sum === null ? expanded : joinExpansions(message, sum, expanded);
    }
    return sum;
  };

  /** Expands the sub-agents that a message names. */
  readonly mentions: Expand = async (message) =>
    (await this.#parts.find((part) => part.mentions)?.mentions?.(message)) ?? null;

  /** Returns how many commands run in the background. */
  running(): number {
    return this.#parts.reduce((sum, part) => sum + (part.running?.() ?? 0), 0);
  }

  /** Returns what the status line shows of a session; '' for nothing. */
  status(session: SessionPort): string {
    const texts = this.#parts.map((part) => part.status?.(session) ?? '');
    return texts.filter((text) => text !== '').join(' · ');
  }

  /** Returns the most USD that the session of these events may cost; null for no limit. */
  maxCostUsd(events: readonly Event[], spentUsd: number): number | null {
    const limits = this.#parts.flatMap((part) => part.maxCostUsd?.(events, spentUsd) ?? []);
    return limits.length === 0 ? null : smallestOf(limits);
  }

  /** Returns what waits for the end of usage limits, as a part of a session; nothing where no feature does. */
  limitWait(): { readonly waitForLimit?: WaitForLimit } {
    for (const { waitForLimit } of this.#parts) if (waitForLimit) return { waitForLimit };
    return {};
  }

  /** Has the command that runs in this session continue in the background. Returns false where none can. */
  toBackground(sessionId: string): boolean {
    return this.#parts.some((part) => part.toBackground?.(sessionId));
  }

  async menus(): Promise<readonly Menu[]> {
    return await this.#each(async (part) => (await part.menu?.()) ?? []);
  }

  /** Makes what runs calls of sub-agents; null where no feature does. */
  agents(host: AgentHost): Agents | null {
    for (const part of this.#parts) if (part.agents) return part.agents(host);
    return null;
  }

  async settle(session: Session, store: Store): Promise<void> {
    for (const part of this.#parts) await part.settle?.(session, store);
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => await part.close?.()));
  }

  /** Asks all parts at once. Returns their answers in order. */
  async #each<T>(ask: (part: RunPart) => Promise<T | readonly T[] | undefined>): Promise<readonly T[]> {
    return (await Promise.all(this.#parts.map(ask))).flatMap((answers) => answers ?? []);
  }

  #blocks(): readonly PromptBlock[] {
    return this.#parts.flatMap(({ promptBlock }) => promptBlock ?? []);
  }
}

export async function openRunParts(host: RunHost): Promise<RunParts> {
  const parts = await Promise.all(features.map(async (feature) => (await feature.openRun?.(host)) ?? null));
  return new RunParts(parts.filter((part) => part !== null));
}

/** Joins two expansions of a message that is no command. */
function joinExpansions(message: string, first: Expansion, second: Expansion): Expansion {
  const count = first.calls.length;
  return {
    command: null,
    calls: [...first.calls, ...second.calls],
    text: (outputs) => first.text(outputs.slice(0, count)) + second.text(outputs.slice(count)).slice(message.length),
  };
}

function joinTexts(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

import type { ObservedSession, PromptBlock, RunHost, RunPart } from '../kernel/console/feature.js';
import type { Notice } from '../kernel/console/run-settings.js';
import type { HookedAgent, Hooks, SessionSource } from '../kernel/core/hooks.js';
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

  /** Has a session followed until the function that it returns is called. */
  follow(followed: ObservedSession): () => void {
    const ends = this.#parts.flatMap((part) => part.follow?.(followed) ?? []);
    return () => {
      for (const end of ends) end();
    };
  }

  /** Returns what is asked at points of a session; null where nothing is. */
  hooks(source: SessionSource, agent?: HookedAgent): Hooks | null {
    for (const part of this.#parts) if (part.hooks) return part.hooks(source, agent);
    return null;
  }

  /** Returns the blocks that the prompt of a new session ends with; '' for none. */
  async promptText(): Promise<string> {
    const texts = await Promise.all(this.#blocks().map((block) => block.text()));
    return texts.filter((text) => text !== '').join('\n\n');
  }

  /** Returns a prompt with these blocks as they are now. */
  async renewPrompt(prompt: string): Promise<string> {
    let renewed = prompt;
    for (const block of this.#blocks()) renewed = await block.replaceIn(renewed, await block.text());
    return renewed;
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => await part.close?.()));
  }

  #blocks(): readonly PromptBlock[] {
    return this.#parts.flatMap(({ promptBlock }) => promptBlock ?? []);
  }
}

export async function openRunParts(host: RunHost): Promise<RunParts> {
  const parts = await Promise.all(features.map(async (feature) => (await feature.openRun?.(host)) ?? null));
  return new RunParts(parts.filter((part) => part !== null));
}

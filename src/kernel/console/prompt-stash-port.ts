import { PartKey } from './parts.js';

/** A text that the user has put aside, to send it later. */
export interface StashedPrompt {
  readonly id: number;
  readonly text: string;
  readonly savedAt: Date;
}

/** The stack of stashed prompts of a project. All terminals of the project share it. Each call may reject: the store may
 * be locked or full. */
export interface PromptStash {
  /** Resolves once the text is on the disk. Returns how many prompts the stack has then. */
  push(text: string): Promise<number>;
  /** Returns the prompts, the newest first. */
  list(): Promise<readonly StashedPrompt[]>;
  /** Removes a prompt. Returns false if it was removed already, for example in another terminal. */
  remove(id: number): Promise<boolean>;
}

export const promptStash = new PartKey<PromptStash>('prompt stash');

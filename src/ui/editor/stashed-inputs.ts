import type { PromptStash, StashedPrompt } from '../../kernel/console/prompt-stash-port.js';
import { firstLine } from '../../kernel/core/text.js';
import { shortTime } from './past-inputs.js';
import type { Dialogs } from '../components/dialogs.js';
import type { KeyOf } from './keybindings.js';
import type { PromptInput } from './prompt-input.js';

/** Puts the input on the stack of stashed prompts, and takes prompts from it. */
export interface StashedInputs {
  /** Stashes the input; where it is empty, lists the stashed prompts and puts the chosen one into it. */
  readonly stash: () => Promise<void>;
  /** Returns texts that left the input and are not on the disk yet. */
  readonly unsaved: () => readonly string[];
}

interface Parts {
  readonly port: PromptStash | undefined;
  readonly input: Pick<PromptInput, 'text' | 'setText'>;
  readonly keyOf: KeyOf;
  readonly dialogs: () => Pick<Dialogs, 'pick' | 'keys'>;
  readonly notice: (level: 'info' | 'warn' | 'error', message: string) => void;
  readonly onChange: () => void;
  /** Saves a draft at once. */
  readonly saveDraft: (text: string) => Promise<void>;
}

export function createStashedInputs(d: Parts): StashedInputs {
  const unsaved: string[] = [];
  const add = (text: string): void => {
    d.input.setText([text, d.input.text()].filter((part) => part !== '').join('\n\n'));
    d.onChange();
  };
  const push = async (port: PromptStash, text: string): Promise<void> => {
    unsaved.push(text);
    d.input.setText('');
    d.onChange();
    try {
      d.notice('info', stashedText(await port.push(text), d.keyOf('stash')));
    } catch (error) {
      add(text);
      d.notice('error', `Not stashed: ${problemOf(error)}. The text is back in the input.`);
    } finally {
      unsaved.splice(unsaved.indexOf(text), 1);
    }
  };
  /** The draft has the text before the stack loses it: the end of the program in between leaves it in both. */
  const take = async (port: PromptStash, prompt: StashedPrompt): Promise<void> => {
    await d.saveDraft(prompt.text);
    if (await port.remove(prompt.id)) add(prompt.text);
    else d.notice('info', 'Another terminal has taken this prompt.');
    await d.saveDraft(d.input.text());
  };
  const pop = async (port: PromptStash): Promise<void> => {
    const calledAt = d.dialogs().keys();
    const prompts = await port.list();
    if (prompts.length === 0) {
      d.notice('info', `No prompt is stashed in this project.${howToStash(d.keyOf('stash'))}`);
      return;
    }
    const items = prompts.map((prompt) => ({
      label: firstLine(prompt.text, 70),
      detail: shortTime(prompt.savedAt),
      value: prompt,
    }));
    const chosen = await d.dialogs().pick({ title: 'Stashed prompts of this project', items }, calledAt);
    if (chosen !== null) await take(port, chosen);
  };
  return {
    unsaved: () => unsaved,
    stash: async () => {
      const { port, input } = d;
      if (!port) return;
      const text = input.text();
      try {
        await (text.trim() === '' ? pop(port) : push(port, text));
      } catch (error) {
        d.notice('error', `The stashed prompts cannot be read: ${problemOf(error)}.`);
      }
    },
  };
}

function stashedText(count: number, key: string | null): string {
  const others = count === 1 ? 'the stashed prompt' : `the ${count} stashed prompts of this project`;
  return `Stashed.${key === null ? '' : ` ${key} on the empty input lists ${others}.`}`;
}

function howToStash(key: string | null): string {
  return key === null ? '' : ` ${key} puts the input aside.`;
}

function problemOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

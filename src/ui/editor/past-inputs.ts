import type { Draft, ReplInput } from '../repl-options.js';
import type { Timers } from '../../kernel/core/timers.js';
import type { KeyOf } from './keybindings.js';
import type { PromptInput } from './prompt-input.js';

const draftDelayMs = 400;

/** Brings earlier texts back into the input: past inputs, the saved draft, and messages that waited in a session when
 * the program ended. Saves the draft while it is written. */
export interface PastInputs {
  load(sessionId: string): Promise<void>;
  /** Offers what waited in another session, before what is written already. */
  offer(sessionId: string): Promise<void>;
  keepDraft(): void;
  /** Saves the draft at once, because the program ends. */
  leave(): void;
}

interface Parts {
  readonly options: Pick<ReplInput, 'history' | 'queued'>;
  readonly input: PromptInput;
  /** Texts that left the input and are not saved elsewhere yet. */
  readonly unsaved: () => readonly string[];
  readonly timers: Timers;
  readonly keyOf: KeyOf;
  readonly notice: (level: 'info', message: string) => void;
  readonly onChange: () => void;
}

export function createPastInputs({ options, input, unsaved, timers, keyOf, notice, onChange }: Parts): PastInputs {
  const { history } = options;
  /** False until the saved draft is loaded. */
  let loaded = false;
  let left = false;
  const wholeDraft = (): string => [...unsaved(), input.text()].filter((text) => text !== '').join('\n\n');
  const keepDraft = (): void => {
    if (history.saveDraft) timers.set('draft', draftDelayMs, () => void history.saveDraft?.(wholeDraft()));
  };
  const offer = async (sessionId: string): Promise<void> => {
    const texts = (await options.queued?.(sessionId)) ?? [];
    if (texts.length === 0) return;
    input.setText([...texts, input.text()].filter((text) => text !== '').join('\n\n'));
    keepDraft();
    notice(
      'info',
      texts.length === 1
        ? 'A message that was not sent is back in the input.'
        : `${texts.length} messages that were not sent are back in the input.`,
    );
  };
  /** Puts the saved draft before the text that was typed while it was read. */
  const bringBack = ({ text, savedAt }: Draft): void => {
    input.setText([text, input.text()].filter((part) => part !== '').join('\n\n'));
    const key = (text.includes('\n') ? null : keyOf('cut_line_left')) ?? keyOf('cancel');
    if (input.text().startsWith(text))
      notice('info', `Draft from ${shortTime(savedAt)}${key === null ? '' : `; ${key} clears it`}.`);
  };
  return {
    load: async (sessionId) => {
      input.setHistory(await history.load());
      if (left) return;
      // A draft that finds the input in use is offered at the next start.
      const draft = input.text() === '' ? await history.loadDraft?.() : null;
      if (draft) bringBack(draft);
      loaded = true;
      await offer(sessionId);
      onChange();
    },
    offer,
    keepDraft,
    leave: () => {
      left = true;
      const draft = wholeDraft();
      // An empty input says nothing about a saved draft that is not loaded yet.
      if (loaded || draft !== '') void history.saveDraft?.(draft);
    },
  };
}

/** Formats a time: the hour today, also the day otherwise. */
export function shortTime(date: Date): string {
  const two = (count: number): string => String(count).padStart(2, '0');
  const day = (of: Date): string => `${of.getFullYear()}-${two(of.getMonth() + 1)}-${two(of.getDate())}`;
  const hour = `${two(date.getHours())}:${two(date.getMinutes())}`;
  return day(date) === day(new Date()) ? hour : `${day(date)} ${hour}`;
}

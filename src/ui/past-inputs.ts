import type { PromptInput } from './prompt-input.js';
import type { HistoryPort } from './repl-options.js';
import type { Timers } from './timers.js';

const draftDelayMs = 400;

/** Brings past inputs and the kept draft into the input, and keeps the draft while it is written. */
export interface PastInputs { load(): Promise<void>; keepDraft(): void }

export function createPastInputs(history: HistoryPort, input: PromptInput, timers: Timers): PastInputs {
  return {
    load: async () => {
      input.setHistory(await history.load());
      const draft = await history.loadDraft?.();
      if (draft !== undefined && draft !== '' && input.text() === '') input.setText(draft);
    },
    keepDraft: () => {
      if (history.saveDraft) timers.set('draft', draftDelayMs, () => void history.saveDraft?.(input.text()));
    },
  };
}

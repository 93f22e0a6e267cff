import type { Answer, Question } from '../../core/policy.js';
import { createApproval } from './approval.js';
import { createPager } from './pager.js';
import type { Overlay } from './panel.js';
import { createPicker, type Picking, type Rank } from './picker.js';
import type { Clock } from '../ports.js';
import { sanitize } from '../sanitize.js';

/** What stands in the place of the input: questions, pickers, the pager. The last one has the keys; a question waits below what is open. */
export interface Dialogs {
  top(): Overlay | null;
  /** One dialog per open question; one that was answered elsewhere goes. */
  sync(questions: readonly Question[]): void;
  pick<T>(options: Picking<T>): Promise<T | null>;
  page(title: string, text: string): Promise<void>;
  clear(): void;
}

export function createDialogs(d: { readonly clock: Clock; readonly rank: Rank; readonly onAnswer: (callId: string, answer: Answer) => void; readonly onChange: () => void }): Dialogs {
  const stack: Overlay[] = [];
  const asked = new Map<string, Overlay>();
  const close = (overlay: Overlay): void => {
    const at = stack.indexOf(overlay);
    if (at >= 0) stack.splice(at, 1);
  };
  const open = <T>(create: (done: (value: T) => void) => Overlay): Promise<T> => new Promise((resolve) => {
    const overlay: Overlay = create((value) => { close(overlay); resolve(value); d.onChange(); });
    stack.push(overlay);
    d.onChange();
  });
  const ask = (question: Question): void => {
    const overlay = createApproval(question, d.clock, (answer) => { close(overlay); d.onAnswer(question.callId, answer); }, d.onChange);
    asked.set(question.callId, overlay);
    stack.unshift(overlay);
  };
  return {
    top: () => stack.at(-1) ?? null,
    sync: (questions) => {
      for (const [callId, overlay] of asked) {
        if (questions.some((question) => question.callId === callId)) continue;
        asked.delete(callId);
        close(overlay);
      }
      for (const question of questions) if (!asked.has(question.callId)) ask(question);
    },
    pick: (options) => open((done) => createPicker(options, d.rank, done, d.onChange)),
    page: (title, text) => open<void>((done) => createPager(sanitize(title), sanitize(text).split('\n'), () => { done(); }, d.onChange)),
    clear: () => { stack.length = 0; asked.clear(); },
  };
}

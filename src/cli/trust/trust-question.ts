import type { LoadedProject } from '../../config/load.js';
import { trustQuestion } from './trust-listing.js';
import { print } from '../print.js';

/** The terminal, as far as a question needs it. */
export interface QuestionPort {
  write(text: string): void;
  /** Takes what was typed ahead, so that it answers nothing. */
  discardTyped(): Promise<void>;
  /** The next line typed, or null where the input ended. */
  line(): Promise<string | null>;
}

const typedAheadMs = 250;

/** Asks for trust in a project's settings. No is the default, and everything but `y` or `yes`. `unanswered`: there was nothing that could be asked, or no answer came. */
export async function askForTrust(project: LoadedProject | null, port: QuestionPort): Promise<'yes' | 'no' | 'unanswered'> {
  const question = trustQuestion(project);
  if (!question) return 'unanswered';
  port.write(`${question.text}\n`);
  if (!question.askable) return 'unanswered';
  await port.discardTyped();
  port.write('Trust this directory with exactly this file? [y/N] ');
  const answer = await port.line();
  if (answer === null) port.write('\n');
  return answer === null ? 'unanswered' : /^\s*y(?:es)?\s*$/i.test(answer) ? 'yes' : 'no';
}

/** The terminal in its line mode: the kernel edits the line, Ctrl-C ends the program. */
export function terminalQuestion(input: NodeJS.ReadStream): QuestionPort {
  return {
    write: (text) => { print(text); },
    discardTyped: async () => {
      const drop = (): void => { /* typed before the question stood there */ };
      input.setRawMode(true); // a line that has not ended yet is kept back by the kernel otherwise
      input.on('data', drop).resume();
      await new Promise((resolve) => { setTimeout(resolve, typedAheadMs); });
      input.off('data', drop).pause().setRawMode(false);
    },
    line: () => new Promise((resolve) => {
      let text = '';
      const done = (line: string | null): void => {
        input.off('data', onData).off('end', onEnd).pause();
        resolve(line);
      };
      const onEnd = (): void => { done(null); };
      const onData = (chunk: Buffer | string): void => {
        text += String(chunk);
        const end = text.search(/[\r\n]/);
        if (end >= 0) done(text.slice(0, end));
      };
      input.on('data', onData).once('end', onEnd).resume();
    }),
  };
}

import type { LoadedProject } from '../../config/load.js';
import { pauseMs } from '../../ui/timers.js';
import { trustQuestion } from './trust-listing.js';
import { print } from '../print.js';

/** The terminal, as far as a question needs it. */
export interface QuestionPort {
  write(text: string): void;
  /** Waits until nobody types; what was typed until then answers nothing. */
  untilPause(): Promise<void>;
  /** The next line typed, or null where the input ended. */
  line(): Promise<string | null>;
}

/** Asks for trust in a project's settings. No is the default, and everything but `y` or `yes`. `unanswered`: there was
 * nothing that could be asked, or no answer came. */
export async function askForTrust(
  project: LoadedProject | null,
  port: QuestionPort,
): Promise<'yes' | 'no' | 'unanswered'> {
  const question = trustQuestion(project);
  if (!question) return 'unanswered';
  port.write(`${question.text}\n`);
  if (!question.askable) return 'unanswered';
  await port.untilPause();
  port.write('Trust this directory with exactly this file? [y/N] ');
  const answer = await port.line();
  if (answer === null) port.write('\n');
  return answer === null ? 'unanswered' : /^\s*y(?:es)?\s*$/i.test(answer) ? 'yes' : 'no';
}

/** The terminal in its line mode: the kernel edits the line, Ctrl-C ends the program. `onTyped` is given what was typed
 * for something else. */
export function terminalQuestion(input: NodeJS.ReadStream, onTyped: (chunk: string) => void): QuestionPort {
  return {
    write: (text) => {
      print(text);
    },
    untilPause: () =>
      new Promise((resolve) => {
        const done = (): void => {
          input.off('data', take).off('end', done).pause().setRawMode(false);
          resolve();
        };
        let timer = setTimeout(done, pauseMs);
        const take = (chunk: Buffer | string): void => {
          clearTimeout(timer);
          timer = setTimeout(done, pauseMs);
          const text = String(chunk);
          if (!text.includes('\x03')) {
            onTyped(text);
            return;
          }
          input.setRawMode(false);
          process.kill(process.pid, 'SIGINT');
        };
        input.setRawMode(true); // the kernel keeps back a line that has not ended otherwise
        input.on('data', take).once('end', done).resume();
      }),
    line: () =>
      new Promise((resolve) => {
        let text = '';
        const done = (line: string | null): void => {
          input.off('data', onData).off('end', onEnd).pause();
          resolve(line);
        };
        const onEnd = (): void => {
          done(null);
        };
        const onData = (chunk: Buffer | string): void => {
          text += String(chunk);
          const end = text.search(/[\r\n]/);
          if (end >= 0) done(text.slice(0, end));
        };
        input.on('data', onData).once('end', onEnd).resume();
      }),
  };
}

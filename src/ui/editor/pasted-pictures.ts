import type { PicturePort } from '../repl-options.js';
import type { PromptInput } from './prompt-input.js';

/** Puts chips into the input for images that are pasted, dragged onto the terminal, or in the clipboard. */
export interface PastedPictures {
  /** Replaces the names of images in a pasted text of the input with their chips. */
  pasted(text: string): Promise<void>;
  /** Ctrl-V: adds the image in the clipboard. */
  clipboard(): Promise<void>;
}

interface Parts {
  readonly port: PicturePort | undefined;
  readonly input: PromptInput;
  readonly notice: (level: 'warn', message: string) => void;
  readonly onChange: () => void;
}

export function createPastedPictures({ port, input, notice, onChange }: Parts): PastedPictures {
  const clipboard = async (): Promise<void> => {
    if (port === undefined) return;
    const taken = await port.clipboard();
    if (taken.ok) input.insert(`${taken.chip} `);
    else notice('warn', taken.problem);
    onChange();
  };
  return {
    clipboard,
    pasted: async (text) => {
      // A terminal has no text to paste if the clipboard holds an image.
      if (text === '') return await clipboard();
      const taken = await port?.pasted(text);
      if (!taken) return;
      if (taken.ok) input.exchange(text, `${taken.chip} `);
      else notice('warn', taken.problem);
      onChange();
    },
  };
}

/** A path as terminals write a file that is dragged onto them: in quotes, with escaped blanks, as `file://`. */
const draggedPath = /(?<!\S)(?:(['"])(?:~?\/|file:)[^\n]*?\1|(?:~?\/|file:)(?:\\.|[^\s\\'"])+)(?!\S)/g;
const pictureName = /\.(?:png|jpe?g|gif|webp|pdf)\b/i;

interface LineParts {
  readonly port: PicturePort | undefined;
  readonly notice: (level: 'info' | 'warn', message: string) => void;
  readonly send: (text: string) => void;
}

/** Sends lines that a terminal has edited, with chips in place of the images that they name, because such a terminal
 * does not report what was pasted or dragged into them. A line is sent after those before it, whose images may still be
 * loading. */
export function createLineSender({ port, notice, send }: LineParts): (line: string) => void {
  let sending: Promise<void> | null = null;
  return (line) => {
    const made = port && pictureName.test(line) ? exchanged(line, port, notice) : null;
    if (made === null && sending === null) {
      send(line);
      return;
    }
    const now = Promise.all([made, sending]).then(([text]) => {
      if (sending === now) sending = null;
      if (text !== null && text !== line) notice('info', `Sent as: ${text}`);
      send(text ?? line);
    });
    sending = now;
  };
}

async function exchanged(line: string, port: PicturePort, notice: LineParts['notice']): Promise<string> {
  let text = line;
  const whole = await port.pasted(line);
  const parts = whole ? [] : [...line.matchAll(draggedPath)].map(([path]) => path);
  for (const path of whole ? [line] : parts) {
    const taken = whole ?? (await port.pasted(path));
    if (taken?.ok) text = text.replace(path, () => taken.chip);
    else if (taken) notice('warn', taken.problem);
  }
  return text;
}

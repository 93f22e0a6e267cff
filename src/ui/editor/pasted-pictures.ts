import type { PicturePort } from '../repl-options.js';
import type { PromptInput } from './prompt-input.js';

/** Puts chips into the input for pictures that are pasted, dragged onto the terminal, or in the clipboard. */
export interface PastedPictures {
  /** A text was pasted and stands in the input: where it names pictures, their chips take its place. */
  pasted(text: string): Promise<void>;
  /** Ctrl-V: the picture in the clipboard. */
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
      // A terminal has no text to paste where the clipboard holds a picture.
      if (text === '') return await clipboard();
      const taken = await port?.pasted(text);
      if (!taken) return;
      if (taken.ok) input.exchange(text, `${taken.chip} `);
      else notice('warn', taken.problem);
      onChange();
    },
  };
}

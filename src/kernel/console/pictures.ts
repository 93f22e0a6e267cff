import type { Attachments } from '../core/files/attached-formats.js';
import type { MatchedFile } from '../core/tool.js';
import type { ProcessRunner } from '../tools/process/runner.js';
import { CliError, exit } from './command.js';
import { PartKey, type Parts } from './parts.js';
import type { Settings } from './run-settings.js';

/** An image that waits for the message whose text names it by this chip. */
export type TakenImage =
  | { readonly ok: true; readonly chip: string }
  | { readonly ok: false; readonly problem: string };

/** The images and documents of a run. Nothing is loaded before there is one. */
export interface Pictures {
  readonly attachments: Attachments;
  /** Takes a file at a path that the user gave; it goes with the next message that holds its chip. */
  take(path: string): Promise<TakenImage>;
  takeBytes(file: MatchedFile): Promise<TakenImage>;
  /** Takes the files that a pasted text names; null where it is no more than a text. They also go with a message that
   * holds the text itself. */
  pasted(text: string): Promise<TakenImage | null>;
  clipboard(): Promise<TakenImage>;
  /** Attaches the image of this chip to the next message, even if its text does not contain the chip. */
  attachNext(chip: string): void;
}

/** Opens the images of a run. Without `processes` the clipboard is empty. */
export type OpenPictures = (
  settings: Pick<Settings, 'cwd' | 'config' | 'env'>,
  processes: ProcessRunner | null,
) => Pictures;

export const picturesOf = new PartKey<OpenPictures>('pictures');

/** Opens the images of a run; where no feature takes them, each is refused. */
export function openPictures(
  provided: Parts,
  settings: Parameters<OpenPictures>[0],
  processes: ProcessRunner | null,
): Pictures {
  return provided.find(picturesOf)?.(settings, processes) ?? noPictures;
}

const refused = { ok: false, problem: 'This program was built without attachments.' } as const;

const noPictures: Pictures = {
  attachments: {
    named: () => Promise.resolve(null),
    keep: (files) =>
      Promise.resolve({ attachments: [], blobs: [], refused: files.length > 0 ? [refused.problem] : [] }),
    sent: (conversation) => Promise.resolve(conversation),
  },
  take: () => Promise.resolve(refused),
  takeBytes: () => Promise.resolve(refused),
  pasted: () => Promise.resolve(null),
  clipboard: () => Promise.resolve(refused),
  attachNext: () => undefined,
};

/** Present where addresses of images in messages are loaded. */
export const imageAddresses = new PartKey<true>('images by address');

export function isWebAddress(path: string): boolean {
  return /^https?:\/\//i.test(path);
}

/** Takes the files of `--image`. Returns the prompt with their chips; an empty prompt stays empty, and they go with the
 * first message. Addresses are named in the prompt, also in an empty one: they are loaded with its message. Throws a
 * `CliError` for a file that cannot be attached. */
export async function promptWithImages(
  provided: Parts,
  pictures: Pictures,
  images: readonly string[],
  prompt: string,
): Promise<string> {
  const chips: string[] = [];
  for (const path of images) {
    if (isWebAddress(path)) {
      if (provided.find(imageAddresses) === null)
        throw new CliError(exit.usage, `--image: ${path} is an address`, 'Save the image to a file and give its path.');
      chips.push(`@${path}`);
      continue;
    }
    const taken = await pictures.take(path);
    if (!taken.ok)
      throw new CliError(exit.usage, `--image: ${taken.problem}`, 'Use a PNG, JPEG, GIF, WebP or PDF file.');
    if (prompt === '') pictures.attachNext(taken.chip);
    else chips.push(taken.chip);
  }
  const added = chips.join(' ');
  return prompt === '' || added === '' ? `${prompt}${added}` : `${prompt}\n${added}`;
}

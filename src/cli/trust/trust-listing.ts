import { replaceUnseen } from '../../core/text.js';
import type { LoadedProject } from '../../config/load.js';
import type { Leaf } from '../../config/layers.js';
import { keyText } from '../../config/settings-schema.js';

/** Longer lists are not read by anybody, so they are not asked about. */
const maxCharacters = 8000;
/** Neither letters, digits, punctuation and symbols nor a plain blank. Marks are spelt out: they change or hide what
 * stands before them. */
const unusual = /[^\p{L}\p{N}\p{P}\p{S} ]/gu;

/** `text` on one line with whatever cannot be seen spelt out: `\u{202e}`. */
export function spelledOut(text: string): string {
  const spelled = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  return replaceUnseen(text.replaceAll(unusual, spelled), spelled);
}

/** Exactly what trust would let count, a line for each setting. */
export function wantedLines(wanted: readonly Leaf[]): readonly string[] {
  return wanted.map((leaf) => spelledOut(`${keyText(leaf.path)} = ${JSON.stringify(leaf.value)}`));
}

/** The question for a project's settings, without the answer's prompt; null where there is nothing to ask. */
export function trustQuestion(
  project: LoadedProject | null,
): { readonly text: string; readonly askable: boolean } | null {
  if (!project || project.trusted || project.wanted.length === 0) return null;
  const path = spelledOut(project.file.path);
  const lines = wantedLines(project.wanted);
  if (lines.join('').length > maxCharacters) {
    return {
      askable: false,
      text: `${path} asks for more settings than can be shown here (${lines.length}). It is not trusted; read it, and take over what you want with agent config set.`,
    };
  }
  return {
    askable: true,
    text: [
      path,
      `(sha256 ${project.file.sha256})`,
      'asks for settings that need your trust. Without it they are ignored. With it these would count, here and until the file changes:',
      '',
      ...lines.map((line) => `  ${line}`),
      '',
    ].join('\n'),
  };
}

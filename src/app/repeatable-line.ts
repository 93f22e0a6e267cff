import { addAll } from '../kernel/core/lists.js';
import type { EventDraft } from '../kernel/core/event.js';
import { givenOptions, optionWords, type RootOptions } from '../kernel/console/options.js';
import { version } from '../kernel/console/version.js';
import { givenObject } from './given-objects.js';
import { promptText } from './settings.js';

/** Options whose value may name a file with an object. */
const objects: readonly string[] = ['mcpConfig', 'agents', 'settings'];
/** Options whose value may name a file with a text: `@file`. */
const texts: readonly string[] = ['systemPrompt', 'replaceSystemPrompt'];

/** Returns the words that repeat a run, with the texts of the files that its options name. Undefined where no option asks
 * for a record of them. Throws a `CliError` (2) for a file that cannot be read. */
export async function repeatableLine(
  options: RootOptions,
  prompt: readonly string[],
  cwd: string,
): Promise<readonly string[] | undefined> {
  const listed = givenOptions(options);
  if (!listed.some(({ isRecorded }) => isRecorded)) return undefined;
  const words: string[] = [];
  for (const option of listed)
    for (const value of option.values)
      addAll(words, optionWords(option, value === true ? value : await writtenOut(option.key, value, cwd)));
  return prompt.length === 0 ? words : [...words, '--', ...prompt];
}

async function writtenOut(key: string, value: string, cwd: string): Promise<string> {
  if (objects.includes(key)) return JSON.stringify(await givenObject(`--${key}`, value, cwd, '{}'));
  return texts.includes(key) ? promptText(`--${key}`, value, cwd) : value;
}

/** Returns the event of the command line of a run; nothing where it is not recorded. */
export function runEvents({ commandLine }: Pick<RootOptions, 'commandLine'>): readonly EventDraft[] {
  if (commandLine === undefined) return [];
  const content = ['agent', ...commandLine].map(shellWord).join(' ');
  return [{ kind: 'run', content, data: { version, arguments: commandLine } }];
}

function shellWord(word: string): string {
  return /^[\w@+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

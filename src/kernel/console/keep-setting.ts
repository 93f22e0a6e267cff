import { editConfigFile } from '../config/settings-file.js';
import type { SaveResult } from '../core/policy.js';
import type { Repl } from './command.js';
import type { Settings } from './run-settings.js';

/** Takes `--keep` out of an argument. */
export function parseKeep(argument: string): { readonly rest: string; readonly keeps: boolean } {
  const words = argument.split(/\s+/).filter((word) => word !== '');
  const rest = words.filter((word) => word !== '--keep');
  return { rest: rest.join(' '), keeps: rest.length < words.length };
}

/** Keeps a setting with `--keep`; else says how long it counts and how to keep it. */
export async function keepOrSayHow(
  { keep }: Pick<Repl, 'keep'>,
  command: 'approval' | 'effort' | 'model' | 'theme',
  value: string,
  keeps: boolean,
): Promise<string> {
  return keeps
    ? await keep(command === 'theme' ? 'ui.theme' : command, value)
    : `This counts until the program ends; /${command} ${value} --keep keeps it.`;
}

/** Writes one setting into the user's configuration, and says so. `ephemeral`: nothing may be kept on disk. */
export async function keepSetting(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  ephemeral: boolean,
  key: string,
  value: unknown,
): Promise<SaveResult> {
  if (ephemeral) return { done: false, said: 'It is not kept: --ephemeral keeps nothing on disk.' };
  const { config: file } = config.files;
  try {
    const edited = await editConfigFile(file, key.split('.'), value);
    if (!edited.ok) return { done: false, said: `It is not kept: ${edited.problem.message}` };
  } catch (error) {
    return { done: false, said: `It is not kept: ${error instanceof Error ? error.message : String(error)}` };
  }
  const origin = loaded.origins[key]?.kind ?? 'default';
  // An option counts for the start that has it: the next one goes by what is kept.
  const overruled = ['default', 'user', 'flag'].includes(origin)
    ? ''
    : ` The next start overrules it by the ${origin}, as this one did.`;
  return { done: true, said: `Kept in ${file}: ${key} = ${JSON.stringify(value)}.${overruled}` };
}

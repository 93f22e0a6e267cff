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

/** Saves the approval mode with `--keep`; else says how long it lasts and how to save it. */
export async function keepOrSayHow({ keep }: Pick<Repl, 'keep'>, mode: string, keeps: boolean): Promise<string> {
  return keeps
    ? await keep('approval', mode)
    : `For this session only; make it the default with /approval ${mode} --keep.`;
}

/** Takes `--session` out of an argument, and `--keep`, which is the default of the commands that remember. */
export function parseSession(argument: string): { readonly rest: string; readonly isForSession: boolean } {
  const words = parseKeep(argument).rest.split(' ');
  const rest = words.filter((word) => word !== '--session');
  return { rest: rest.join(' '), isForSession: rest.length < words.length };
}

/** Saves a choice as the default of new sessions, unless it is for this session alone. Returns what happened. */
export async function remember(
  { keep }: Pick<Repl, 'keep'>,
  key: 'model' | 'effort' | 'output_style' | 'ui.theme',
  value: string,
  isForSession: boolean,
): Promise<string> {
  if (isForSession) return 'For this session only.';
  const said = await keep(key, value);
  return said.startsWith(keptLead) && said.endsWith(`= ${JSON.stringify(value)}.`) ? 'Saved as the default.' : said;
}

const keptLead = 'Saved to ';

/** Writes one setting into the user's configuration, and says so. `ephemeral`: nothing may be kept on disk. */
export async function keepSetting(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  ephemeral: boolean,
  key: string,
  value: unknown,
): Promise<SaveResult> {
  if (ephemeral) return { done: false, said: 'Not saved: --ephemeral writes nothing to disk.' };
  const { config: file } = config.files;
  try {
    const edited = await editConfigFile(file, key.split('.'), value);
    if (!edited.ok) return { done: false, said: `Not saved: ${edited.problem.message}` };
  } catch (error) {
    return { done: false, said: `Not saved: ${error instanceof Error ? error.message : String(error)}` };
  }
  const origin = loaded.origins[key]?.kind ?? 'default';
  // An option counts for the start that has it: the next one goes by what is kept.
  const overruled = ['default', 'user', 'flag'].includes(origin)
    ? ''
    : ` The ${origin} overrides it at the next start, as it did now.`;
  const said =
    value === undefined ? `Removed ${key} from ${file}.` : `${keptLead}${file}: ${key} = ${JSON.stringify(value)}.`;
  return { done: true, said: said + overruled };
}

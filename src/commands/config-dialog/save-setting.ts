import { valueAt } from '../../kernel/config/layers.js';
import { loadConfig, type LoadedConfig } from '../../kernel/config/load.js';
import { keyText, maskValue, resolveKey, type SettingKey } from '../../kernel/config/settings-schema.js';
import type { Repl } from '../../kernel/console/command.js';
import { startProblems } from '../configure.js';
import { applySetting, isLive } from './apply-setting.js';
import { changeSetting, type Scope, type SettingChange, undoChange } from './setting-changes.js';
import { fixedBy, originAt } from './setting-rows.js';

/** The outcome of a change, as sentences. */
export interface SaveReport {
  readonly ok: boolean;
  readonly said: string;
  readonly change?: SettingChange;
}

export interface SettingWish {
  readonly key: SettingKey;
  readonly scope: Scope;
  readonly value: unknown;
}

/** Writes a value, applies it, and says what happened. */
export async function saveSetting({ key, scope, value }: SettingWish, repl: Repl): Promise<SaveReport> {
  const { settings } = repl;
  const before = await loadNow(repl);
  const here = { ...settings, loaded: before };
  const result = await changeSetting(here, scope, key.path, value, () => problemsNow(repl));
  if (!result.ok) return { ok: false, said: result.reason };
  const done =
    value === undefined
      ? `Removed ${keyText(key.path)} from ${scope.file}.`
      : `Saved to ${scope.file}: ${keyText(key.path)} = ${JSON.stringify(maskValue(value, key.path))}.`;
  const effect = await effectOf({ key, scope, value }, before, repl);
  return { ok: true, said: `${done} ${effect}`.trim(), change: result.change };
}

/** Applies a value to this session and writes nothing. Says what happened. */
export async function setForSession({ path }: SettingKey, value: unknown, repl: Repl): Promise<SaveReport> {
  const key = keyText(path);
  const set = `${key} = ${JSON.stringify(maskValue(value ?? null, path))}`;
  if (!isLive(key) || value === undefined)
    return {
      ok: false,
      said: `Not set: ${key} cannot change within a session. Leave out --session, or start agent with --set ${key}=VALUE.`,
    };
  const isApplied = await applySetting(key, value, repl);
  return isApplied
    ? { ok: true, said: `${set} in this session. Your settings stay as they are.` }
    : { ok: false, said: `Not set: ${set} cannot be used in this session.` };
}

/** Applies the change where it counts now. Returns what the user must know about its effect. */
async function effectOf({ key, scope, value }: SettingWish, before: LoadedConfig, repl: Repl): Promise<string> {
  const now = await loadNow(repl);
  const origin = originAt(now, key.path);
  const fixed = fixedBy(origin);
  if (fixed !== '') return fixed;
  if (scope.kind === 'user' && origin.kind === 'project') return 'The settings of this project override it here.';
  if (scope.kind === 'project' && value !== undefined && origin.kind !== 'project')
    return 'It does not count yet: this file is not trusted. Review it with agent config trust.';
  const [earlier, present] = [before, now].map(({ values }) => valueAt(values, key.path));
  if (JSON.stringify(earlier) === JSON.stringify(present)) return '';
  return (await applySetting(keyText(key.path), present, repl)) ? '' : 'Restart agent to use it.';
}

/** Undoes one change, the last one unless `id` names another, and says what happened. */
export async function undoSetting(repl: Repl, id?: string): Promise<SaveReport> {
  const before = await loadNow(repl);
  const result = await undoChange({ ...repl.settings, loaded: before }, id);
  if (!result.ok) return { ok: false, said: result.reason };
  const { scope, path, before: value } = result.change;
  const key = resolveKey(keyText(path));
  const text = value === undefined ? 'not set' : JSON.stringify(maskValue(value, path));
  const effect = key ? await effectOf({ key, scope, value }, before, repl) : '';
  return { ok: true, said: `Undone in ${scope.file}: ${keyText(path)} is ${text} again. ${effect}`.trim() };
}

/** Reads the settings as they are on the disk. */
export async function loadNow({ line, settings }: Pick<Repl, 'line' | 'settings'>): Promise<LoadedConfig> {
  return await loadConfig({ ...line.request, cwd: settings.cwd });
}

async function problemsNow(repl: Pick<Repl, 'line' | 'settings'>): ReturnType<typeof startProblems> {
  return await startProblems(await loadNow(repl), repl.line.tools);
}

import { type Origin, originRank, valueAt } from '../../kernel/config/layers.js';
import type { LoadedConfig } from '../../kernel/config/load.js';
import { type SettingKey, keyText, maskValue, resolveKey } from '../../kernel/config/settings-schema.js';
import type { Json } from '../../kernel/core/json.js';
import { type ConfigRow, configRows, originText } from '../configure.js';
import { isLive } from './apply-setting.js';

/** Returns the strongest source of a setting, or of one inside it. */
export function originAt({ origins }: Pick<LoadedConfig, 'origins'>, path: readonly string[]): Origin {
  const key = keyText(path);
  return Object.entries(origins)
    .flatMap(([name, origin]) => (name === key || name.startsWith(`${key}.`) ? [origin] : []))
    .reduce<Origin>((strongest, one) => (originRank(one) > originRank(strongest) ? one : strongest), {
      kind: 'default',
    });
}

/** Names a source in a few words, for a list. */
export function sourceName(origin: Origin, isSet: boolean): string {
  if (!isSet) return 'not set';
  switch (origin.kind) {
    case 'default':
      return 'default';
    case 'user':
      return 'your settings';
    case 'project':
      return 'this project';
    case 'environment':
      return origin.variable;
    case 'set':
      return 'option --set';
    case 'flag':
      return 'option';
    default:
      return origin satisfies never;
  }
}

/** Says which source is stronger than the settings files; '' where none is. */
export function fixedBy(origin: Origin): string {
  switch (origin.kind) {
    case 'environment':
      return `The variable ${origin.variable} sets it: what you save has an effect once that is unset.`;
    case 'set':
    case 'flag':
      return 'An option of this run sets it: what you save has an effect in runs without that option.';
    case 'default':
    case 'user':
    case 'project':
      return '';
    default:
      return origin satisfies never;
  }
}

/** A setting as the dialog lists it. */
export interface SettingRow extends SettingKey {
  readonly key: string;
  /** Masked; null if it is not set. */
  readonly value: Json;
  readonly source: string;
  /** This run still has another value. */
  readonly needsRestart: boolean;
}

/** Returns all settings as they are on the disk. `running`: as this run began. */
export function settingRows(now: LoadedConfig, running: Pick<LoadedConfig, 'values'>): readonly SettingRow[] {
  return configRows(now).flatMap(({ key, value }) => {
    const found = resolveKey(key);
    if (!found) return [];
    const { path, node } = found;
    const isChanged = JSON.stringify(valueAt(now.values, path)) !== JSON.stringify(valueAt(running.values, path));
    const source = sourceName(originAt(now, path), value !== null);
    return [{ key, path, node, value, source, needsRestart: isChanged && !isLive(key) }];
  });
}

const longestValue = 24;

/** Writes a value on one line, shortened. */
export function shortValue(value: Json): string {
  const text = value === null ? '' : JSON.stringify(value);
  return text.length > longestValue ? `${text.slice(0, longestValue - 1)}…` : text;
}

/** Lists the settings that have a source, the defaults, and the names of those that are not set. */
export function settingLines(loaded: LoadedConfig): string {
  const rows = configRows(loaded);
  const set = rows.filter(({ value }) => value !== null);
  const given = set.filter(({ origin }) => origin !== 'default').map(settingLine);
  const defaults = set.filter(({ origin }) => origin === 'default');
  const unset = rows.filter(({ value }) => value === null).map(({ key }) => key);
  return [
    ...given,
    ...(given.length > 0 ? [''] : []),
    'Defaults:',
    ...defaults.map(({ key, value }) => `${key} = ${wholeValue(value)}`),
    '',
    `Not set: ${unset.join(', ')}`,
  ].join('\n');
}

/** Shows one setting: its value and its source. */
export function settingText(loaded: LoadedConfig, { path, node }: SettingKey): string {
  const key = keyText(path);
  const value = maskValue(valueAt(loaded.values, path) ?? null, path);
  const row = configRows(loaded).find((one) => one.key === key);
  const source = row ? originText(row) : sourceName(originAt(loaded, path), value !== null);
  const about = node.description === undefined ? '' : `\n${node.description}`;
  return value === null ? `${key} is not set.${about}` : `${key} = ${wholeValue(value)} (${source})${about}`;
}

function settingLine(row: ConfigRow): string {
  return `${row.key} = ${wholeValue(row.value)} (${originText(row)})`;
}

/** Writes a value on one line that may break between the items of a list. */
function wholeValue(value: Json): string {
  return Array.isArray(value) && value.length > 0
    ? value.map((item) => JSON.stringify(item)).join(', ')
    : JSON.stringify(value);
}

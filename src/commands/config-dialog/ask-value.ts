import { parseText, valueAt } from '../../kernel/config/layers.js';
import type { LoadedConfig } from '../../kernel/config/load.js';
import { textProblem } from '../../kernel/config/settings-file.js';
import {
  defaultValues,
  expected,
  keyText,
  maskValue,
  misplacedSecret,
  type SettingKey,
} from '../../kernel/config/settings-schema.js';
import type { Repl } from '../../kernel/console/command.js';
import { ownThemes } from '../../kernel/console/theme-files.js';
import type { Form, FormField } from '../../kernel/core/form.js';
import { fixedBy, originAt, shortValue, sourceName } from './setting-rows.js';

/** The value that the user chose; undefined removes the setting. */
export interface ChosenValue {
  readonly value: unknown;
}

/** The text that removes a setting, as for `agent config set`. */
const removing = 'null';

/** Asks for a value of a setting. Null: the user left. */
export async function askValue(key: SettingKey, loaded: LoadedConfig, repl: Repl): Promise<ChosenValue | null> {
  const choices = choicesFor(key, repl);
  if (choices !== null) return await pickValue(key, choices, loaded, repl);
  if (maskValue('x', key.path) === '***') return await askHidden(key, repl);
  return await writeValue(key, loaded, repl);
}

function choicesFor({ path, node }: SettingKey, { themes }: Pick<Repl, 'themes'>): readonly unknown[] | null {
  if (keyText(path) === 'ui.theme') return [...ownThemes, ...themes.names()];
  if (node.type === 'boolean') return [true, false];
  return node.enum ?? null;
}

async function pickValue(
  { path, node }: SettingKey,
  choices: readonly unknown[],
  loaded: LoadedConfig,
  { screen }: Repl,
): Promise<ChosenValue | null> {
  const now = valueAt(loaded.values, path);
  const origin = originAt(loaded, path);
  const standard = valueAt(defaultValues(), path);
  const items = choices.map((value) => ({
    label: String(value),
    detail: [...(value === now ? ['now'] : []), ...(value === standard ? ['default'] : [])].join(', '),
    value,
  }));
  const removal = {
    label: 'Remove the setting',
    detail: standard === undefined ? 'then it is not set' : `then the default counts: ${JSON.stringify(standard)}`,
    value: undefined,
  };
  const all = (origin.kind === 'default' ? items : [...items, removal]).map(({ value, ...item }) => ({
    ...item,
    value: { value },
  }));
  const current = all.find((item) => item.value.value === now && item.label !== removal.label)?.value;
  return await screen.pick<ChosenValue>({
    title: keyText(path),
    items: all,
    ...(current ? { current } : {}),
    said: [node.description ?? '', fixedBy(origin)].filter((text) => text !== '').join(' '),
  });
}

async function writeValue(key: SettingKey, loaded: LoadedConfig, { screen }: Repl): Promise<ChosenValue | null> {
  const { path, node } = key;
  const now = valueAt(loaded.values, path);
  const isHidden = JSON.stringify(maskValue(now ?? null, path)) !== JSON.stringify(now ?? null);
  const origin = originAt(loaded, path);
  const present = isHidden
    ? 'Its value contains a secret, which is not shown.'
    : `Now: ${now === undefined ? '' : `${shortValue(maskValue(now, path))}, `}${sourceName(origin, now !== undefined)}.`;
  const form: Form = {
    from: 'agent',
    title: keyText(path),
    message: [node.description ?? '', present, fixedBy(origin)].filter((text) => text !== '').join('\n'),
    fields: [fieldFor(key, isHidden ? undefined : now)],
  };
  const answer = await screen.ask(form);
  if (answer === null) return null;
  const { value } = answer;
  if (value === undefined || Array.isArray(value)) return { value: value ?? [] };
  const read = readValue(key, String(value));
  return read.ok ? { value: read.value } : null;
}

/** A list of known names is marked, everything else is written. */
function fieldFor(key: SettingKey, now: unknown): FormField {
  const { node } = key;
  const names = node.items?.enum;
  const isNames = Array.isArray(now) && now.every((item) => typeof item === 'string');
  if (names)
    return {
      name: 'value',
      question: 'Which?',
      kind: 'choice',
      several: true,
      options: names.map((name) => ({ value: name, label: name })),
      required: false,
      ...(isNames ? { preset: now } : {}),
    };
  const preset = now === undefined ? undefined : typeof now === 'string' ? now : JSON.stringify(now);
  const json = node.type === 'array' || node.type === 'object' ? ' in JSON' : '';
  return {
    name: 'value',
    question: `Write ${expected(node)}${json}; ${removing} removes the setting.`,
    kind: 'text',
    required: true,
    ...(preset === undefined ? {} : { preset }),
    check: (text) => {
      const read = readValue(key, String(text));
      return read.ok ? null : read.reason;
    },
  };
}

/** Asks for a value that is a secret. */
async function askHidden(key: SettingKey, { screen }: Repl, problem = ''): Promise<ChosenValue | null> {
  const rows = [`${key.node.description ?? ''} Write ${removing} to remove the setting.`.trim()];
  const text = await screen.hidden({ title: keyText(key.path), rows: problem === '' ? rows : [...rows, problem] });
  if (text === null) return null;
  const read = readValue(key, text);
  return read.ok ? { value: read.value } : await askHidden(key, { screen } as Repl, read.reason);
}

export type ReadValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

/** Reads a value as the user writes it. `reason`: a sentence. */
export function readValue(key: SettingKey, text: string): ReadValue {
  const name = keyText(key.path);
  if (text.trim() === removing) return { ok: true, value: undefined };
  const parsed = parseText(text, key);
  if (!parsed.ok) return { ok: false, reason: `${textProblem(name, key.path, parsed.reason).message}.` };
  return misplacedSecret(parsed.value, key.path) === null
    ? parsed
    : {
        ok: false,
        reason: `${name} would contain a secret, and settings are not private. Store keys with agent login and other secrets in environment variables.`,
      };
}

import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { parse as parseJsonc } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';
import { isRecord, isTooDeep, parseJson } from '../core/json.js';
import { readBounded } from '../disk/bounded-file.js';

export type SettingsFields = Readonly<Record<string, unknown>>;

const maxFileBytes = 16 * 1024 * 1024;

/** Reads the settings of another program: JSON with comments and trailing commas, or TOML. Null: there is no such file.
 * Throws an Error that names the file where it cannot be read. */
export function readForeignSettings(file: string): SettingsFields | null {
  const found = readBounded(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'missing') return null;
  if (found.kind === 'refused') throw new Error(`${file} cannot be read: ${found.reason}`);
  const text = found.bytes.toString('utf8').replace(/^\uFEFF/, '');
  return recordIn(file.endsWith('.toml') ? tomlIn(text, file) : jsonIn(text, file));
}

/** Returns the fields of an object; none for anything else. */
export function recordIn(value: unknown): SettingsFields {
  return isRecord(value) ? value : {};
}

/** Returns a text that says something; null for anything else. */
export function textIn(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value : null;
}

const maxNamedBytes = 256 * 1024;

/** Puts the texts of files in the place of `{file:path}`, as opencode does. Paths start in `folder`. Throws an Error for
 * a file that cannot be read. */
export function withNamedFiles(text: string, folder: string): string {
  return text.replaceAll(/\{file:([^}]+)\}/g, (whole, name: string) => {
    const path = name.trim().replace(/^~(?=\/)/, homedir());
    const found = readBounded(resolve(folder, path), { maxBytes: maxNamedBytes, longer: 'refuse', links: 'follow' });
    if (found.kind !== 'read') throw new Error(`${whole} cannot be read`);
    return found.bytes.toString('utf8').trim();
  });
}

function tomlIn(text: string, file: string): unknown {
  try {
    // As JSON has it: times are texts, and objects are plain.
    return parseJson(JSON.stringify(parseToml(text)));
  } catch (error) {
    throw unreadable(file, error);
  }
}

function jsonIn(text: string, file: string): unknown {
  if (text.trim() === '') return {};
  try {
    return parseJson(text);
  } catch (error) {
    if (isTooDeep(text)) throw unreadable(file, error);
    const problems: Parameters<typeof parseJsonc>[1] = [];
    const value: unknown = parseJsonc(text, problems, { allowTrailingComma: true });
    if (problems.length > 0) throw unreadable(file, error);
    return value;
  }
}

function unreadable(file: string, error: unknown): Error {
  const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  return new Error(`${file} cannot be read: ${message}`, { cause: error });
}

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { agentPaths } from '../../../src/kernel/config/settings-file.js';
import { toConfig } from '../../../src/kernel/config/sections.js';
import { checkSetting } from '../../../src/kernel/config/settings-check.js';
import { defaultValues, knownKeys, resolveKey, type SchemaNode } from '../../../src/kernel/config/settings-schema.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-settings-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});
const files = agentPaths({}, '/home/u');

/** A valid value that is not the default. */
function other({ type, enum: choices, default: usual, items, anyOf }: SchemaNode, path: readonly string[]): unknown {
  if (anyOf) return anyOf.map((node) => other(node, path)).find((value) => checkSetting(value, path).length === 0);
  if (choices) return choices.find((choice) => choice !== usual);
  switch (type) {
    case 'boolean':
      return usual !== true;
    case 'number':
      return typeof usual === 'number' ? usual / 2 : 7;
    case 'integer':
      return typeof usual === 'number' ? usual - 1 : 7;
    case 'array':
      return [
        ['x', 'x.y', 'x.y:1', { tool: 'x' }, { url: 'https://x' }].find(
          (item) => checkSetting([item], path).length === 0,
        ) ?? items?.enum?.[0],
      ];
    case 'object':
      return { x: {} };
    default:
      return ['x', '90s'].find((text) => checkSetting(text, path).length === 0);
  }
}

function withSetting(path: readonly string[], value: unknown): Record<string, unknown> {
  const values = structuredClone(defaultValues()) as Record<string, unknown>;
  let at = values;
  for (const key of path.slice(0, -1)) at = (at[key] ??= {}) as Record<string, unknown>;
  at[path.at(-1) ?? ''] = value;
  return values;
}

test('whatever the schema lists reaches the part of the program that uses it', () => {
  const usual = JSON.stringify(toConfig(defaultValues(), {}, files, 'dangerous'));
  // A profile is spelled out as other settings before they are arranged.
  const keys = knownKeys().filter(
    (key) => key !== 'profile' && !key.includes('<') && !knownKeys().some((name) => name.startsWith(`${key}.`)),
  );
  const lost = keys.filter((name) => {
    const key = resolveKey(name);
    const value = key && other(key.node, key.path);
    if (!key || checkSetting(value, key.path).length > 0) return true;
    return JSON.stringify(toConfig(withSetting(key.path, value), {}, files, 'dangerous')) === usual;
  });
  expect([keys.length > 40, lost]).toEqual([true, []]);
});

/** Without what the formatter adds. */
function typesOf(file: string): string {
  const script = fileURLToPath(new URL('../../../config/settings-types.mjs', import.meta.url));
  return words(execFileSync(process.execPath, [script, file], { encoding: 'utf8' }));
}

function words(text: string): string {
  return text.replaceAll(/[\s;]+/g, '').replaceAll(':|', ':');
}

test('the types of the settings are those of the schema', () => {
  const types = words(readFileSync(new URL('../../../src/kernel/config/settings-values.ts', import.meta.url), 'utf8'));
  const file = fileURLToPath(new URL('../../../config/config.schema.json', import.meta.url));
  expect(typesOf(file), 'run: npm run settings').toBe(types);
  const planted = join(folder, 'schema.json');
  writeFileSync(planted, readFileSync(file, 'utf8').replace('"max_retries"', '"most_retries"'));
  expect(typesOf(planted)).toBe(types.replace('max_retries', 'most_retries'));
});

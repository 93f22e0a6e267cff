import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { readMarketplace, sourceOfEntry } from '../../../src/features/plugins/marketplaces.js';
import { countParts, describeParts } from '../../../src/features/plugins/plugin-parts.js';
import { readPlugin } from '../../../src/features/plugins/read-plugin.js';
import { expectReadings, formsFolder, type Reading, useOf } from '../../brought-forms.js';

/** Runs `read` and returns the sentence that it throws, with paths below `folder`. */
function readingOf(folder: string, read: () => Reading): Reading {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { use: 'not', problem: error.message.replaceAll(`${folder}/`, '') };
  }
}

function formsIn(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
}

test('plugins in the forms of other programs are read', () => {
  const folder = realpathSync(formsFolder('plugins'));
  const text = readFileSync(join(folder, 'entries.json'), 'utf8');
  const entries = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const readings = formsIn(folder).map((form): readonly [string, Reading] => [
    form,
    readingOf(folder, () => {
      const plugin = readPlugin(join(folder, form), entries[form]);
      const { name, version, description, folders } = plugin;
      const found = Object.entries(folders).flatMap(([kind, paths]) =>
        paths.map((path) => `${kind} ${relative(plugin.root, path) || '.'}`),
      );
      const facts = { name, version, description, folders: found, parts: countParts(plugin) };
      const shown = describeParts(plugin);
      const left = shown.filter((line) => line.includes('not used here'));
      const isUsed = Object.values(facts.parts).some((count) => count > 0);
      return { use: useOf(isUsed, left), ...facts, shown };
    }),
  ]);
  expectReadings('plugins', Object.fromEntries(readings));
});

test('marketplaces in the forms of other programs are read', () => {
  const folder = realpathSync(formsFolder('marketplaces'));
  const readings = formsIn(folder).map((form): readonly [string, Reading] => [
    form,
    readingOf(folder, () => {
      const market = readMarketplace(join(folder, form));
      const entries = market.entries.map((entry): readonly [string, unknown, boolean] => {
        try {
          const source = sourceOfEntry(market, entry);
          const shown = source.kind === 'folder' ? { ...source, path: relative(market.root, source.path) } : source;
          return [entry.name, shown, true];
        } catch (error) {
          return [entry.name, String(error), false];
        }
      });
      const works = entries.filter(([, , isUsed]) => isUsed).length;
      const use = works === 0 ? 'not' : works === entries.length ? 'whole' : 'part';
      return { use, name: market.name, entries: entries.map(([name, source]) => [name, source]) };
    }),
  ]);
  expectReadings('marketplaces', Object.fromEntries(readings));
  expect(readings.length).toBeGreaterThan(5);
});

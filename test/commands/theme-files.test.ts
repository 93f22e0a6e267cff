import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { expect, onTestFinished, test } from 'vitest';
import schema from '../../config/theme.schema.json' with { type: 'json' };
import { loadTheme, themeNames } from '../../src/kernel/console/theme-files.js';
import { runConfigCommand } from '../../src/commands/configure.js';
import { createTheme, parseStyle, roles } from '../../src/kernel/console/theme.js';

/** A home whose themes are `files`, by name. */
function makeHome(files: Readonly<Record<string, string>>): {
  readonly home: string;
  readonly config: string;
  problem(name: string): Promise<readonly string[]>;
} {
  const home = mkdtempSync(join(tmpdir(), 'agent-themes-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  mkdirSync(join(home, 'themes'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, 'themes', name), text);
  const config = join(home, 'config.json');
  const problem = async (name: string): Promise<readonly string[]> => {
    const loaded = await loadTheme(name, { config });
    return loaded.ok ? [] : [loaded.problem.message, loaded.problem.hint].map((text) => text.replaceAll(home, '~'));
  };
  return { home, config, problem };
}

test('a theme is a file with comments beside the configuration, and paints', async () => {
  const { config } = makeHome({
    'mine.json': '{\n  // calm\n  "base": "light",\n  "colors": { "good": "bold #00ff00", "bad": "red", },\n}',
  });
  const loaded = await loadTheme('mine', { config });
  const theme = loaded.ok
    ? createTheme({ unicode: true, colors: 256, theme: loaded.theme })
    : expect.fail(JSON.stringify(loaded));
  expect([theme.paint('good', 'x'), theme.paint('bad', 'x')]).toEqual([
    '\x1b[1;38;5;46mx\x1b[22;39m',
    '\x1b[31mx\x1b[39m',
  ]);
});

test('the names are those of the files that could be themes, ours left out', () => {
  const { home, config } = makeHome({
    'b.json': '{}',
    'a-1.json': '{}',
    'dark.json': '{}',
    'notes.txt': '',
    '.hidden.json': '{}',
    'two words.json': '{}',
  });
  symlinkSync(join(home, 'themes', 'b.json'), join(home, 'themes', 'c.json'));
  expect(themeNames({ config })).toEqual(['a-1', 'b', 'c']);
  expect(themeNames({ config: '/nowhere/config.json' })).toEqual([]);
});

test.each([
  [
    '{ "colors": { "good": "blurple" } }',
    '~/themes/t.json:1:23: "colors.good" must be words such as "bold", "underline" and one colour: ' +
      'a name ("red", "bright-red"), a number up to 255 or "#rrggbb", not "blurple"',
  ],
  [
    '{\n  "colors": {\n    "god": "red"\n  }\n}',
    '~/themes/t.json:3:5: unknown key "colors.god" (did you mean "good"?)',
  ],
  ['{ "colour": {} }', '~/themes/t.json:1:3: unknown key "colour" (did you mean "colors"?)'],
  [
    '{ "base": "bright" }',
    '~/themes/t.json:1:11: "base" must be one of dark, light (did you mean "light"?), not "bright"',
  ],
  ['{ "colors": { "good": 12 } }', '~/themes/t.json:1:23: "colors.good" must be a string, not 12'],
  ['{ "colors": ', '~/themes/t.json:1:13: not valid JSON: value expected'],
  ['[]', '~/themes/t.json:1:1: not valid JSON: it must contain one object: { … }'],
] as const)('%s is refused with file, place and key', async (text, message) => {
  const { problem } = makeHome({ 't.json': text });
  expect((await problem('t'))[0]).toBe(message);
});

test('a name without a file says which there are', async () => {
  const { problem } = makeHome({ 'mine.json': '{}' });
  expect(await problem('nine')).toEqual([
    'ui.theme: there is no theme nine',
    'Did you mean none or mine? Known: auto, dark, light, none, mine. A custom theme would be ~/themes/nine.json.',
  ]);
});

test('config check looks at the theme that is configured, config set takes none that cannot be used', async () => {
  const { home } = makeHome({ 'mine.json': '{ "colors": { "good": "nope" } }' });
  writeFileSync(join(home, 'config.json'), '{ "ui": { "theme": "mine" } }');
  let err = '';
  const io = {
    stdout: { write: () => undefined },
    stderr: {
      write: (text: string) => {
        err += text;
      },
    },
    env: { AGENT_HOME: home },
    cwd: home,
    home,
    tools: { strayLimit: () => Promise.resolve(null), strayLimits: () => Promise.resolve([]) },
  };
  expect(await runConfigCommand(['check'], io)).toBe(2);
  expect(err).toContain('mine.json:1:23: "colors.good" must be words');
  expect(await runConfigCommand(['set', 'ui.theme', 'drak'], io)).toBe(2);
  expect(err).toContain('ui.theme: there is no theme drak\nDid you mean dark?');
  expect(await runConfigCommand(['set', 'ui.theme', 'mine'], io)).toBe(2);
  writeFileSync(join(home, 'themes', 'mine.json'), '{}');
  expect(await runConfigCommand(['check'], io)).toBe(0);
  expect(await runConfigCommand(['set', 'ui.theme', 'mine'], io)).toBe(0);
  expect(await runConfigCommand(['set', 'ui.theme', 'dark'], io)).toBe(0);
});

test('the schema names every role, ajv takes it, and the manual names every role too', () => {
  expect(Object.keys(schema.properties.colors.properties)).toEqual([...roles]);
  const validate = new Ajv({ strict: true }).compile(schema);
  const manual = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
  const [, example = ''] = /```jsonc\n(\{[^`]*"colors"[^`]*\})\n```/.exec(manual) ?? [];
  const theme = JSON.parse(example.replaceAll(/\/\/.*$/gm, '').replaceAll(/,(\s*\})/g, '$1')) as {
    readonly colors: Readonly<Record<string, string>>;
  };
  expect(validate(theme), JSON.stringify(validate.errors)).toBe(true);
  expect(Object.values(theme.colors).filter((text) => parseStyle(text) === null)).toEqual([]);
  expect(roles.filter((role) => !manual.includes(`\`${role}\``))).toEqual([]);
});

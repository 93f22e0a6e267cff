import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'agent-packed-'));
afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

const node = (args: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
  execFileSync(process.execPath, args, {
    cwd: home,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, AGENT_HOME: home, ...env },
  });

/** Installs the packed program as npm would, without the network: its dependencies are those of this checkout. */
beforeAll(() => {
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', home], {
    cwd: root,
    encoding: 'utf8',
  });
  const modules = join(home, 'node_modules');
  mkdirSync(join(modules, '@vscode'), { recursive: true });
  execFileSync('tar', ['-xzf', join(home, packed.trim().split('\n').at(-1) ?? ''), '-C', modules]);
  execFileSync('mv', [join(modules, 'package'), join(modules, 'agent-shell')]);
  for (const name of ['better-sqlite3', '@vscode/ripgrep'])
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
});

/** The first block of the page that imports the package. */
function example(): string {
  const blocks = readFileSync(join(root, 'docs/custom-tools.md'), 'utf8').matchAll(/```js\n([^]*?)```/g);
  return [...blocks].map(([, code = '']) => code).find((code) => code.includes("from 'agent-shell'")) ?? '';
}

test('the example of docs/custom-tools.md runs from the packed program, as it stands', () => {
  const code = example();
  expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(20);
  const call = { name: 'insert_clip', arguments: { track: 'Drums', start_bar: 1 } };
  writeFileSync(join(home, 'script.json'), JSON.stringify({ turns: [{ calls: [call, call] }, { text: 'It is in.' }] }));
  writeFileSync(join(home, 'example.js'), code);
  expect(node(['example.js'], { AGENT_MODEL: 'offline/script.json' })).toBe("It is in. Map(1) { 1 => 'Drums' }\n");
});

test('the demos of seed 000 run without a model', () => {
  const demo = (args: readonly string[]): string =>
    execFileSync(process.execPath, args, {
      cwd: root,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, AGENT_HOME: home },
    });
  expect(demo(['docs/examples/time-tool.mjs'])).toMatch(
    /^↪ get_time\(\)\n✔ \d{4}-\d\d-\d\dT.*\nThat is the time above\.\n$/,
  );
  expect(demo(['docs/examples/kv-store.mjs'])).toBe("You said your name is Erik.\n{ name: 'Erik' }\n");
});

test('its types need nothing else', () => {
  writeFileSync(join(home, 'example.ts'), example().replace('new Map()', 'new Map<number, string>()'));
  const settings = {
    compilerOptions: {
      module: 'nodenext',
      target: 'es2023',
      lib: ['es2023', 'dom'],
      types: [],
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
    },
    files: ['example.ts'],
  };
  writeFileSync(join(home, 'tsconfig.json'), JSON.stringify(settings));
  expect(node([join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json'])).toBe('');
});

test('importing it does nothing: no file, no timer, no listener, no word', () => {
  const look = `
    const held = () => process.getActiveResourcesInfo().filter((name) => /Time|TCP|Signal|Process|Watch/.test(name));
    const listeners = () => process.eventNames().join();
    const before = listeners();
    await import('agent-shell');
    console.log(JSON.stringify([before === listeners(), held()]));`;
  expect(node(['--input-type=module', '-e', look], { AGENT_HOME: join(home, 'none') })).toBe('[true,[]]\n');
  expect(() => readFileSync(join(home, 'none'))).toThrow('ENOENT');
});

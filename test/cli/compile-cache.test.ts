import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { keepCompiled } from '../../src/cli/compile-cache.js';
import { version } from '../../src/cli/version.js';

const home = mkdtempSync(join(tmpdir(), 'agent-compiled-'));
afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

function folderFor(argv: readonly string[], env: NodeJS.ProcessEnv): string | null {
  let chosen: string | null = null;
  keepCompiled(argv, env, {
    enableCompileCache: (folder: string) => {
      chosen = folder;
    },
  });
  return chosen;
}

test("what was compiled is kept beside the rest of the person's caches, or where everything is kept", () => {
  expect(folderFor([], { XDG_CACHE_HOME: home })).toBe(join(home, 'agent/compiled', version));
  expect(folderFor([], { XDG_CACHE_HOME: '/elsewhere', AGENT_HOME: home })).toBe(join(home, 'compiled', version));
});

test('nothing is kept where nothing may be, or where Node cannot', () => {
  expect(folderFor(['-p', 'hi', '--ephemeral'], { AGENT_HOME: home })).toBeNull();
  expect(folderFor([], { AGENT_HOME: home, NODE_DISABLE_COMPILE_CACHE: '1' })).toBeNull();
  expect(() => {
    keepCompiled([], { AGENT_HOME: home }, {});
  }).not.toThrow();
});

test('the cache of another version goes', () => {
  const old = join(home, 'compiled', '0.0.0');
  mkdirSync(old, { recursive: true });
  writeFileSync(join(old, 'x'), '');
  folderFor([], { AGENT_HOME: home });
  expect(existsSync(old)).toBe(false);
});

test.skipIf(!('enableCompileCache' in nodeModule))('this Node takes the folder', () => {
  const folder = join(home, 'taken');
  keepCompiled([], { AGENT_HOME: folder }, nodeModule);
  expect(existsSync(join(folder, 'compiled', version))).toBe(true);
});

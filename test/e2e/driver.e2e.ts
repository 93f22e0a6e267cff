import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { place } from './program.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const real = join(root, 'node_modules/better-sqlite3');
const { version: builtWith } = JSON.parse(readFileSync(join(real, 'package.json'), 'utf8')) as {
  readonly version: string;
};

/** A copy of the built program beside a better-sqlite3 of `version`: the real native part, and JavaScript that says
 * when it is loaded. */
function answer(version: string): { readonly status: number | null; readonly stderr: string } {
  const at = place();
  const program = join(dirname(at.work), 'program');
  const driver = join(program, 'node_modules/better-sqlite3');
  mkdirSync(driver, { recursive: true });
  for (const part of ['bin', 'dist', 'package.json'])
    cpSync(join(root, part), join(program, part), { recursive: true });
  writeFileSync(join(driver, 'package.json'), JSON.stringify({ name: 'better-sqlite3', version, main: 'index.js' }));
  writeFileSync(
    join(driver, 'index.js'),
    `process.stderr.write('its own JavaScript\\n'); module.exports = require(${JSON.stringify(real)});`,
  );
  symlinkSync(join(real, 'build'), join(driver, 'build'));
  const { status, stderr } = spawnSync(process.execPath, [join(program, 'bin/agent.js'), 'sessions', 'list'], {
    cwd: at.work,
    env: at.env,
    encoding: 'utf8',
  });
  return { status, stderr };
}

test('the version the program was built with runs on the bundled JavaScript, another on its own', () => {
  expect(answer(builtWith)).toEqual({ status: 0, stderr: '' });
  expect(answer('99.0.0')).toEqual({ status: 0, stderr: 'its own JavaScript\n' });
});

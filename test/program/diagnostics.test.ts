import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

import { type Behaviour, installDouble, logged, withNodeAlone } from '../features/diagnostics/edited-project.js';
import { agent, atTerminal, lines, place, repl, script } from './inside.js';

/** A project whose Python files the double checks. */
function project(behaviour: Behaviour = {}) {
  const at = place({ 'a.py': '# defines add\n', 'b.py': 'from a import add # needs add\n' });
  const log = join(dirname(at.work), 'server.log');
  const folder = installDouble(join(dirname(at.work), 'tools'), 'pyright-langserver');
  const env = {
    ...at.env,
    PATH: `${folder}:${at.env['PATH']}`,
    SCRIPTED_SERVER: JSON.stringify({ ask: 'pull', log, ...behaviour }),
  };
  return { ...at, env, log };
}

const edit = (old_string: string, new_string: string) => ({
  calls: [{ name: 'file_edit', arguments: { path: 'a.py', old_string, new_string } }],
});
const rename = [edit('defines add', 'defines plus'), { text: 'Done.' }];
const hasSandbox = existsSync('/usr/bin/bwrap');
/** A busy machine takes its time. */
const patient = ['--set', 'tools.diagnostics_wait_ms=60000'];
const json = ['-p', ...patient, '--approval', 'never', '--output-format', 'stream-json'];

async function results(at: ReturnType<typeof project>, turns: readonly unknown[], ...options: readonly string[]) {
  const run = await agent(at, [...json, '-m', script(at, turns), ...options, 'go']);
  const found = lines(run.stdout).filter(({ type }) => type === 'tool_result');
  return found.map(({ output }) => (typeof output === 'string' ? (JSON.parse(output) as unknown) : output));
}

test('the result of an edit names the errors that it caused, also in files that it did not touch', async () => {
  const at = project();
  expect(
    await results(at, [edit('defines add', 'defines plus'), edit('defines plus', 'defines add'), { text: 'Done.' }]),
  ).toEqual([
    expect.objectContaining({ count: 1, diagnostics: ['b.py:1:21 error E1: add is not defined'] }),
    { output: 'Replaced 1 occurrence(s) in a.py', count: 1 },
  ]);
  expect(logged(at.log)).toHaveLength(1);
});

test.each([
  ['the setting', ['--set', 'tools.diagnostics=false']],
  ['a session', ['--tools', '-diagnostics']],
])('switched off by %s, nothing is started', async (_by, options) => {
  const at = project();
  const [result] = await results(at, rename, ...options);
  expect(result).not.toHaveProperty('diagnostics');
  expect(existsSync(at.log)).toBe(false);
});

test('without a server a result is what it is without the feature', async () => {
  const at = project();
  at.env.PATH = withNodeAlone();
  const on = await results(at, rename);
  at.file('a.py', '# defines add\n');
  expect(await results(at, rename, '--set', 'tools.diagnostics=false')).toEqual(on);
});

test.skipIf(!hasSandbox)('in a sandbox the server runs in it, where it cannot write', async () => {
  const at = project({ log: undefined });
  at.file('server.log', '');
  const [result] = await results(at, rename, '--sandbox', 'workspace');
  expect(result).toMatchObject({ diagnostics: ['b.py:1:21 error E1: add is not defined'] });
  expect(readFileSync(join(at.work, 'server.log'), 'utf8')).toBe('');
  await results(at, [edit('defines plus', 'defines more'), { text: 'Done.' }]);
  expect(logged(join(at.work, 'server.log'))).toHaveLength(1);
});

test('the server of the project starts once the user trusts it, and is listed with what it does', async () => {
  const at = project();
  at.env.PATH = process.env['PATH'] ?? '';
  installDouble(at.work, 'pyright-langserver');
  const [untrusted] = await results(at, rename);
  expect(untrusted).not.toHaveProperty('diagnostics');
  expect(existsSync(at.log)).toBe(false);
  const { stdout } = await atTerminal(at, ['config', 'trust'], [[/\[y\/N\]/i, 'y\n']]);
  expect(stdout).toContain('language server pyright: runs when .py, .pyi files are edited');
  at.file('a.py', '# defines add\n');
  const [result] = await results(at, rename);
  expect(result).toMatchObject({ diagnostics: ['b.py:1:21 error E1: add is not defined'] });
});

test('errors found after the result reach the model as a note, and /diagnostics shows the servers', async () => {
  const release = join(dirname(place().work), 'go');
  const at = project({ holdUntil: release });
  const model = script(at, [...rename, { text: 'Seen.' }]);
  const { stdout } = await repl(
    at,
    ['-m', model, '--approval', 'never'],
    [
      [
        '/diagnostics',
        /pyright +starts with the first edit of \.py, \.pyi \([^)]*pyright-langserver\)[^]*gopls +(?:not found; to install it: go install|starts with the first edit of \.go)/,
      ],
      ['go', 'Done.'],
      ['/diagnostics', /pyright +running, 2 files open/],
      [`!touch ${release}`, 'pyright found 1 new error after the edit of a.py:'],
      ['and now?', 'Seen.'],
    ],
  );
  expect(stdout).toContain('Done.');
  const id = (await agent(at, ['sessions', 'list', '--json'])).stdout;
  const [session] = JSON.parse(id) as readonly { readonly id: string }[];
  const events = JSON.parse(
    (await agent(at, ['sessions', 'show', session?.id ?? '', '--json'])).stdout,
  ) as readonly object[];
  expect(events).toContainEqual(
    expect.objectContaining({
      kind: 'user',
      content: '[Note: pyright found 1 new error after the edit of a.py:\nb.py:1:21 error E1: add is not defined]',
    }),
  );
});

test('with the setting off, /diagnostics says so', async () => {
  await repl(
    project(),
    ['--set', 'tools.diagnostics=false'],
    [['/diagnostics', 'Edits are not checked: tools.diagnostics is false']],
  );
});

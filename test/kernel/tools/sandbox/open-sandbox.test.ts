import { chmodSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { createProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { createConfine, sandboxEnvironment } from '../../../../src/kernel/tools/sandbox/bubblewrap.js';
import {
  explainFailure,
  findProgram,
  missingSystem,
  openSandbox,
} from '../../../../src/kernel/tools/sandbox/open-sandbox.js';
import { bubblewrapWorks } from './confined-child.js';
import { call, context, registry, tree } from '../workbench.js';

const request = (workspace: string) => ({
  sandbox: 'workspace' as const,
  workspace,
  home: '/nowhere',
  env: { PATH: '/usr/bin:/bin' },
  isSecret: () => false,
});

/** A program that takes bubblewrap's place. */
function shim(script: string): string {
  const folder = tree({ bwrap: `#!/bin/sh\n${script}\n` });
  chmodSync(join(folder, 'bwrap'), 0o755);
  return join(folder, 'bwrap');
}

test.runIf(process.platform === 'linux')('without bubblewrap the fix is to install it', async () => {
  expect(await openSandbox({ ...request(tree()), program: null })).toMatchObject({
    ok: false,
    problem: 'the sandbox needs bubblewrap, and bwrap is not installed',
    fix: expect.stringMatching(/^Install it: .* bubblewrap$/),
  });
});

test('a bubblewrap that the workspace brings along is none, also through a link', () => {
  const workspace = tree({ 'bin/bwrap': '#!/bin/sh\nexit 0\n' });
  chmodSync(join(workspace, 'bin/bwrap'), 0o755);
  const elsewhere = tree();
  symlinkSync(join(workspace, 'bin/bwrap'), join(elsewhere, 'bwrap'));
  const own = shim('exit 0');
  expect(findProgram(`${join(workspace, 'bin')}:${elsewhere}`, workspace, [])).toBe(null);
  expect(findProgram(`${join(workspace, 'bin')}:${elsewhere}:${dirname(own)}`, workspace, [])).toBe(own);
});

test.runIf(process.platform === 'linux').each([
  [
    'runs the command without confining it',
    'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    /should have|shares our/,
  ],
  [
    'refuses',
    'echo "bwrap: No permissions to create a new namespace" >&2; exit 1',
    /No permissions to create a new namespace/,
  ],
  ['says nothing', 'exit 0', /should have/],
  ['is not a program', '\u0000', /does not work here/],
])('a bubblewrap that %s is not a sandbox', async (_name, script, problem) => {
  expect(await openSandbox({ ...request(tree()), program: shim(script) })).toMatchObject({
    ok: false,
    problem: expect.stringMatching(problem),
    fix: expect.stringMatching(/\S/),
  });
});

/** bubblewrap without one pair of its arguments. */
const without = (option: string, value: string): string =>
  shim(`first=1
for word do
  [ "$first" ] && set -- && first=
  if [ "$held" ]; then
    [ "$word" = '${value}' ] || set -- "$@" ${option} "$word"
    held=
  elif [ "$word" = ${option} ]; then held=1
  else set -- "$@" "$word"
  fi
done
exec /usr/bin/bwrap "$@"`);

const worksAsRoot = bubblewrapWorks && process.getuid?.() === 0;
test.runIf(worksAsRoot)('as root a profile that leaves the settings of the kernel open is not a sandbox', async () => {
  expect(await openSandbox({ ...request(tree()), program: without('--none', '') })).toMatchObject({ ok: true });
  expect(await openSandbox({ ...request(tree()), program: without('--remount-ro', '/proc') })).toMatchObject({
    ok: false,
    problem: expect.stringMatching(/could write \/proc\/sys\/kernel\//),
    fix: expect.stringMatching(/ordinary user/),
  });
});

test.runIf(process.platform === 'linux')('the home directory cannot be the workspace', async () => {
  const home = tree();
  expect(await openSandbox({ ...request(home), home })).toMatchObject({
    ok: false,
    problem: expect.stringContaining('home directory'),
    fix: expect.stringContaining('-C'),
  });
});

test.each([
  ['a kernel without user namespaces', '', false, { 'user/max_user_namespaces': '0' }, /user\.max_user_namespaces/],
  [
    'user namespaces for root alone',
    '',
    false,
    { 'kernel/unprivileged_userns_clone': '0' },
    /unprivileged_userns_clone=1/,
  ],
  [
    'AppArmor',
    'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted',
    false,
    { 'kernel/apparmor_restrict_unprivileged_userns': '1' },
    /AppArmor/,
  ],
  ['root that may not map users', 'bwrap: setting up uid map: Operation not permitted', true, {}, /ordinary user/],
  ['an old bubblewrap', 'bwrap: Unknown option --perms', false, {}, /Update bubblewrap/],
  ['a container', "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", false, {}, /container/],
])('the fix for %s', (_name, complaint, isRoot, settings, fix) => {
  expect(explainFailure(complaint, isRoot, (name) => (settings as Record<string, string>)[name] ?? '').fix).toMatch(
    fix,
  );
});

test('other systems say that there is no sandbox', () => {
  expect([missingSystem('darwin').problem, missingSystem('win32').problem]).toEqual([
    'the sandbox is not available on macOS',
    'the sandbox is not available on Windows',
  ]);
});

test('the environment inside is what is named, nothing else', () => {
  expect(
    sandboxEnvironment(
      {
        PATH: '/bin',
        LC_ALL: 'C',
        GIT_EDITOR: 'true',
        ANTHROPIC_API_KEY: 'k',
        LD_PRELOAD: '/x',
        SSH_AUTH_SOCK: '/s',
        HOME: '/other',
        MY_TOKEN: 't',
      },
      '/home/ann',
    ),
  ).toEqual({
    PATH: '/bin',
    LC_ALL: 'C',
    GIT_EDITOR: 'true',
    HOME: '/home/ann',
    TMPDIR: '/tmp',
  });
});

test('a command that would start in a hidden folder is not started, and neither the environment nor a missing path reaches the arguments', () => {
  const workspace = tree({ '.env': '' });
  const confine = createConfine({
    program: '/usr/bin/bwrap',
    version: '0.8.0',
    workspace,
    home: '/home/ann',
    path: '',
    isSecret: () => false,
    filter: null,
  });
  const command = { file: 'true', args: [], cwd: workspace, env: { PATH: '/bin', LANG: 'value-of-lang' } };
  expect(() => confine({ ...command, cwd: '/srv/elsewhere' }, 'workspace')).toThrow(/hidden in the sandbox/);
  const { args } = confine(command, 'workspace');
  expect([
    args.includes('value-of-lang'),
    args.filter((value) => value.startsWith(workspace) && value.includes('.env')),
  ]).toEqual([false, [`${workspace}/.env`]]);
});

test.skipIf(!bubblewrapWorks)(
  'the tools work in it: bash, and grep also where a person allowed a path outside',
  async () => {
    const outside = tree({ 'far.txt': 'needle\n' });
    const cwd = tree({ 'near.txt': 'needle\n', '.env': 'needle\n' });
    const opened = await openSandbox({ ...request(cwd), env: process.env });
    if (!opened.ok) throw new Error(opened.problem);
    const tools = registry({
      processes: createProcessRunner({ marker: { name: '_SANDBOX_TOOLS', value: '1' }, confine: opened.confine }),
    });
    const run = async (name: string, args: object): Promise<unknown> =>
      (await call(name, args, context(cwd, { sandbox: 'workspace' }), tools)).envelope;
    expect(await run('grep', { pattern: 'needle' })).toEqual({
      output: 'near.txt:1: needle',
      count: 1,
      not_searched: '.env: permission denied',
    });
    expect(await run('grep', { pattern: 'needle', path: join(outside, 'far.txt') })).toMatchObject({ count: 1 });
    expect(await run('grep', { pattern: 'needle', path: '.env' })).toMatchObject({ count: 1 });
    expect(
      await run('bash', {
        command: `echo '${'x'.repeat(200_000)}' | wc -c; cat ${outside}/far.txt 2>/dev/null; touch made`,
      }),
    ).toEqual({ output: '200001\n', exit_code: 0 });
    expect(await run('bash', { command: 'pwd', workdir: outside })).toMatchObject({
      code: 'execution_failed',
      error: expect.stringContaining('hidden in the sandbox'),
    });
    expect(readdirSync(cwd).toSorted()).toEqual(['.env', 'made', 'near.txt']);
  },
);

import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { findProgram } from '../../../../src/kernel/tools/sandbox/open-sandbox.js';
import { openSeatbelt } from '../../../../src/kernel/tools/sandbox/seatbelt.js';
import {
  macWorkspaceProblem,
  seatbeltProfile,
  type SeatbeltRights,
} from '../../../../src/kernel/tools/sandbox/seatbelt-profile.js';

const none = { hidden: [], fixed: [], held: [] };
const work = '/Users/ann/work';
const rights: SeatbeltRights = {
  sandbox: 'workspace',
  directories: [
    {
      path: work,
      readOnly: false,
      guards: {
        hidden: [`${work}/.env`, `${work}/a "b"\\c.pem`],
        fixed: [`${work}/.git/hooks`, `${work}/.git/config`],
        held: [`${work}/.git`],
      },
    },
    { path: '/Users/ann/docs', readOnly: true, guards: none },
  ],
  tools: ['/opt/homebrew', '/Users/ann/.nvm/versions/node/v22'],
  shows: ['/Users/ann/.agent/skills/x/run.sh'],
  privateFolder: '/private/var/folders/x/T/agent-sandbox-1',
};

type Form = string | readonly Form[];

/** Reads a profile: lists of words and texts. */
function parsed(text: string): readonly Form[] {
  const stack: Form[][] = [[]];
  for (const [token] of text.matchAll(/\(|\)|#?"(?:[^"\\]|\\.)*"|[^\s()"]+/g)) {
    if (token === '(') stack.push([]);
    else if (token === ')') {
      const ended = stack.pop() ?? [];
      stack.at(-1)?.push(ended);
    } else stack.at(-1)?.push(token);
  }
  expect(stack).toHaveLength(1);
  return stack[0] ?? [];
}

const textOf = (word: Form | undefined): string =>
  String(word)
    .replace(/^#?"|"$/g, '')
    .replace(/\\(["\\])/g, '$1');

function matches(filter: Form, path: string): boolean {
  const [kind, value] = filter as readonly Form[];
  const text = textOf(value);
  if (kind === 'literal') return path === text;
  if (kind === 'subpath') return path === text || path.startsWith(`${text}/`);
  return kind === 'regex' && new RegExp(text).test(path);
}

/** What sandbox(7) answers: the last rule for the operation whose filter matches the path. */
function allows(profile: string, operation: string, path: string): boolean {
  let answer = false;
  for (const form of parsed(profile)) {
    const [action, ...rest] = form as readonly Form[];
    if (action !== 'allow' && action !== 'deny') continue;
    const operations = rest.filter((one) => typeof one === 'string');
    const filters = rest.filter((one) => typeof one !== 'string');
    const isMeant = operations.some(
      (one) => one === operation || (one.endsWith('*') && operation.startsWith(one.slice(0, -1))),
    );
    if (isMeant && (filters.length === 0 || filters.some((one) => matches(one, path)))) answer = action === 'allow';
  }
  return answer;
}

const read = 'file-read-data';
const write = 'file-write-data';
const move = 'file-write-unlink';

test.each([
  [read, `${work}/src/a.ts`, true],
  [write, `${work}/src/a.ts`, true],
  [read, `${work}/.env`, false],
  [write, `${work}/.env`, false],
  [read, `${work}/a "b"\\c.pem`, false],
  [read, `${work}/.git/config`, true],
  [write, `${work}/.git/config`, false],
  [write, `${work}/.git/hooks/pre-commit`, false],
  [write, `${work}/.git/index`, true],
  [move, `${work}/.git`, false],
  [move, work, false],
  [move, `${work}/src`, true],
  [read, '/Users/ann/docs/a.md', true],
  [write, '/Users/ann/docs/a.md', false],
  [read, '/Users/ann/.ssh/id_ed25519', false],
  [read, '/System/Volumes/Data/Users/ann/.ssh/id_ed25519', false],
  [read, '/Users/ann/.nvm/versions/node/v22/bin/node', true],
  ['file-map-executable', '/opt/homebrew/lib/libssl.dylib', true],
  [write, '/opt/homebrew/bin/node', false],
  [read, '/Users/ann/.agent/skills/x/run.sh', true],
  [read, '/Users/ann/.agent/keys.json', false],
  [read, '/usr/lib/libSystem.B.dylib', true],
  [write, '/usr/local/bin/x', false],
  [read, '/private/etc/hosts', true],
  [read, '/private/etc/ssh/ssh_host_ed25519_key', false],
  [read, '/Library/Keychains/System.keychain', false],
  [write, '/private/tmp/x', false],
  [read, '/private/tmp/other/socket', false],
  [write, '/private/var/folders/x/T/agent-sandbox-1/tmp/a', true],
  [read, '/private/var/folders/x/T/other', false],
  [write, '/dev/null', true],
  [write, '/dev/disk0', false],
  ['network-outbound', '/private/var/run/docker.sock', false],
  ['mach-lookup', '', false],
])('Seatbelt: %s of %s: %s', (operation, path, allowed) => {
  expect(allows(seatbeltProfile(rights), operation, path)).toBe(allowed);
});

test('a read-only sandbox writes only into its private folder', () => {
  const profile = seatbeltProfile({ ...rights, sandbox: 'read-only' });
  expect([
    allows(profile, read, `${work}/src/a.ts`),
    allows(profile, write, `${work}/src/a.ts`),
    allows(profile, read, `${work}/.env`),
    allows(profile, write, `${rights.privateFolder}/tmp/a`),
  ]).toEqual([true, false, false, true]);
});

test('a profile names no service that leads out of the sandbox, and no path can end its text', () => {
  const profile = seatbeltProfile(rights);
  expect(profile).not.toMatch(/SecurityServer|securityd|pboard|launchservicesd|procargs|network\*|remote ip/);
  expect(() => seatbeltProfile({ ...rights, tools: ['/opt/a\n(allow default)'] })).toThrow('the sandbox cannot show');
  const odd = seatbeltProfile({ ...rights, tools: ['/opt/a")) (allow default) (x "'] });
  expect(parsed(odd)).toHaveLength(parsed(profile).length);
});

test.each([
  ['/Users/ann', 'the sandbox hides the home directory'],
  ['/Users', '/Users cannot be the workspace'],
  ['/private/tmp', '/private/tmp cannot be the workspace'],
  ['/Users/ann/work', null],
])('%s as the workspace of a sandbox of macOS', (workspace, problem) => {
  const found = macWorkspaceProblem(workspace, '/Users/ann');
  expect(problem === null ? found : found?.startsWith(problem)).toBe(problem === null ? null : true);
});

/** A double of sandbox-exec(1). It holds the folders that the profile makes writable, by bubblewrap. */
const double = (outside: string): string => `#!/bin/sh
[ "$1" = -p ] || { echo "Usage: sandbox-exec [options] command [args]" >&2; exit 64; }
profile=$2 folder=$(dirname "$0")
printf %s "$profile" >"$folder/profile"
shift 2
printf %s "$profile" | sed -n '/^(allow file-read\\* file-write\\* file-map/,/)$/s/^  (subpath "\\(.*\\)")*$/\\1/p' | sed 's/")*$//' >"$folder/writable"
while read -r path; do set -- --bind "$path" "$path" "$@"; done <"$folder/writable"
exec bwrap --dev-bind / / --tmpfs ${outside} "$@"
`;

function place(): {
  readonly root: string;
  readonly program: string;
  readonly workspace: string;
  readonly home: string;
} {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'seatbelt-')));
  const [workspace, home] = [join(root, 'work'), join(root, 'home')];
  for (const folder of [workspace, home]) mkdirSync(folder);
  return { root, workspace, home, program: join(root, 'sandbox-exec') };
}

test.skipIf(findProgram(process.env['PATH'] ?? '', null) === null)(
  'the sandbox is tried once, and a command gets its profile, a home and a temporary folder of its own',
  async () => {
    const { program, workspace, home } = place();
    writeFileSync(program, double(realpathSync(tmpdir())), { mode: 0o755 });
    const folder = mkdtempSync('/var/tmp/seatbelt-');
    const outside = join(folder, 'sandbox-exec');
    writeFileSync(outside, double(realpathSync(tmpdir())), { mode: 0o755 });
    const request = { sandbox: 'workspace', workspace, home, env: process.env, isSecret: () => false } as const;
    const opened = await openSeatbelt(request, outside);
    if (!opened.ok) throw new Error(opened.problem);
    const marker = { name: '_SEATBELT_TEST', value: '1' };
    const runner = createProcessRunner({ marker, confine: opened.confine });
    let text = '';
    const result = await runner.run({
      file: 'sh',
      args: ['-c', 'echo "$HOME $TMPDIR $SECRET"; touch made "$TMPDIR/kept"; exit 3'],
      cwd: workspace,
      env: { PATH: process.env['PATH'] ?? '', SECRET: 'x', HOME: home },
      sandbox: 'workspace',
      signal: new AbortController().signal,
      timeoutMs: 10_000,
      maxTotalBytes: 10_000,
      onOutput: (chunk) => {
        text += chunk.toString();
      },
    });
    expect(result).toMatchObject({ ended: 'exit', exitCode: 3 });
    expect(text).toMatch(/^(\/\S+\/agent-sandbox-\w+)\/home \1\/tmp \n$/);
    expect(existsSync(join(workspace, 'made'))).toBe(true);
    expect(readFileSync(join(folder, 'profile'), 'utf8')).toContain(`(subpath "${workspace}")`);
    expect(() => opened.confine({ file: 'ls', args: [], cwd: home, env: {} }, 'workspace')).toThrow(
      'is hidden in the sandbox',
    );
  },
);

test.each([
  ['#!/bin/sh\nshift 2\nexec "$@"\n', 'the sandbox does not work here (a file outside could be read)'],
  ['#!/bin/sh\necho "sandbox-exec: sandbox_apply: Operation not permitted" >&2\nexit 71\n', 'Operation not permitted'],
  [null, 'sandbox-exec: ENOENT'],
])('a sandbox that does not hold is refused (%#)', async (script, problem) => {
  const { program, workspace, home } = place();
  if (script !== null) writeFileSync(program, script, { mode: 0o755 });
  const opened = await openSeatbelt({ sandbox: 'workspace', workspace, home, env: {}, isSecret: () => false }, program);
  expect(opened).toEqual({
    ok: false,
    problem: expect.stringContaining(problem) as string,
    fix: expect.stringContaining('--sandbox off') as string,
  });
});

import { createSocket } from 'node:dgram';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { processesMarked } from '../../../../src/kernel/tools/process/watchdog.js';
import { processLimitFile } from '../../../../src/kernel/tools/sandbox/bubblewrap.js';
import { type Account, accounts, bubblewrapWorks, sandboxProcesses, type Step } from './confined-child.js';

const calls =
  process.arch === 'arm64'
    ? {
        ptrace: 117,
        ioUringSetup: 425,
        keyctl: 219,
        bpf: 280,
        perfEventOpen: 241,
        userfaultfd: 282,
        mount: 40,
        unshare: 97,
        clone3: 435,
      }
    : {
        ptrace: 101,
        ioUringSetup: 425,
        keyctl: 250,
        bpf: 321,
        perfEventOpen: 298,
        userfaultfd: 323,
        mount: 165,
        unshare: 272,
        clone3: 435,
      };
const processes = sandboxProcesses();

interface Place {
  readonly home: string;
  readonly workspace: string;
  readonly account: Account;
}

/** A home directory with keys, and a workspace below it with a repository, secrets and an innocent link. Owned by the
 * account. */
function makePlace(account: Account): Place {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'agent-sandbox-home-')));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  const workspace = join(home, 'projects/work');
  const files: Readonly<Record<string, string>> = {
    '.ssh/id_rsa': 'KEY-OF-HOME',
    '.aws/credentials': 'KEY-OF-HOME',
    'target.txt': 'untouched',
    'projects/work-evil/sibling.txt': 'untouched',
    'projects/work/.env': 'KEY-OF-WORKSPACE',
    'projects/work/.env.example': 'meant to be read',
    'projects/work/packages/api/.env.local': 'KEY-OF-WORKSPACE',
    'projects/work/.git/config': '[core]\n',
    'projects/work/.git/hooks/pre-commit.sample': 'untouched',
    'projects/work/.git/HEAD': 'ref: refs/heads/main\n',
    'projects/work/.vscode/tasks.json': '{}',
    'projects/work/readable.txt': 'text',
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), content);
  }
  symlinkSync('../../target.txt', join(workspace, 'link.txt'));
  for (const path of ['.', ...readdirSync(home, { recursive: true, encoding: 'utf8' })])
    if (!path.endsWith('link.txt')) chownSync(join(home, path), account.uid, account.gid);
  return { home, workspace, account };
}

/** Abstract names are the whole machine's. */
const abstractSocket = `agent-sandbox-test-${process.pid}`;

async function listeners(home: string): Promise<{ readonly port: number; readonly udpPort: number; hits(): number }> {
  let hits = 0;
  const count = (): void => {
    hits++;
  };
  const listen = async (at: number | string): Promise<Server> => {
    const server = createServer(count);
    await new Promise<void>((resolve) => {
      server.listen(typeof at === 'number' ? { port: at, host: '127.0.0.1' } : { path: at }, resolve);
    });
    onTestFinished(() => {
      server.close();
    });
    return server;
  };
  const tcp = await listen(0);
  await listen(join(home, 'agent.sock'));
  chmodSync(join(home, 'agent.sock'), 0o777);
  await listen(`\0${abstractSocket}`);
  const udp = createSocket('udp4', count);
  await new Promise<void>((resolve) => {
    udp.bind(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    udp.close();
  });
  return { port: (tcp.address() as { port: number }).port, udpPort: udp.address().port, hits: () => hits };
}

/** A system call by number: HIT unless the kernel says that it is not permitted (1) or not there (38). */
const refusedCall = (number: number, ...args: readonly number[]): string =>
  `perl -e 'syscall(${[number, ...args].join(',')}) == -1 && ($!+0 == 1 || $!+0 == 38) or print "HIT $!\\n"'`;
const unixSocket = (path: string): string =>
  `perl -e 'use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack("S a108", 1, "${path}")) and print "HIT\\n"'`;

/** Tries each setting of the kernel that is shown. To open one for writing changes nothing. */
const openEach = `for f in $(find /proc /sys -path '/proc/[0-9]*' -prune -o -type f -print 2>/dev/null); do
  true >>"$f" && echo "HIT $f"
done 2>/dev/null`;

/** What must not come to pass, each printing HIT where it does. `free`: it does without a sandbox. */
function probes(
  { home }: Place,
  net: { readonly port: number; readonly udpPort: number },
): readonly { readonly name: string; readonly command: string; readonly free?: true }[] {
  return [
    { name: 'write /etc', command: '[ -w /etc/passwd ] || (: > /etc/agent-probe) 2>/dev/null && echo HIT' },
    { name: 'write what the kernel is steered by', command: openEach },
    { name: 'write a new file of /dev', command: '(: > /dev/agent-probe) && echo HIT' },
    { name: 'write a new folder of the root', command: 'mkdir /agent-probe 2>/dev/null && echo HIT' },
    {
      name: 'read a key in HOME',
      command: `cat ~/.ssh/id_rsa ~/.aws/credentials ${home}/.ssh/id_rsa | grep -q KEY && echo HIT`,
      free: true,
    },
    { name: 'read /etc/shadow', command: 'head -c 1 /etc/shadow /etc/gshadow | grep -q . && echo HIT' },
    { name: 'read .env', command: 'cat .env packages/api/.env.local | grep -q KEY && echo HIT', free: true },
    {
      name: 'read .env by another way',
      command: 'cp .env a; ln .env b; ln -s .env c; cat a b c /proc/self/cwd/.env | grep -q KEY && echo HIT',
    },
    {
      name: 'move what hides below a folder',
      command: '(mv packages moved || mv packages/api moved) && echo HIT; rm -rf moved',
    },
    { name: 'provider key in the environment', command: 'env | grep -q sk-secret && echo HIT', free: true },
    {
      name: 'environment of any process',
      command: `cat /proc/*/environ /proc/${process.pid}/environ | tr '\\0' '\\n' | grep -q sk-secret && echo HIT`,
      free: true,
    },
    {
      name: 'see or signal the program',
      command: `kill -0 ${process.ppid} 2>/dev/null || ls /proc/${process.pid}/fd >/dev/null && echo HIT`,
    },
    { name: 'TCP', command: `(exec 3<>/dev/tcp/127.0.0.1/${net.port}) && echo HIT`, free: true },
    { name: 'UDP', command: `echo x > /dev/udp/127.0.0.1/${net.udpPort}`, free: true },
    { name: 'name lookup', command: `perl -e 'print "HIT" if gethostbyname("example.com")'` },
    { name: 'unix socket in HOME', command: unixSocket(`${home}/agent.sock`), free: true },
    { name: 'abstract unix socket', command: unixSocket(`\\0${abstractSocket}`), free: true },
    { name: 'socket of the virtual machine', command: `perl -e 'socket(S, 40, 1, 0) and print "HIT\\n"'` },
    {
      name: 'remount',
      command:
        'mount -o remount,rw,bind / && echo HIT; mount -o remount,rw,bind /etc && echo HIT; umount .env && echo HIT',
    },
    { name: 'mount', command: `mount -t tmpfs x /tmp && echo HIT; ${refusedCall(calls.mount, 0, 0, 0, 0, 0)}` },
    {
      name: 'device node',
      command: 'mknod /tmp/disk b 8 0 && head -c 1 /tmp/disk && echo HIT; mknod ./disk b 8 0 && echo HIT',
    },
    {
      name: 'nested user namespace',
      command: `unshare -Ur true && echo HIT; ${refusedCall(calls.unshare, 0x1000_0000)}; ${refusedCall(calls.clone3, 0, 0)}`,
    },
    { name: 'ptrace', command: refusedCall(calls.ptrace, 0, 0, 0, 0) },
    { name: 'io_uring', command: refusedCall(calls.ioUringSetup, 1, 0) },
    { name: 'kernel keyring', command: refusedCall(calls.keyctl, 0, 0, 0) },
    {
      name: 'bpf, perf, userfaultfd',
      command: [
        refusedCall(calls.bpf, 0, 0, 0),
        refusedCall(calls.perfEventOpen, 0, 0, 0, 0, 0),
        refusedCall(calls.userfaultfd, 0),
      ].join('; '),
    },
    {
      name: 'type into a terminal',
      command: `perl -e 'open(T, "+</dev/tty") and print "HIT\\n"; open(P, "+</dev/ptmx"); ioctl(P, 0x5412, my $x = "x") and print "HIT\\n"; ioctl(P, 0x5412 | 0x7fffffff00000000, my $y = "x") and print "HIT\\n"'`,
    },
    { name: 'capabilities', command: 'grep -qE "^Cap(Eff|Prm|Bnd|Inh|Amb):.*[1-9a-f]" /proc/self/status && echo HIT' },
    { name: 'file of 3 GiB', command: 'truncate -s 3G big 2>/dev/null && echo HIT; rm -f big', free: true },
  ];
}

if (!bubblewrapWorks)
  console.log(
    `sandbox: no working bubblewrap here, ${probes({ home: '', workspace: '', account: { name: '', uid: 0, gid: 0 } }, { port: 0, udpPort: 0 }).length} probes skipped for each of ${accounts.length} accounts`,
  );
const key = { OPENAI_API_KEY: 'sk-secret-of-the-test', AWS_SESSION_TOKEN: 'sk-secret-too' };

test.skipIf(!bubblewrapWorks).each(accounts)('nothing gets out of the sandbox, as $name', async (account) => {
  const place = makePlace(account);
  const net = await listeners(place.home);
  const rows = probes(place, net);
  const before = readdirSync(place.workspace).toSorted();
  const results = await processes.run({ ...place, commands: rows, env: key }, account);
  expect(rows.map(({ name }, index) => ({ name, hit: results[index]?.text.includes('HIT') }))).toEqual(
    rows.map(({ name }) => ({ name, hit: false })),
  );
  expect({ hits: net.hits(), left: readdirSync(place.workspace).toSorted() }).toEqual({
    hits: 0,
    left: [...before, 'c'].toSorted(),
  });
  expect(existsSync('/agent-probe') || existsSync('/etc/agent-probe')).toBe(false);
});

test('without a sandbox the same probes do get out', async () => {
  const [account] = accounts.slice(-1);
  if (!account || !bubblewrapWorks) return;
  const place = makePlace(account);
  const net = await listeners(place.home);
  const rows = probes(place, net).filter((row) => row.free);
  const results = await processes.run(
    { ...place, commands: rows.map((row) => ({ ...row, sandbox: 'off' })), env: key },
    account,
  );
  const silent = rows
    .filter((row, index) => row.name !== 'UDP' && !results[index]?.text.includes('HIT'))
    .map((row) => row.name);
  expect({ silent, hits: net.hits() }).toEqual({ silent: [], hits: 4 });
});

test.skipIf(!bubblewrapWorks).each(accounts)(
  'writes reach the workspace alone, and not what is guarded there, as $name',
  async (account) => {
    const place = makePlace(account);
    const commands: readonly Step[] = [
      { command: 'echo new > made.txt; echo more >> readable.txt; mkdir -p packages/web; cat .env.example' },
      {
        command:
          'echo x > ~/probe; echo x > ../probe; echo x > ../work-evil/sibling.txt; echo x > link.txt; rm -rf ~/.ssh ../work-evil',
      },
      {
        command:
          'echo x > .git/config; echo x > .git/hooks/pre-commit; mv .git .old; rm -rf .git/hooks; git config core.hooksPath evil; echo x > .vscode/tasks.json; mv .vscode v',
      },
      { command: 'echo x > .git/index; touch q', sandbox: 'workspace' },
      { command: 'touch never; echo x >> readable.txt; touch /tmp/fine ~/fine && echo private', sandbox: 'read-only' },
    ];
    const results = await processes.run({ ...place, commands }, account);
    const read = (path: string): string | null =>
      existsSync(join(place.home, path)) ? readFileSync(join(place.home, path), 'utf8') : null;
    expect(
      Object.fromEntries(
        [
          'projects/work/made.txt',
          'projects/work/readable.txt',
          'projects/work/.git/index',
          'projects/work/never',
          'probe',
          'projects/probe',
          'target.txt',
          'projects/work-evil/sibling.txt',
          '.ssh/id_rsa',
          'projects/work/.git/config',
          'projects/work/.git/hooks/pre-commit',
          'projects/work/.git/hooks/pre-commit.sample',
          'projects/work/.vscode/tasks.json',
          'projects/work/.env',
        ].map((path) => [path, read(path)]),
      ),
    ).toEqual({
      'projects/work/made.txt': 'new\n',
      'projects/work/readable.txt': 'textmore\n',
      'projects/work/.git/index': 'x\n',
      'projects/work/never': null,
      probe: null,
      'projects/probe': null,
      'target.txt': 'untouched',
      'projects/work-evil/sibling.txt': 'untouched',
      '.ssh/id_rsa': 'KEY-OF-HOME',
      'projects/work/.git/config': '[core]\n',
      'projects/work/.git/hooks/pre-commit': null,
      'projects/work/.git/hooks/pre-commit.sample': 'untouched',
      'projects/work/.vscode/tasks.json': '{}',
      'projects/work/.env': 'KEY-OF-WORKSPACE',
    });
    expect([results[0]?.text, results[4]?.text.endsWith('private\n')]).toEqual(['meant to be read', true]);
  },
);

test.skipIf(!bubblewrapWorks).each(accounts)(
  'the private folders hold less than the memory, as $name',
  async (account) => {
    const place = makePlace(account);
    const command = 'set -- /tmp /run /var/tmp /dev/shm ~; for folder do touch $folder/fine; done; df -P -k "$@"';
    const [result] = await processes.run({ ...place, commands: [{ command }] }, account);
    const rows = (result?.text ?? '')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/\s+/));
    expect(rows.map((row) => row[5])).toEqual(['/tmp', '/run', '/var/tmp', '/dev/shm', place.home]);
    expect(rows.reduce((sum, row) => sum + Number(row[1]) * 1024, 0)).toBeLessThan(totalmem());
  },
);

test.skipIf(!bubblewrapWorks).each(accounts)(
  'a secret that appears or moves between two commands is hidden from the next, as $name',
  async (account) => {
    const place = makePlace(account);
    const commands = [
      'mkdir -p deep/er; echo KEY > deep/er/notes; mv deep/er/notes deep/er/.env',
      'cat deep/er/.env; mv deep other; mv deep/er other',
      'find . -name ".env*" -not -name "*.example" | while read f; do cat "$f"; done',
    ];
    const results = await processes.run({ ...place, commands: commands.map((command) => ({ command })) }, account);
    expect(results.slice(1).map(({ text }) => text.includes('KEY'))).toEqual([false, false]);
  },
);

test.skipIf(!bubblewrapWorks).each(accounts)(
  'a confined script can open its own output by name, as $name',
  async (account) => {
    const commands: readonly Step[] = (['workspace', 'read-only'] as const).map((sandbox) => ({
      command: 'echo 1 > /dev/stdout; echo 2 > /dev/stderr; echo 3 | tee /dev/stderr',
      sandbox,
    }));
    const results = await processes.run({ ...makePlace(account), commands }, account);
    expect(results.map(({ text }) => text)).toEqual(['1\n2\n3\n3\n', '1\n2\n3\n3\n']);
  },
);

/** Everyday git, each line a call of its own. */
const everydayGit: readonly string[] = [
  'git init -q -b main && git config user.name ann && git config user.email ann@example.com',
  'git add .',
  'git commit -qm one',
  'git branch topic',
  'git checkout -q topic',
  'echo two > two.txt && git add . && git commit -qm two',
  'git checkout -q main',
  'echo three > three.txt && git add . && git commit -qm three',
  'git merge -q --no-edit topic',
  'git tag v1',
  'git log --oneline',
  'git diff HEAD~1',
  'echo x >> two.txt && git stash -q && git stash pop -q && git diff --quiet; git checkout -q -- two.txt',
  'git checkout -q -b later HEAD~1 && echo four > four.txt && git add . && git commit -qm four',
  'git rebase -q main',
  'git cherry-pick --no-commit topic && git reset -q --hard',
  'git checkout -q -b clash v1~2 && echo other > three.txt && git add . && git commit -qm clash; git rebase main; git status | grep -q rebase',
  'echo both > three.txt && git add . && GIT_EDITOR=true git rebase --continue',
  'git gc -q',
  'git worktree add -q .trees/x && git -C .trees/x status --short && git -C .trees/x log --oneline',
  'git mv two.txt 2.txt && git commit -qam moved',
  'git fsck',
  'git branch -D later',
  'test -z "$(git status --porcelain -- readable.txt)"',
];

test.skipIf(!bubblewrapWorks).each(accounts)(
  'everyday git goes on working in the sandbox, as $name',
  async (account) => {
    const place = makePlace(account);
    rmSync(join(place.workspace, '.git'), { recursive: true });
    writeFileSync(join(place.workspace, '.gitignore'), '.env*\n.trees\n');
    const results = await processes.run({ ...place, commands: everydayGit.map((command) => ({ command })) }, account);
    expect(results.filter(({ result }) => result.exitCode !== 0)).toEqual([]);
  },
);

test.skipIf(!bubblewrapWorks).each(accounts)(
  'what git and package managers obey later cannot be written, as $name',
  async (account) => {
    const place = makePlace(account);
    const guarded = [
      '.git/config',
      '.git/hooks/pre-commit.sample',
      '.git/info/attributes',
      '.git/objects/info/alternates',
      '.git/commondir',
      '.git/modules/lib/config',
      '.git/modules/lib/hooks/post-merge',
      '.git/modules/a/b/config.worktree',
      '.git/worktrees/x/commondir',
      '.git/worktrees/x/gitdir',
      'sub/.git/config',
      '.npmrc',
      '.yarnrc.yml',
      '.cargo/config.toml',
      'Jenkinsfile',
    ];
    for (const path of [...guarded, '.git/modules/lib/HEAD', '.git/modules/a/b/HEAD']) {
      mkdirSync(dirname(join(place.workspace, path)), { recursive: true });
      writeFileSync(join(place.workspace, path), 'untouched');
    }
    for (const path of ['.', ...readdirSync(place.workspace, { recursive: true, encoding: 'utf8' })])
      if (!path.endsWith('link.txt')) chownSync(join(place.workspace, path), account.uid, account.gid);
    const attempts = guarded.map(
      (path) =>
        `(echo x > ${path}) 2>/dev/null; rm -f ${path}; mv new ${path}; d=$(dirname ${path}); mv $d $d.old; rm -rf $d; mv .git .old; mv sub s; cp -r .old .git`,
    );
    await processes.run({ ...place, commands: ['touch new', ...attempts].map((command) => ({ command })) }, account);
    expect(guarded.filter((path) => readFileSync(join(place.workspace, path), 'utf8') !== 'untouched')).toEqual([]);
  },
);

const rootIsCounted = accounts.length === 1 || processLimitFile(512) !== null;
test.skipIf(!bubblewrapWorks).each(accounts.filter(({ uid }) => uid !== 0 || rootIsCounted))(
  'a command that goes on forking is stopped at 512 processes, as $name',
  async (account) => {
    const command = `perl -e 'for ($count = 0; $count < 1000; $count++) { $id = fork; last unless defined $id; if ($id == 0) { sleep 60; exit } } print $count'`;
    const [result] = await processes.run({ ...makePlace(account), commands: [{ command }] }, account);
    expect(Number(result?.text)).toBeGreaterThan(300);
    expect(Number(result?.text)).toBeLessThan(512);
  },
);

test.skipIf(!bubblewrapWorks).each(accounts)(
  'everything ends with the call, on its deadline, and with the program that is killed, as $name',
  async (account) => {
    const place = makePlace(account);
    const marker = `test-${account.uid}-${process.pid}`;
    const alive = (): number => processesMarked(`_SANDBOX_TEST=${marker}`).length;
    const env = { _SANDBOX_TEST: marker };
    const ended = await processes.run(
      {
        ...place,
        env,
        commands: [
          { command: 'sleep 300 & setsid nohup sleep 300 >/dev/null 2>&1 & disown; echo hi' },
          { command: 'trap "echo asked; exit 0" TERM; echo up; while :; do sleep 0.1; done', timeoutMs: 500 },
          { command: 'trap "" TERM; echo up; while :; do sleep 0.1; done', timeoutMs: 300 },
          { command: 'kill -9 $$' },
        ],
      },
      account,
    );
    expect(ended.map(({ text, result }) => [text, result.ended, result.background])).toEqual([
      ['hi\n', 'exit', 0],
      [expect.stringMatching(/^up\n[^]*asked\n$/), 'timeout', 0],
      ['up\n', 'timeout', 0],
      ['', 'exit', 0],
    ]);
    expect(ended[3]?.result).toMatchObject({ exitCode: 137, signal: 'SIGKILL' });
    await expect.poll(alive).toBe(0);

    const child = processes.start(
      { ...place, env, commands: [{ command: '# live\necho up; setsid sleep 300 & sleep 300' }] },
      account,
    );
    await new Promise((resolve) => {
      child.stderr?.once('data', resolve);
    });
    expect(alive()).toBeGreaterThan(2);
    child.kill('SIGKILL');
    await expect.poll(alive).toBe(0);
  },
);

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { PermissionAnswer } from '../../../../src/kernel/core/policy.js';
import {
  attributesOf,
  beginJournal,
  finishJournals,
  inodeOf,
  type JournalStep,
} from '../../../../src/kernel/tools/rehearsal/journal.js';
import { createRig, type Rig, type RigOptions } from './rehearsal-rig.js';

let root = '';
let workspace = '';
let home = '';

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'rehearsal-')));
  [workspace, home] = [join(root, 'work'), join(root, 'home')];
  for (const folder of [workspace, home]) mkdirSync(folder);
  fill(workspace);
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
});

function fill(folder: string): void {
  mkdirSync(join(folder, 'src', 'deep'), { recursive: true });
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n');
  writeFileSync(join(folder, 'src', 'b.ts'), 'export {};\n', { mode: 0o755 });
  writeFileSync(join(folder, 'src', 'deep', 'c.ts'), 'c\n');
  writeFileSync(join(folder, '.env'), 'SECRET=1\n');
  symlinkSync('a.txt', join(folder, 'link'));
  for (const name of ['a.txt', 'src/b.ts', 'src/deep/c.ts'])
    utimesSync(join(folder, name), 1_700_000_000, 1_700_000_000);
}

function rig(options: Partial<RigOptions> = {}): Rig {
  const made = createRig({ workspace, home, ...options });
  onTestFinished(() => made.close());
  return made;
}

/** Puts a script into a folder, and returns the command that runs it: nothing can be told from its text. */
function script(text: string, folder = workspace): string {
  writeFileSync(join(folder, 'do.sh'), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  return './do.sh';
}

/** What is in a folder: kinds, modes and contents. */
function tree(folder: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = (path: Buffer, name: string): void => {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`;
    else if (stat.isFile()) found[name] = `file ${stat.mode.toString(8)} ${readFileSync(path, 'latin1')}`;
    else {
      found[name] = `folder ${stat.mode.toString(8)}`;
      for (const inner of readdirSync(path, { encoding: 'buffer' }))
        visit(Buffer.concat([path, Buffer.from('/'), inner]), `${name}/${inner.toString('latin1')}`);
    }
  };
  visit(Buffer.from(folder), '');
  return found;
}

const possible = await (async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'rehearsal-probe-')));
  for (const name of ['work', 'home']) mkdirSync(join(folder, name));
  const made = createRig({ workspace: join(folder, 'work'), home: join(folder, 'home') });
  const problem = await made.rehearsals.problem();
  await made.close();
  rmSync(folder, { recursive: true });
  return problem === null;
})();

describe.skipIf(!possible)('a rehearsed command', () => {
  test('that only reads gives its result, and nobody is asked', async () => {
    const { call, questions } = rig();
    const { outcome, decision } = await call('bash -c "wc -l < a.txt; node -p 1+1"');
    expect(outcome.envelope).toMatchObject({ output: '2\n2\n', exit_code: 0 });
    expect(decision).toEqual({
      decidedBy: 'rehearsal',
      effects: { written: [], deleted: [], network: false },
      kept: false,
    });
    expect(questions).toEqual([]);
  });

  test('is rehearsed however late this process looks at it', async () => {
    const { call, rehearsals } = rig();
    expect(await rehearsals.problem()).toBe(null);
    // As where other programs have the processors: the command would be over meanwhile.
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const busy = setInterval(() => Atomics.wait(pause, 0, 0, 60), 1);
    onTestFinished(() => {
      clearInterval(busy);
    });
    const { outcome, decision } = await call('bash -c "exit 0"');
    expect(decision?.decidedBy, JSON.stringify(outcome.envelope)).toBe('rehearsal');
  });

  test('on the short list is not rehearsed', async () => {
    expect((await rig({ rehearses: false }).call('ls -la && cat a.txt | head -1')).decision).toEqual({
      decidedBy: 'static',
    });
  });

  test('that writes leaves nothing behind, and is asked about with all that it would do', async () => {
    const { call, questions } = rig();
    const command = script(
      'sed -i s/one/1/ a.txt; rm -r src/deep; mkdir new; echo x > new/x; chmod 700 src/b.ts; touch ~/in-home',
    );
    const before = tree(workspace);
    const { outcome, denials, decision } = await call(command);
    const effects = {
      written: [
        { path: join(home, 'in-home'), change: 'created', added: 0, removed: 0 },
        { path: join(workspace, 'a.txt'), change: 'changed', added: 1, removed: 1 },
        { path: join(workspace, 'new/x'), change: 'created', added: 1, removed: 0 },
        { path: join(workspace, 'src/b.ts'), change: 'attributes', added: 0, removed: 0 },
      ],
      deleted: [join(workspace, 'src/deep/c.ts')],
      network: false,
    };
    const sorted = (of: unknown): unknown => ({
      ...(of as typeof effects),
      written: (of as typeof effects).written.toSorted((a, b) => a.path.localeCompare(b.path)),
    });
    expect(sorted(decision?.effects)).toEqual(sorted(effects));
    expect(denials[0]?.effects).toEqual(decision?.effects);
    expect(JSON.stringify(outcome.envelope)).toContain('would delete 1 file (src/deep/c.ts) and write 4 files');
    expect(questions[0]?.effects?.lines[0]).toBe('deletes src/deep/c.ts');
    expect(questions[0]?.effects?.diff).toContain('-one\n+1\n');
    expect(tree(workspace)).toEqual(before);
    expect(readdirSync('/var/tmp').filter((name) => name.startsWith(`agent-rehearsal-${process.pid}-`))).toEqual([]);
  });

  test.each([
    ['caches', 'mkdir -p __pycache__ ~/.cache/x; touch __pycache__/a.pyc ~/.cache/x/y', null],
    ['a file and its removal', 'touch t; rm t', null],
    ['equal bytes', 'cp -p a.txt t; cat t > /dev/null; rm t', null],
    ['an empty folder', 'mkdir empty', 'write 1 file (empty)'],
    ['the temporary folder', `echo x > ${tmpdir()}/left-by-rehearsal`, 'left-by-rehearsal +1'],
    ['a build folder', 'mkdir target; touch target/x', 'target/x'],
    ['a replaced folder', 'rm -r src; mkdir src; touch src/z', 'delete 2 files (src/b.ts, src/deep/c.ts)'],
    ['a process', 'sleep 60 & echo', 'its processes are still running'],
    ['a file in memory', 'echo x > /dev/shm/left', 'it creates files in /dev/shm'],
    ['a read-only place', 'bash -c "touch /opt/left"', 'it does something that a preview cannot'],
    [
      'an attribute',
      `python3 -c "import os; os.setxattr('a.txt', 'user.x', b'1')"`,
      'it does something that a preview cannot',
    ],
    ['a copy with attributes', 'cp -a a.txt b.txt; cmp a.txt b.txt; rm b.txt', null],
    [
      'a socket that is hidden',
      'echo "error connecting to /tmp/x"; false',
      'it looks for something that a rehearsal hides',
    ],
  ])('%s', async (_what, command, wanted) => {
    const { outcome, decision } = await rig().call(script(command));
    if (wanted === null) expect(decision?.decidedBy, JSON.stringify(outcome.envelope)).toBe('rehearsal');
    else expect(JSON.stringify(outcome.envelope)).toContain(wanted);
    expect(existsSync(join(tmpdir(), 'left-by-rehearsal'))).toBe(false);
  });

  test('reaches neither the network nor services of the machine, and that counts as an effect', async () => {
    let connections = 0;
    const server = createServer(() => connections++);
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    const { call } = rig();
    for (const place of [`127.0.0.1/${port}`, '192.0.2.1/80'])
      expect((await call(script(`cat < /dev/tcp/${place} || true`))).decision?.effects?.network, place).toBe(true);
    expect((await call(script('getent hosts example.com || true'))).decision?.effects?.network).toBe(true);
    expect(connections).toBe(0);
  });

  test('is not rehearsed where it looks at what a rehearsal hides', async () => {
    for (const command of ['ps auxe', 'docker ps', 'timeout 5 tmux ls', 'cd src && systemctl status']) {
      const { decision, denials } = await rig().call(command);
      expect([decision?.effects, denials.length], command).toEqual([undefined, 1]);
    }
    expect((await rig({ planning: true }).call('docker ps')).denials[0]?.reason).toContain('which a rehearsal hides');
  });

  test('sees no secrets', async () => {
    mkdirSync(join(home, '.ssh'));
    writeFileSync(join(home, '.ssh', 'id_rsa'), 'KEY');
    writeFileSync(join(home, '.netrc'), 'KEY');
    const { call } = rig({ env: { MY_TOKEN: 'KEY', SSH_AUTH_SOCK: '/x' } });
    const { outcome } = await call(script('cat .env ~/.netrc ~/.ssh/*; printenv | grep -E "KEY|SSH_AUTH"; true'));
    expect(outcome.envelope).toMatchObject({ exit_code: 0 });
    expect(JSON.stringify(outcome.envelope)).not.toMatch(/SECRET=|=KEY|^KEY/m);
  });

  test('in plan mode is run where it reads, and denied with its effects where it writes', async () => {
    const { call, questions } = rig({ planning: true, approval: 'never' });
    expect((await call('node -p 1')).outcome.envelope).toMatchObject({ output: '1\n' });
    const { outcome } = await call(script('touch x'));
    expect(JSON.stringify(outcome.envelope)).toContain('it would write 1 file (x), and was not run');
    expect(questions).toEqual([]);
    expect(existsSync(join(workspace, 'x'))).toBe(false);
  });

  test('that nobody can judge by its text is rehearsed in the default mode as well', async () => {
    const { call, questions } = rig({ approval: 'dangerous' });
    const odd = `echo one${' '.repeat(90)}two`;
    expect((await call(odd)).decision?.decidedBy).toBe('rehearsal');
    await call(`${odd} > out`);
    expect(questions[0]?.effects?.text).toBe('would write 1 file (out +1)');
  });
});

describe.skipIf(!possible)('keeping what a rehearsal did', () => {
  const keep = (): PermissionAnswer => ({ answer: 'keep' });

  test.each([
    'echo x > new.txt',
    'sed -i s/one/1/ a.txt; chmod 600 src/b.ts',
    'rm -r src',
    'rm -r src; mkdir src; echo z > src/z',
    'rm a.txt; mkdir a.txt; echo in > a.txt/in',
    'ln -sf src/b.ts link; ln -s nowhere other',
    'mkdir -p x/y/z; echo 1 > x/y/z/1; cp -a src x',
    'touch -d 2001-02-03T04:05:06 a.txt',
    'for i in $(seq 300); do echo $i > f$i; done; rm f7',
    'mkdir __pycache__; touch __pycache__/x.pyc; echo x > x.py',
    'chmod 500 src; touch "with space" "$(printf "odd\\377")"',
    'mv a.txt src/; mv src/b.ts .; rmdir empty 2>/dev/null; echo done > src/deep/c.ts',
  ])('makes what a real run makes: %s', async (command) => {
    const real = join(root, 'real');
    mkdirSync(real);
    fill(real);
    script(command, real);
    execFileSync(join(real, 'do.sh'), { cwd: real, env: { ...process.env, HOME: home }, stdio: 'ignore' });
    const { call } = rig({ answer: keep });
    const { outcome, decision } = await call(script(command));
    expect(decision, JSON.stringify(outcome.envelope)).toMatchObject({ decidedBy: 'user', kept: true });
    expect(tree(workspace)).toEqual(tree(real));
    expect(lstatSync(join(workspace, 'link'), { throwIfNoEntry: false })?.isSymbolicLink()).toBe(true);
    if (command.startsWith('touch -d'))
      expect(lstatSync(join(workspace, 'a.txt')).mtimeMs).toBe(lstatSync(join(real, 'a.txt')).mtimeMs);
  });

  test('reports what was before and after, for undo', async () => {
    const { captured } = await rig({ answer: keep }).call('echo 3 >> a.txt; rm src/b.ts; mkdir d; touch d/e');
    const changes = captured?.changes.map(({ path, what }) => [path.slice(workspace.length + 1), what]);
    expect(changes?.toSorted()).toEqual([
      ['a.txt', 'changed'],
      ['d/e', 'created'],
      ['src/b.ts', 'deleted'],
    ]);
    expect(captured?.folders.map(({ path }) => path)).toEqual([join(workspace, 'd')]);
    expect(captured?.blobs.map(({ bytes }) => Buffer.from(bytes).toString())).toContain('one\ntwo\n');
  });

  test('is not offered where something was changed meanwhile, and is refused where that happens during the question', async () => {
    const change = (): void => {
      writeFileSync(join(workspace, 'a.txt'), 'by somebody else\n');
    };
    const during = rig({
      answer: () => {
        change();
        return { answer: 'keep' };
      },
    });
    const { outcome } = await during.call(script('echo 3 >> a.txt; echo 4 > b'));
    expect(JSON.stringify(outcome.envelope)).toContain('a.txt changed meanwhile');
    expect(existsSync(join(workspace, 'b'))).toBe(false);
    expect(readFileSync(join(workspace, 'a.txt'), 'utf8')).toBe('by somebody else\n');
  });

  test.each([
    ['a file with another name', 'echo 3 >> hard', 'has other names (hard links)'],
    ['a file elsewhere', `echo x > ${tmpdir()}/elsewhere-by-rehearsal`, 'is outside of the workspace'],
    ['a pipe', 'mkfifo p', 'is neither a file nor a folder nor a link'],
    ['the network', 'echo x > y; cat < /dev/tcp/192.0.2.1/80', 'it uses the network'],
    ['a protected file', 'mkdir -p .git/hooks; echo x > .git/hooks/post-commit', 'it changes protected files'],
  ])('is not offered for %s', async (_what, command, problem) => {
    writeFileSync(join(workspace, 'hard'), 'h');
    linkSync(join(workspace, 'hard'), join(root, 'other'));
    const { call, questions } = rig();
    await call(script(command));
    expect(questions[0]?.effects?.keepProblem).toContain(problem);
  });

  test('of protected files is called dangerous', async () => {
    const { call, questions } = rig();
    await call(script('mkdir -p .git/hooks; touch .git/hooks/pre-commit'));
    expect(questions[0]?.verdict.risk).toBe('dangerous');
    expect(questions[0]?.verdict.reasons[0]).toContain('decides what other programs run');
  });

  test('a preview shows what a dangerous command would do, and runs nothing', async () => {
    const before = tree(workspace);
    const answers: PermissionAnswer[] = [{ answer: 'preview' }, { answer: 'deny' }];
    const { call, questions } = rig({ approval: 'dangerous', answer: () => answers.shift() ?? { answer: 'deny' } });
    await call('rm -rf src');
    expect(questions.map(({ canPreview, effects }) => [canPreview, effects?.lines])).toEqual([
      [true, undefined],
      [undefined, ['deletes src/b.ts', 'deletes src/deep/c.ts']],
    ]);
    expect(tree(workspace)).toEqual(before);
  });
});

/** A journal as a killed program leaves it: `done` steps are made. */
function leftJournal(
  done: number,
  spoil: () => void = () => undefined,
): { readonly journals: string; readonly after: object } {
  const journals = join(root, 'journals');
  const folder = join(journals, '1-0-x');
  mkdirSync(join(folder, 'files'), { recursive: true });
  mkdirSync(join(folder, 'trash'));
  const raw = (path: string): string => Buffer.from(path).toString('latin1');
  const step = (what: JournalStep['what'], name: string, text: string | null, index: number): JournalStep => {
    const path = join(workspace, name);
    const staged = join(folder, 'files', String(index));
    if (text !== null) writeFileSync(staged, text);
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return {
      what,
      path: raw(path),
      staged: raw(staged),
      trash: raw(join(folder, 'trash', String(index))),
      old: inodeOf(Buffer.from(path)),
      fresh: text === null ? null : inodeOf(Buffer.from(staged)),
      before: stat ? attributesOf(stat) : null,
      after: null,
    };
  };
  const steps = [step('put', 'a.txt', 'new\n', 0), step('delete', 'src/b.ts', null, 1), step('put', 'n.txt', 'n\n', 2)];
  beginJournal({ folder, steps });
  if (done > 0) {
    linkSync(join(workspace, 'a.txt'), join(folder, 'trash', '0'));
    renameSync(join(folder, 'files', '0'), join(workspace, 'a.txt'));
  }
  if (done > 1) renameSync(join(workspace, 'src/b.ts'), join(folder, 'trash', '1'));
  spoil();
  return { journals, after: { a: 'new\n', b: false, n: 'n\n' } };
}

function state(): object {
  const read = (name: string): string | false => {
    const path = join(workspace, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : false;
  };
  return { a: read('a.txt'), b: read('src/b.ts'), n: read('n.txt') };
}

describe('a journal that a killed program left', () => {
  test.each([0, 1, 2])('is finished at the next start, after %i steps', async (done) => {
    const { journals, after } = leftJournal(done);
    await finishJournals(journals, () => false);
    expect(state()).toEqual(after);
    expect(readdirSync(journals)).toEqual([]);
  });

  test('is taken back where somebody has changed one of the files since', async () => {
    const before = state();
    const { journals } = leftJournal(2, () => {
      writeFileSync(join(workspace, 'n.txt'), 'mine\n');
    });
    await finishJournals(journals, () => false);
    expect(state()).toEqual({ ...before, n: 'mine\n' });
  });

  test('is left alone while its program runs', async () => {
    const { journals } = leftJournal(1);
    await finishJournals(journals, (name) => name === '1-0-x');
    expect(readdirSync(journals)).toEqual(['1-0-x']);
  });

  test('without a plan is removed, and nothing changes', async () => {
    const before = state();
    const { journals } = leftJournal(0);
    rmSync(join(journals, '1-0-x', 'plan'));
    await finishJournals(journals, () => false);
    expect(state()).toEqual(before);
    chmodSync(workspace, 0o755);
  });
});

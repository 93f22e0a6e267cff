import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tree } from '../../kernel/tools/workbench.js';
import { type Behaviour, editedProject, installDouble, logged, type ProjectOptions } from './edited-project.js';

/** A project of Python files with the double on PATH, which answers requests for errors. */
function python(files: Readonly<Record<string, string>>, behaviour: Behaviour = {}, more: ProjectOptions = {}) {
  const path = [installDouble(tree(), 'pyright-langserver')];
  return editedProject(files, { behaviour: { ask: 'pull', ...behaviour }, path, ...more });
}

const languages = [
  {
    way: 'typescript',
    program: 'typescript-language-server',
    end: 'ts',
    mark: '//',
    use: "import './a.js'; // needs add",
  },
  { way: 'pull', program: 'pyright-langserver', end: 'py', mark: '#', use: 'from a import add # needs add' },
  { way: 'push', program: 'clangd', end: 'c', mark: '//', use: '#include "a.h" // needs add' },
] as const;

test.each(languages)(
  '$program: an edit reports its new errors and those of files that it broke, and none once repaired',
  async ({ way, program, end, mark, use }) => {
    const files = { [`a.${end}`]: `${mark} defines add\n${mark} line\n`, [`b.${end}`]: `${mark} b\n${use}\n` };
    const path = [installDouble(tree(), program)];
    const { edit } = editedProject(files, { behaviour: { ask: way }, path });
    const column = use.indexOf('needs') + 1;
    const code = way === 'typescript' ? 'TS1' : 'E1';
    expect(await edit(`a.${end}`, 'line', 'BROKEN here')).toEqual({
      facts: { diagnostics: [`a.${end}:2:${mark.length + 2} error ${code}: here`] },
      summary: '1 new error',
    });
    expect(await edit(`a.${end}`, 'BROKEN here', 'line')).toBeNull();
    expect(await edit(`a.${end}`, 'defines add', 'defines plus')).toEqual({
      facts: { diagnostics: [`b.${end}:2:${column} error ${code}: add is not defined`] },
      summary: '1 new error',
    });
    expect(await edit(`a.${end}`, 'defines plus', 'defines add')).toBeNull();
    expect(await edit(`b.${end}`, 'needs add', 'needs sub')).toMatchObject({ summary: '1 new error' });
    expect(await edit(`b.${end}`, 'needs sub', 'needs add')).toBeNull();
  },
);

test('errors that are older than the edit are not reported, wherever the edit moves them', async () => {
  const { edit } = python({ 'a.py': '# one\n# BROKEN old\n# BROKEN old\n', 'b.py': 'import a # BROKEN older\n' });
  expect(await edit('a.py', '# one', '# one\n# two\n# three')).toBeNull();
  expect(await edit('a.py', '# two', '# BROKEN old')).toMatchObject({ summary: '1 new error' });
  expect(await edit('a.py', '# three', '# four')).toBeNull();
});

test('a repair right after an edit is checked, though the server has checked that text before', async () => {
  const path = [installDouble(tree(), 'clangd')];
  const { edit } = editedProject(
    { 'a.c': '// line\n' },
    { behaviour: { ask: 'push', joinsMs: 300 }, path, waitMs: 5000 },
  );
  expect(await edit('a.c', 'line', 'BROKEN here')).toMatchObject({ summary: '1 new error' });
  expect(await edit('a.c', 'BROKEN here', 'line')).toBeNull();
});

test('a new file with errors reports them', async () => {
  const { write } = python({ 'a.py': '# one\n' });
  expect(await write('b.py', '# BROKEN new\n')).toMatchObject({ facts: { diagnostics: ['b.py:1:3 error E1: new'] } });
});

test('a result has 20 lines of errors at most, and the last says how many more there are', async () => {
  const { edit } = python({ 'a.py': '# one\n' });
  const finding = await edit(
    'a.py',
    '# one',
    Array.from({ length: 30 }, (_, index) => `# BROKEN e${index}`).join('\n'),
  );
  const lines = finding?.facts['diagnostics'];
  expect(lines).toHaveLength(20);
  expect(lines).toMatchObject({ 0: 'a.py:1:3 error E1: e0', 18: 'a.py:19:3 error E1: e18', 19: 'and 11 more errors' });
});

test('an edit does not wait longer than its time and says so; what is found later comes as a note', async () => {
  const holdUntil = join(tree(), 'go');
  const { edit, note, notes } = python({ 'a.py': '# one\n' }, { holdUntil }, { waitMs: 100 });
  expect(await edit('a.py', '# one', '# BROKEN late')).toEqual({
    facts: { diagnostics_note: 'pyright has not checked everything yet; you get a note if it finds errors' },
    summary: '',
  });
  expect(notes).toEqual([]);
  const next = note();
  writeFileSync(holdUntil, '');
  expect(await next).toBe('[Note: pyright found 1 new error after the edit of a.py:\na.py:1:3 error E1: late]');
});

test('errors of an edit that was not waited for are in the check of the next one, unless it repairs them', async () => {
  const holdUntil = join(tree(), 'go');
  const { edit, note, notes } = python({ 'a.py': '# one\n# two\n' }, { holdUntil }, { waitMs: 100 });
  await edit('a.py', '# one', '# BROKEN first');
  await edit('a.py', '# two', '# BROKEN second');
  await edit('a.py', '# BROKEN first', '# one');
  const next = note();
  writeFileSync(holdUntil, '');
  expect(await next).toContain('error E1: second');
  expect(notes).toHaveLength(1);
  expect(notes[0]).not.toContain('first');
});

test('a cancelled call does not wait', async () => {
  const signal = AbortSignal.abort();
  const { edit } = python({ 'a.py': '# one\n' }, { holdUntil: join(tree(), 'go') }, { signal });
  expect(await edit('a.py', '# one', '# BROKEN x')).toBeNull();
});

test('files of other languages, outside of the project and without a server start nothing', async () => {
  const log = join(tree(), 'log');
  const outside = tree({ 'a.py': '# one\n' });
  const { edit, state } = python({ 'a.md': '# one\n', 'a.go': '// one\n' }, { log });
  expect(await edit('a.md', '# one', '# BROKEN x')).toBeNull();
  expect(await edit('a.go', '// one', '// BROKEN x')).toBeNull();
  expect(await edit(join(outside, 'a.py'), '# one', '# BROKEN x')).toBeNull();
  expect(existsSync(log)).toBe(false);
  expect(state('gopls')).toMatchObject({ state: 'missing', file: null });
  expect(state('pyright')).toMatchObject({ state: 'waiting' });
});

test('a server hears of each edit that the file is saved, the first one too: a header is checked in other files then', async () => {
  const log = join(tree(), 'log');
  const { edit } = python({ 'a.py': '# one\n' }, { log, logsSaves: true });
  await edit('a.py', '# one', '# two');
  await edit('a.py', '# two', '# three');
  expect(logged(log).filter(({ saved }) => saved !== undefined)).toEqual([{ saved: 'a.py' }, { saved: 'a.py' }]);
});

test('a server is started once, with the first edit, and gets the packages of the project', async () => {
  const log = join(tree(), 'log');
  const asksFor = [{ section: 'python.analysis' }, { section: 'other' }];
  const { edit, state, cwd } = python({ 'a.py': '# one\n', 'b.py': '# one\n' }, { log, asksFor });
  const packages = join(cwd, '.venv', 'lib', 'python3.11', 'site-packages');
  mkdirSync(packages, { recursive: true });
  await edit('a.py', '# one', '# two');
  await edit('b.py', '# one', '# two');
  expect(logged(log)).toEqual([
    { started: 'scripted-server.mjs', cwd, options: {} },
    { answered: [{ extraPaths: [packages] }, null] },
  ]);
  expect(state('pyright')).toMatchObject({ state: 'running', openFiles: 2 });
});

const faults: readonly { readonly fault: string; readonly behaviour: Behaviour; readonly problem: string }[] = [
  { fault: 'ends', behaviour: { exitOn: 'x' }, problem: 'it ended with exit code 3' },
  {
    fault: 'says why and ends',
    behaviour: { exitOn: 'x', complains: 'reading\nerror: unknown binary of this toolchain\n  0: a frame\n' },
    problem: 'it ended with exit code 3: error: unknown binary of this toolchain',
  },
  {
    fault: 'writes what is no message',
    behaviour: { writeOn: 'x', writes: 'Segfault\n' },
    problem: 'it writes what is no message',
  },
  {
    fault: 'announces a message that is too long',
    behaviour: { writeOn: 'x', writes: `Content-Length: ${10 ** 9}\r\n\r\n` },
    problem: 'it writes a message of 1000000000 bytes',
  },
  {
    fault: 'writes messages without end',
    behaviour: { writeOn: 'x', writes: 'Content-Length: 2\r\n\r\n{}', times: 60_000 },
    problem: 'it writes without end',
  },
];

test.each(faults)(
  'where a server $fault, the edit is as without it, and it is started three times at most',
  async ({ behaviour, problem }) => {
    const log = join(tree(), 'log');
    const { edit, state } = python({ 'a.py': '# one\n' }, { ...behaviour, log });
    for (const [before, after] of [
      ['one', 'x1'],
      ['x1', 'x2'],
      ['x2', 'x3'],
      ['x3', 'x4'],
    ] as const)
      expect(await edit('a.py', before, after)).toBeNull();
    expect(state('pyright')).toMatchObject({ state: 'stopped', problem });
    expect(logged(log)).toHaveLength(3);
  },
);

test('messages that the protocol does not know change nothing', async () => {
  const noise = [
    '{"jsonrpc":"2.0"}',
    '[]',
    'null',
    '{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":7}',
  ];
  const writes = noise.map((body) => `Content-Length: ${body.length}\r\n\r\n${body}`).join('');
  const { edit } = python({ 'a.py': '# one\n' }, { writeOn: 'one', writes });
  expect(await edit('a.py', '# one', '# one\n# BROKEN x')).toMatchObject({ summary: '1 new error' });
});

test('in a project that is not trusted no server starts, and the reason is shown', async () => {
  const log = join(tree(), 'log');
  const { edit, state } = python({ 'a.py': '# one\n' }, { log }, { trust: 'not trusted' });
  expect(await edit('a.py', '# one', '# BROKEN x')).toBeNull();
  expect(existsSync(log)).toBe(false);
  expect(state('pyright')).toMatchObject({
    state: 'stopped',
    problem: expect.stringContaining('agent config trust') as string,
  });
});

test('the server of a trusted project comes before that on PATH', async () => {
  const { cwd, edit, state } = python({ 'a.py': '# one\n' }, {}, { trust: 'trusted' });
  const own = installDouble(cwd, 'pyright-langserver');
  expect(await edit('a.py', '# one', '# BROKEN x')).toMatchObject({ summary: '1 new error' });
  expect(state('pyright')).toMatchObject({ state: 'running', file: join(own, 'pyright-langserver') });
});

test('a program on PATH that is in the project is none of PATH', async () => {
  const { cwd, edit, state } = editedProject({ 'a.py': '# one\n' }, { path: ['tools/node_modules/.bin'] });
  installDouble(join(cwd, 'tools'), 'pyright-langserver');
  expect(await edit('a.py', '# one', '# BROKEN x')).toBeNull();
  expect(state('pyright')).toMatchObject({ state: 'missing' });
});

test('the server of a project is never started without trust', async () => {
  const log = join(tree(), 'log');
  const { cwd, edit } = editedProject({ 'a.py': '# one\n' }, { behaviour: { log }, trust: 'nothing to trust' });
  installDouble(cwd, 'pyright-langserver');
  expect(await edit('a.py', '# one', '# BROKEN x')).toBeNull();
  expect(existsSync(log)).toBe(false);
});

test('without trust, TypeScript is that beside the server, never that of the project', async () => {
  const log = join(tree(), 'log');
  const tools = tree();
  const path = [installDouble(tools, 'typescript-language-server')];
  const { edit } = editedProject({ 'a.ts': '// one\n' }, { behaviour: { ask: 'typescript', log }, path });
  await edit('a.ts', '// one', '// two');
  const tsserver = { path: join(tools, 'node_modules', 'typescript', 'lib', 'tsserver.js') };
  expect(logged(log)).toMatchObject([{ options: { tsserver, disableAutomaticTypingAcquisition: true } }]);
});

test('a server that runs programs that files of the project name does not start without trust', async () => {
  const path = [installDouble(tree(), 'rust-analyzer')];
  const files = { 'a.rs': '// one\n', 'rust-toolchain.toml': '[toolchain]\npath = "evil"\n' };
  const { edit, state } = editedProject(files, { path });
  expect(await edit('a.rs', '// one', '// BROKEN x')).toBeNull();
  expect(state('rust-analyzer')).toMatchObject({
    state: 'stopped',
    problem: expect.stringContaining('rust-toolchain.toml') as string,
  });
});

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

const fixtures = fileURLToPath(new URL('../../fixtures/skills', import.meta.url));
const skillFile = (at: At, name: string): string => join(at.home, '.claude/skills', name, 'SKILL.md');

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

interface Logged {
  readonly kind: string;
  readonly content: string;
  readonly data: { readonly output?: string; readonly note?: true } | null;
}

/** The events of the newest session. */
async function events(at: At): Promise<readonly Logged[]> {
  const [{ id }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  return lines(exported.stdout).filter((line) => line.type === 'event') as never;
}

const outputs = (log: readonly Logged[]): readonly string[] =>
  log
    .filter(({ kind }) => kind === 'tool_result')
    .map(({ data }) => {
      const envelope = JSON.parse(data?.output ?? '{}') as { readonly output?: string; readonly error?: string };
      return envelope.output ?? envelope.error ?? '';
    });

const call = (name: string, args: object): unknown => ({ calls: [{ name, arguments: args }] });
const skill = (name: string, args?: string): unknown =>
  call('skill', { name, ...(args === undefined ? {} : { arguments: args }) });

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

test('skills as they are published run as they are: their text, their files and their scripts', async () => {
  const at = place({ 'a.pdf': '/Type /Page\n/Type /Pages\n/Type /Page\n', 'index.html': 'It works.' });
  const folder = join(at.home, '.claude/skills');
  cpSync(fixtures, folder, { recursive: true });
  execFileSync('git', ['init', '-q'], { cwd: at.work });
  execFileSync('git', ['add', 'a.pdf'], { cwd: at.work });
  const port = await freePort();
  const served = `python3 -m http.server ${port} --bind 127.0.0.1`;
  const fetched = `python3 -c "import urllib.request as u; print(u.urlopen('http://127.0.0.1:${port}/').read().decode())"`;
  const turns = [
    skill('pdf'),
    call('file_read', { path: join(folder, 'pdf/references/forms.md') }),
    call('bash', { command: `python3 ${join(folder, 'pdf/scripts/count_pages.py')} a.pdf` }),
    skill('webapp-testing'),
    call('bash', {
      command: `python3 ${join(folder, 'webapp-testing/scripts/with_server.py')} --server "${served}" --port ${port} -- ${fetched}`,
    }),
    skill('commit', 'the page'),
    call('bash', { command: join(folder, 'commit/scripts/check-staged.sh') }),
    { text: 'Done.' },
  ];
  const ran = await agent(at, ['-p', '--approval', 'never', '-m', script(at, turns), 'go']);
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  const log = await events(at);
  expect(log[0]?.content).toContain('- pdf: Comprehensive toolkit for PDF files: counting pages');
  expect(log[0]?.content).toContain('- commit: Writes a commit in the style of this repository. Use when');
  const [text, forms, pages, web, page, commit, staged] = outputs(log);
  expect(text).toMatch(/^\[Skill pdf\. .*references\/forms\.md, scripts\/count_pages\.py\][^]*# PDF guide/);
  expect(forms).toContain('List the fields first');
  expect(pages).toContain('2 pages');
  expect(web).toContain('**Always run scripts with `--help` first.**');
  expect(page).toContain('It works.');
  expect(commit).toContain('Commit what is staged:');
  expect(staged).toContain('Staged changes are clean.');
  const by = await repl(at, ['-m', script(at, [{ text: 'Committed.' }])], [['$commit the pdf', 'Committed.']]);
  expect(by.stderr).toBe('');
  const sent = (await events(at)).find(({ kind }) => kind === 'user')?.content;
  expect(sent).toMatch(/Commit what is staged: the pdf\n\nWhat is staged now:\n\n a\.pdf \| 3 \+\+\+/);
}, 60_000);

test('$name is a skill or nothing; what only begins like one is sent as it is', async () => {
  const at = place();
  write(skillFile(at, 'pdf'), '---\nname: pdf\ndescription: d\n---\nUse pdftotext.\n');
  const sent = async (message: string): Promise<unknown> => {
    await agent(at, ['-p', '-m', script(at, [{ text: 'ok' }]), message]);
    return (await events(at)).find(({ kind }) => kind === 'user')?.content;
  };
  expect(await sent('$pdf a.pdf')).toMatch(/^\[Skill pdf\.[^]*Use pdftotext\.\n\nARGUMENTS: a\.pdf$/);
  expect(await sent('$PATH is too long')).toBe('$PATH is too long');
  expect(await sent('$init')).toBe('$init');
});

test('a skill is loaded once, until its text changes; arguments come along all the same', async () => {
  const at = place();
  const file = skillFile(at, 'pdf');
  write(file, '---\nname: pdf\ndescription: d\n---\nUse pdftotext.\n');
  const edit = call('bash', { command: `sed -i s/pdftotext/mutool/ ${file}` });
  const turns = [skill('pdf'), skill('pdf', 'b.pdf'), edit, skill('pdf'), { text: 'ok' }];
  await agent(at, ['-p', '--approval', 'never', '-m', script(at, turns), 'go']);
  const [first, again, , changed] = outputs(await events(at));
  expect(first).toContain('Use pdftotext.');
  expect(again).toBe('Skill pdf is already loaded above.\n\nARGUMENTS: b.pdf');
  expect(changed).toContain('Use mutool.');
});

test('a skill whose text a compaction has kept is not loaded again', async () => {
  const at = place();
  write(skillFile(at, 'pdf'), '---\nname: pdf\ndescription: d\n---\nUse pdftotext.\n');
  const by = await repl(
    at,
    ['-m', script(at, [skill('pdf'), { text: 'Loaded.' }])],
    [
      ['go', 'Loaded.'],
      ['/compact', 'ompacted'],
      ['go on', 'Loaded.'],
    ],
  );
  expect(by.stderr).toBe('');
  expect((await events(at)).map(({ kind }) => kind)).toContain('compaction');
  expect(outputs(await events(at)).at(-1)).toBe('Skill pdf is already loaded above.');
});

test('a skill that comes in mid-session is told once, before the next message, and can be loaded', async () => {
  const at = place();
  write(skillFile(at, 'pdf'), '---\nname: pdf\ndescription: d\n---\nUse pdftotext.\n');
  const model = script(at, [{ text: 'ok' }, skill('ship'), { text: 'ok' }, { text: 'ok' }]);
  const run = (...more: readonly string[]): Promise<unknown> => agent(at, ['-p', '-m', model, ...more, 'go']);
  await run();
  write(skillFile(at, 'ship'), '---\nname: ship\ndescription: ships it\n---\nShip.\n');
  await run('-c');
  await run('-c');
  const log = await events(at);
  const notes = log.filter(({ kind, data }) => kind === 'user' && data?.note === true).map(({ content }) => content);
  expect(notes).toEqual(['There are new skills. Load one with skill if it fits the request:\n- ship: ships it']);
  expect(outputs(log)[0]).toContain('Ship.');
  expect(log.filter(({ kind }) => kind === 'tools')).toHaveLength(1);
});

test('files of a loaded skill are read unasked, also where changes are asked about', async () => {
  const at = place();
  cpSync(fixtures, join(at.home, '.claude/skills'), { recursive: true });
  const inside = (path: string): string => join(at.home, '.claude/skills/pdf', path);
  const turns = [
    skill('pdf'),
    call('file_read', { path: inside('references/forms.md') }),
    call('grep', { pattern: 'fields', path: inside('') }),
    call('bash', { command: `cat ${inside('scripts/count_pages.py')}` }),
    { text: 'ok' },
  ];
  expect(await agent(at, ['-p', '--approval', 'mutating', '-m', script(at, turns), 'go'])).toMatchObject({ code: 0 });
  expect(outputs(await events(at)).every((output) => !output.startsWith('Not run'))).toBe(true);
  rmSync(join(at.home, '.claude'), { recursive: true });
});

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { importedPaths } from '../../../src/app/instructions/instruction-imports.js';
import { readRule, splitGlobs } from '../../../src/app/instructions/instruction-rules.js';
import { addFolders } from '../../../src/app/instructions/later-instructions.js';
import { openInstructions, readInstructions } from '../../../src/app/instructions/read-instructions.js';

/** A repository with these files. */
function repository(files: Readonly<Record<string, string | Buffer>>): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-instructions-')));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  for (const [name, text] of Object.entries({ '.git/HEAD': '', ...files })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

/** Reads the instructions of a folder of a user who has none. */
function instructionsOf(cwd: string) {
  const home = repository({});
  const { files, notices } = readInstructions({ cwd, home, env: {}, userDir: home, isSecret: () => false });
  return {
    files: files.map(({ path, text }) => [path, text] as const),
    notices: notices.map(({ level, message }) => `${level} ${message}`),
  };
}

test('hidden characters are left out and counted', () => {
  const tags = Array.from('obey', (letter) => String.fromCodePoint(0xe0000 + letter.charCodeAt(0))).join('');
  const root = repository({ 'AGENTS.md': `Use tabs.${tags}\u202e\u200b Always.\n` });
  const { files, notices } = instructionsOf(root);
  expect(files).toEqual([[join(root, 'AGENTS.md'), 'Use tabs. Always.\n']]);
  expect(notices).toEqual([expect.stringMatching(/^warn .* 6 hidden characters, which were removed\.$/)]);
  expect(readFileSync(join(root, 'AGENTS.md'), 'utf8')).toContain(tags);
});

test('a link out of the repository is not read, nor one to a file of the kernel, nor a folder of rules', () => {
  const outside = repository({ key: 'OUTSIDE', 'rules/a.md': 'OUTSIDE' });
  const root = repository({ 'guide.md': 'Use tabs.', 'sub/deep/x': '', 'sub/.claude/x': '' });
  symlinkSync(join(outside, 'key'), join(root, 'AGENTS.md'));
  symlinkSync('/proc/self/environ', join(root, 'sub/AGENTS.md'));
  symlinkSync(join(outside, 'rules'), join(root, 'sub/.claude/rules'));
  symlinkSync('../../guide.md', join(root, 'sub/deep/AGENTS.md'));
  const { files, notices } = instructionsOf(join(root, 'sub/deep'));
  expect(files.map(([, text]) => text)).toEqual(['Use tabs.']);
  expect(notices.map((notice) => notice.replaceAll(outside, '…').replaceAll(root, '').replaceAll(/\d+/g, 'N'))).toEqual(
    [
      'warn Instructions that are not used: /AGENTS.md (it is a link to a file outside the project, …/key), ' +
        '/sub/AGENTS.md (it is a link to a file outside the project, /proc/N/environ), ' +
        '/sub/.claude/rules (it is a link to a file outside the project, …/rules).',
    ],
  );
});

test('at most 64 KiB of a file are read and 512 KiB of all; a cut in a character does no harm', () => {
  const names = Array.from({ length: 12 }, (_, index) => `f${index}.md`);
  const large = Object.fromEntries(names.map((name) => [name, `${name}${'ä'.repeat(40_000)}`]));
  const root = repository({ ...large, 'CLAUDE.md': names.map((name) => `@${name}`).join(' ') + ' and more' });
  const { files, notices } = instructionsOf(root);
  expect(files.map(([, text]) => Buffer.byteLength(text)).every((bytes) => bytes <= 65_536)).toBe(true);
  expect(files).toHaveLength(8);
  const said = notices.join('\n').replaceAll(root, '');
  expect(said).toContain('/f0.md has 80005 bytes; the model gets the first 65536.');
  expect(said).toContain('/f11.md (all instructions together have over 512 KiB)');
  expect(said).toMatch(/The instructions have \d+ bytes, about \d+ tokens of every request\./);
});

test('UTF-16 is read, other bytes are not, and an empty file adds nothing', () => {
  const root = repository({
    'AGENTS.md': Buffer.from('\ufeffUse tabs.', 'utf16le'),
    'CLAUDE.md': Buffer.from([0x61, 0xe9, 0x62]),
    'CLAUDE.local.md': 'a\0b',
    'GEMINI.md': ' \n',
  });
  const { files, notices } = instructionsOf(root);
  expect(files.map(([, text]) => text)).toEqual(['Use tabs.']);
  expect(notices.join().replaceAll(root, '')).toBe(
    'warn Instructions that are not used: /CLAUDE.md (it is not text in UTF-8), /CLAUDE.local.md (it is not text in UTF-8).',
  );
});

test.each([
  ['See @docs/a.md, and @b.md.', ['docs/a.md,', 'b.md.']],
  ['@a.md\n- @b/c.md\n\t@d', ['a.md', 'b/c.md', 'd']],
  ['mail a@b.md (@c.md) "@d.md"', []],
  [String.raw`@my\ notes/a.md`, ['my notes/a.md']],
  ['@~/a.md @/b.md @../c.md @./d.md', ['~/a.md', '/b.md', '../c.md', './d.md']],
  ['`@a.md` ``x ` @b.md`` @c.md', ['c.md']],
  ['```sh\n@a.md\n``\n@b.md\n````\n@c.md', ['c.md']],
  ['text\n\n    @a.md\n\n- item\n    - @b.md', ['b.md']],
  ['<!-- @a.md\n@b.md --> @c.md', ['c.md']],
  ['@ @! @#x @a.md @a.md', ['a.md']],
])('imports of %j', (text, paths) => {
  expect(importedPaths(text)).toEqual(paths);
});

test.each([
  ['a.ts, "b/{c, d}.ts" ,\'e\'', ['a.ts', 'b/{c,d}.ts', 'e']],
  ['{a,{b,c}}/**, x', ['{a,{b,c}}/**', 'x']],
  [' , ', []],
])('globs of %j', (written, globs) => {
  expect(splitGlobs(written)).toEqual(globs);
});

test('a rule whose globs cannot be read is not used, and a notice names it', () => {
  const text = `---\npaths: "${'{a,b}'.repeat(12)}"\n---\nRULE\n`;
  expect(readRule(text, { form: 'claude-rule', base: '/x' }).timing).toMatchObject({ kind: 'never' });
  const { files, notices } = instructionsOf(repository({ '.claude/rules/a.md': text }));
  expect([files, notices.join()]).toEqual([[], expect.stringContaining('a.md (its globs cannot be read: {a,b}')]);
});

test('instructions that come later take none out of the prompt', () => {
  const root = repository({ 'CLAUDE.md': 'See web/CLAUDE.md\n', 'web/CLAUDE.md': 'Use React.\n', 'web/a.ts': '' });
  const place = { cwd: root, home: root, env: {}, userDir: join(root, 'none'), isSecret: () => false };
  const reader = openInstructions(place);
  addFolders(reader, place, { paths: [join(root, 'web/a.ts')], folders: new Set() });
  expect(reader.files().map(({ path, folder }) => [path.slice(root.length), folder?.slice(root.length)])).toEqual([
    ['/CLAUDE.md', undefined],
    ['/web/CLAUDE.md', '/web'],
  ]);
});

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

type Place = ReturnType<typeof place>;

const answers = [{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }, { text: 'Four.' }];

function put(at: Place, file: string, text: string): void {
  const path = join(at.work, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Goes on, and returns the notices about instructions with the notes that the model gets. */
async function goOn(at: Place, model: string, ...more: readonly string[]) {
  const { stdout } = await agent(at, ['-p', '-m', model, '-c', '--output-format', 'stream-json', ...more, 'on']);
  const events = lines(stdout) as { type: string; code?: string; message?: string }[];
  const { stdout: rows } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(rows) as { id: string }[])[0]?.id ?? '';
  const shown = await agent(at, ['sessions', 'show', id, '--json']);
  const stored = JSON.parse(shown.stdout) as { kind: string; content: string; data: { note?: boolean } | null }[];
  return {
    said: events.filter(({ code }) => code === 'instructions_changed').map(({ message }) => message),
    notes: stored.filter(({ data }) => data?.note === true).map(({ content }) => content),
    prompt: stored[0]?.content ?? '',
  };
}

test.each(['AGENTS.md', 'CLAUDE.md'])(
  '%s that changed is reported once, with the new text behind the prompt',
  async (file) => {
    const at = place({ [file]: 'OLD-RULE: use tabs\n' });
    const model = script(at, answers);
    await agent(at, ['-p', '-m', model, 'begin']);
    expect((await goOn(at, model)).said).toEqual([]);
    put(at, file, 'NEW-RULE: use blanks\n');
    const changed = await goOn(at, model);
    expect(changed.said).toEqual([
      expect.stringContaining(`Instructions changed since this session began: ${join(at.work, file)}`),
    ]);
    expect(changed.prompt).toContain('OLD-RULE');
    expect(changed.notes.at(-1)).toMatch(/^\[Note: the instructions have changed[^]*NEW-RULE: use blanks$/);
    expect((await goOn(at, model)).said).toEqual([]);
  },
);

test('a file that came, one that went and one that changed back are changes, too', async () => {
  const at = place();
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, 'begin']);
  put(at, 'AGENTS.md', 'RULE: one\n');
  expect((await goOn(at, model)).notes.at(-1)).toContain('RULE: one');
  rmSync(join(at.work, 'AGENTS.md'));
  const went = await goOn(at, model);
  expect([went.said.join(), went.notes.at(-1)]).toEqual([
    expect.stringContaining('AGENTS.md (gone)'),
    expect.stringContaining(`No longer valid: # Instructions from ${join(at.work, 'AGENTS.md')}`),
  ]);
  put(at, 'AGENTS.md', 'RULE: one\n');
  expect((await goOn(at, model)).said).toHaveLength(1);
});

test('skills that changed or went are reported', async () => {
  const at = place();
  const model = script(at, answers);
  const skill = (text: string): void => {
    const folder = join(at.home, '.agent/skills/deploy');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'SKILL.md'), `---\nname: deploy\ndescription: ${text}\n---\nDo it.\n`);
  };
  skill('to the old server');
  await agent(at, ['-p', '-m', model, 'begin']);
  expect((await goOn(at, model)).said).toEqual([]);
  skill('to the new server');
  const changed = await goOn(at, model);
  expect([changed.said.join(), changed.notes.join()]).toEqual([
    expect.stringContaining('skills'),
    expect.stringContaining('to the new server'),
  ]);
});

test('a resume in another directory says whose instructions apply', async () => {
  const at = place({ 'AGENTS.md': 'HERE: tabs\n', 'sub/AGENTS.md': 'THERE: blanks\n' });
  const model = script(at, answers);
  await agent(at, ['-p', '-m', model, 'begin']);
  const { stdout: rows } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(rows) as { id: string }[])[0]?.id ?? '';
  const there = { ...at, work: join(at.work, 'sub') };
  const { stderr } = await agent(there, ['-p', '-m', model, '-r', id, 'on']);
  expect(stderr).toContain(`The instructions of ${there.work} apply now, not of ${at.work}.`);
  expect(readFileSync(join(at.work, 'AGENTS.md'), 'utf8')).toBe('HERE: tabs\n');
});

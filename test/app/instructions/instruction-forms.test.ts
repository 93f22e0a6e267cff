import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join, normalize, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFileNotes } from '../../../src/app/instructions/later-instructions.js';
import { openInstructions, readInstructions } from '../../../src/app/instructions/read-instructions.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { formsFolder, printCounts, type Use } from '../../brought-forms.js';

const forms = formsFolder('instructions');

/** The parts of a form that reach the model. Paths are relative to the project, or begin with `~/`. */
interface Given {
  /** Files of the system prompt, in order. */
  readonly prompt: readonly string[];
  /** Files in the note behind a call that reads the file. */
  readonly later: Readonly<Record<string, readonly string[]>>;
  readonly listed: readonly string[];
  readonly unused: readonly string[];
}

interface Expected extends Given {
  readonly about: string;
  readonly cwd?: string;
  readonly links?: Readonly<Record<string, string>>;
  readonly repositories?: readonly string[];
}

/** The log of a session whose last call read a file. */
function readingLog(path: string): readonly Event[] {
  const row = (seq: number, kind: string, content: string, data: unknown): Event => ({
    seq,
    kind,
    content,
    data,
    createdAt: 1,
  });
  const output = JSON.stringify({ output: '' });
  return [
    row(1, 'user', 'go', null),
    row(2, 'tool_call', '', {
      id: 'c',
      type: 'function',
      function: { name: 'file_read', arguments: '{}' },
      response_id: 'r',
    }),
    row(3, 'tool_result', '', {
      tool_call_id: 'c',
      name: 'file_read',
      output,
      success: true,
      files: [{ path, sha256: 'x' }],
    }),
  ];
}

function given(form: string, { cwd = '.', links = {}, repositories = [], later }: Expected): Given {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-form-')));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  cpSync(join(forms, form), root, { recursive: true });
  const [home, work] = [join(root, 'home'), join(root, 'work')];
  for (const folder of [home, join(work, '.git'), ...repositories.map((name) => join(work, name, '.git'))])
    mkdirSync(folder, { recursive: true });
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(work, name));
  const place = { cwd: join(work, cwd), home, env: {}, userDir: join(home, '.agent'), isSecret: () => false };
  const short = (path: string): string =>
    path.startsWith(`${home}/`) ? `~/${relative(home, path)}` : path.startsWith(root) ? relative(work, path) : path;
  const { files, list } = readInstructions(place);
  return {
    prompt: files.map(({ path }) => short(path)),
    later: Object.fromEntries(
      Object.keys(later).map((file) => {
        const notes = createFileNotes(place, () => undefined)(readingLog(join(work, file))).join('\n');
        return [file, [...notes.matchAll(/^# Instructions from (.+)$/gm)].map(([, path = '']) => short(path))];
      }),
    ),
    listed: list
      .split('\n')
      .filter((line) => line.startsWith('- '))
      .map((line) => short(line.slice(2))),
    unused: openInstructions(place)
      .unused()
      .map(({ path }) => (isAbsolute(path) ? short(normalize(path)) : path)),
  };
}

/** Returns what was given as a list of facts, to count how much of it is as expected. */
function facts({ prompt, later, listed, unused }: Given): readonly string[] {
  return [
    ...prompt.map((path) => `prompt ${path}`),
    ...Object.entries(later).flatMap(([file, paths]) => [
      `${file}: ${paths.length}`,
      ...paths.map((path) => `${file}: ${path}`),
    ]),
    ...listed.map((line) => `listed ${line}`),
    ...unused.map((path) => `unused ${path}`),
  ];
}

test('instructions in the forms of other programs are given whole', () => {
  const uses: Use[] = [];
  const names = readdirSync(forms).toSorted();
  for (const name of names) {
    const expected = JSON.parse(readFileSync(join(forms, name, 'expected.json'), 'utf8')) as Expected;
    const { prompt, later, listed, unused } = expected;
    const got = given(name, expected);
    const wanted = facts({ prompt, later, listed, unused });
    const met = wanted.filter((fact) => facts(got).includes(fact)).length;
    uses.push(met === 0 ? 'not' : met === wanted.length && facts(got).length === met ? 'whole' : 'part');
    expect.soft({ name, ...got }).toEqual({ name, prompt, later, listed, unused });
  }
  printCounts('instructions', uses);
  expect(uses.filter((use) => use !== 'whole')).toEqual([]);
});

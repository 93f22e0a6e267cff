import { execFileSync } from 'node:child_process';
import { linkSync, lstatSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseReverts, listReverts } from '../../../src/features/undo/choose-reverts.js';
import { act } from '../../../src/features/undo/revert-plan.js';
import { put, type Step, treeOf, undoRig, type UndoRig } from './undo-rig.js';

/** `UNDO_RUNS=500` tries more; a failure prints its seed and the calls. */
const runs = Number(process.env['UNDO_RUNS'] ?? 6);
const seed = Number(process.env['UNDO_SEED'] ?? 20261126);

const places = [
  'a.txt',
  'run.sh',
  'hard.txt',
  'd',
  'd/x.txt',
  'd/sub',
  'd/sub/y.txt',
  'k.log',
  'ign',
  'ign/f.txt',
  'ign/deep/h.txt',
  '../out',
  '../out/o.txt',
  'far',
  'far/o.txt',
  'to-f',
  'nest',
  'nest/n/1.txt',
  'new',
  'new/n.txt',
  'with space.txt',
] as const;
const path = fc.constantFrom(...places);
const quoted = path.map((name) => `'${name}'`);
const text = fc.constantFrom('', 'one\n', 'two\nlines\n', 'x'.repeat(5000));
const mode = fc.constantFrom('600', '644', '755', '4755', '700');

const command = fc.oneof(
  quoted.map((at) => `rm -rf ${at}`),
  quoted.map((at) => `rm -f ${at}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `mv ${from} ${to}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `mv -T ${from} ${to}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `cp -r ${from} ${to}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `cp -rt ${to} ${from}`),
  fc.tuple(text, quoted).map(([words, to]) => `printf '${words.replaceAll('\n', '\\n')}' > ${to}`),
  fc.tuple(text, quoted).map(([words, to]) => `printf '${words.replaceAll('\n', '\\n')}' >> ${to}`),
  fc.tuple(quoted, quoted).map(([one, two]) => `echo tee | tee ${one} ${two} > /dev/null`),
  quoted.map((to) => `cat > ${to} <<'END'\nhere\nEND`),
  quoted.map((at) => `sed -i 's/o/0/' ${at}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `ln -s ${from} ${to}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `ln -sfn ${from} ${to}`),
  fc.tuple(quoted, quoted).map(([from, to]) => `ln -f ${from} ${to}`),
  quoted.map((at) => `mkdir -p ${at}`),
  quoted.map((at) => `rmdir ${at}`),
  fc.tuple(mode, quoted).map(([bits, at]) => `chmod ${bits} ${at}`),
  quoted.map((at) => `touch ${at}`),
  quoted.map((at) => `truncate -s 3 ${at}`),
  quoted.map((at) => `cd ${at} && echo in > inside.txt`),
  quoted.map((at) => `find ${at} -type f -delete`),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .array(command, { minLength: 1, maxLength: 4 })
      .map((all): Step => ['bash', { command: all.join('; ') }]),
  },
  { weight: 1, arbitrary: fc.tuple(path, text).map(([at, content]): Step => ['file_write', { path: at, content }]) },
  {
    weight: 1,
    arbitrary: path.map((at): Step => ['file_edit', { path: at, old_string: 'o', new_string: 'O' }]),
  },
);

async function playground(): Promise<UndoRig> {
  const rig = await undoRig({
    '.gitignore': 'ign/\n*.log\n',
    'a.txt': 'one\n',
    'd/x.txt': 'two\n',
    'd/sub/y.txt': 'o\n',
  });
  const { root } = rig;
  execFileSync('git', ['init', '-q'], { cwd: root });
  put(join(root, 'run.sh'), 'echo one\n', 0o755);
  put(join(root, 'k.log'), 'one\n');
  put(join(root, 'ign/f.txt'), 'one\n');
  put(join(root, 'ign/deep/h.txt'), 'one\n', 0o640);
  put(join(dirname(root), 'out/o.txt'), 'one\n');
  put(join(root, 'nest/.gitignore'), 'n/\n');
  put(join(root, 'nest/n/1.txt'), 'one\n');
  mkdirSync(join(root, 'nest/.git'));
  put(join(root, 'nest/.git/HEAD'), 'ref: refs/heads/main\n');
  linkSync(join(root, 'd/x.txt'), join(root, 'hard.txt'));
  symlinkSync('../out', join(root, 'far'));
  symlinkSync('ign/f.txt', join(root, 'to-f'));
  return rig;
}

/** Everything around the workspace: types, contents, modes, targets of links, groups of hard links. */
function wholeTree(rig: UndoRig): Readonly<Record<string, string>> {
  const top = dirname(rig.root);
  const groups = new Map<number, string>();
  return Object.fromEntries(
    Object.entries(treeOf(top))
      .filter(
        ([name]) => !name.startsWith('agent.db') && !name.startsWith('work/.git/') && !name.startsWith('work/far/'),
      )
      .map(([name, what]) => {
        const stats = lstatSync(join(top, name));
        if (stats.isDirectory()) return [name, `folder ${(stats.mode & 0o7777).toString(8)}`];
        if (stats.nlink > 1 && !groups.has(stats.ino)) groups.set(stats.ino, name);
        return [name, stats.nlink > 1 ? `${what} = ${groups.get(stats.ino)}` : what];
      }),
  );
}

/** Lists and reverts as the commands do; returns all that they say of differences. */
async function revert(rig: UndoRig, kind: 'undo' | 'redo', argument: string): Promise<readonly string[]> {
  const choice = chooseReverts(rig.session.events(), kind, argument);
  if ('problem' in choice) return [choice.problem];
  const { lines } = await listReverts(rig.session, choice.reverts, choice.passed);
  const said = lines.filter((line) => /^ {2}(?:leave|There may be more)|stays\.$/.test(line));
  for (const item of choice.reverts)
    said.push(...(await act(rig.session, item)).skipped.map((left) => `${left.path}: ${left.reason}`));
  return said.filter((line) => !line.endsWith('it is already like that'));
}

function differences(one: Readonly<Record<string, string>>, two: Readonly<Record<string, string>>): readonly string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(two)])]
    .filter((name) => one[name] !== two[name])
    .map((name) => `${name}: ${one[name]} | ${two[name]}`);
}

/** Returns true if a sentence names the path or a folder it is in, or says that there may be more. */
function isNamed(name: string, said: readonly string[]): boolean {
  const parts = name.split('/').slice(1);
  const named = parts.map((_part, index) => `${parts.slice(0, index + 1).join('/')}:`);
  return said.some((line) => line.includes('There may be more') || named.some((at) => line.includes(at)));
}

test(
  'what random calls did is undone and redone, or the difference is named',
  { timeout: 30_000 + runs * 10_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), fc.boolean(), async (steps, atOnce) => {
        const rig = await playground();
        const trees = [wholeTree(rig)];
        const results = [];
        for (const one of steps) {
          results.push(...(await rig.run([one])));
          trees.push(wholeTree(rig));
        }
        const calls = results.map(({ seq, data }) => ({
          seq,
          changed: 'changes' in (data as object) || 'folders' in (data as object),
        }));
        const check = (said: readonly string[], index: number, what: string): void => {
          const left = differences(trees[index] ?? {}, wholeTree(rig));
          const unnamed = left.filter((line) => !isNamed(line.slice(0, line.indexOf(': ')), said));
          expect(unnamed, `${what} of ${JSON.stringify(steps)} said ${said.join(' / ')}`).toEqual([]);
        };
        const said: string[] = [];
        if (atOnce) {
          said.push(...(await revert(rig, 'undo', 'all')));
          check(said, 0, 'undo all');
        }
        for (const [index, { seq, changed }] of [...calls.entries()].toReversed())
          if (!atOnce && changed) {
            said.push(...(await revert(rig, 'undo', String(seq))));
            check(said, index, `undo ${index}`);
          }
        if (!calls.some(({ changed }) => changed)) return;
        said.push(...(await revert(rig, 'redo', 'all')));
        check(said, steps.length, 'redo all');
      }),
      { numRuns: runs, seed, endOnFailure: process.env['UNDO_SHRINK'] === undefined },
    );
  },
);

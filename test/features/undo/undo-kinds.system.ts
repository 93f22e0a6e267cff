import { execFileSync } from 'node:child_process';
import { chmodSync, linkSync, lstatSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { chooseReverts } from '../../../src/features/undo/choose-reverts.js';
import { act } from '../../../src/features/undo/revert-plan.js';
import { put, treeOf, undoRig, type UndoRig } from './undo-rig.js';

const ignored = { '.gitignore': 'ign/\n*.log\n' };

/** What each command may change: ignored files, a folder outside, a nested repository, links, files of each kind. */
async function playground(): Promise<UndoRig> {
  const rig = await undoRig({ ...ignored, 'a.txt': 'a\n', 'b.txt': 'b\n', 'd/x.txt': 'x\n', 'd/sub/y.txt': 'y\n' });
  const { root } = rig;
  execFileSync('git', ['init', '-q'], { cwd: root });
  put(join(root, 'k.log'), 'old\n');
  put(join(root, 'ign/f.txt'), 'old\n');
  put(join(root, 'ign/g.txt'), 'g\n');
  put(join(root, 'ign/deep/h.txt'), 'h\n', 0o640);
  put(join(dirname(root), 'out/o.txt'), 'o\n');
  put(join(root, 'nest/.gitignore'), 'n/\n');
  put(join(root, 'nest/n/1.txt'), '1\n');
  execFileSync('git', ['init', '-q'], { cwd: join(root, 'nest') });
  symlinkSync('../out', join(root, 'far'));
  symlinkSync('ign/f.txt', join(root, 'to-f'));
  symlinkSync('nowhere.txt', join(root, 'dangling'));
  linkSync(join(root, 'd/x.txt'), join(root, 'hard.txt'));
  linkSync(join(root, 'd/x.txt'), join(root, 'd/hard.txt'));
  mkdirSync(join(root, 'ign/empty'));
  return rig;
}

/** Everything below the folder around the workspace, with modes of folders and groups of hard links. */
function wholeTree(rig: UndoRig): Readonly<Record<string, string>> {
  const top = dirname(rig.root);
  const groups = new Map<number, string>();
  return Object.fromEntries(
    Object.entries(treeOf(top))
      .filter(([name]) => !name.startsWith('agent.db') && !name.startsWith('work/.git/'))
      .map(([name, what]) => {
        const stats = lstatSync(join(top, name));
        if (stats.isDirectory()) return [name, `folder ${(stats.mode & 0o7777).toString(8)}`];
        if (stats.nlink > 1 && !groups.has(stats.ino)) groups.set(stats.ino, name);
        return [name, stats.nlink > 1 ? `${what} = ${groups.get(stats.ino)}` : what];
      }),
  );
}

async function revertAll(rig: UndoRig, kind: 'undo' | 'redo'): Promise<readonly string[]> {
  const choice = chooseReverts(rig.session.events(), kind, 'all');
  if ('problem' in choice) return [choice.problem];
  const skipped: string[] = [];
  for (const revert of choice.reverts)
    skipped.push(...(await act(rig.session, revert)).skipped.map(({ path, reason }) => `${path}: ${reason}`));
  return skipped;
}

async function thereAndBack(commands: readonly string[]): Promise<void> {
  const rig = await playground();
  const before = wholeTree(rig);
  const results = await rig.run(commands.map((command) => ['bash', { command }]));
  const after = wholeTree(rig);
  expect(after, 'the commands change something').not.toEqual(before);
  expect(await revertAll(rig, 'undo'), results.map(({ content }) => content).join('\n')).toEqual([]);
  expect(wholeTree(rig), 'undone').toEqual(before);
  expect(await revertAll(rig, 'redo')).toEqual([]);
  expect(wholeTree(rig), 'redone').toEqual(after);
}

/** Ways in which a command names what it changes. */
const named: Readonly<Record<string, string>> = {
  'appends to an ignored file': 'echo more >> k.log',
  'edits an ignored file in place': "sed -i 's/old/new/' k.log",
  'removes an ignored file': 'rm k.log',
  'copies over an ignored file': 'cp a.txt ign/f.txt',
  'copies into an ignored folder': 'cp a.txt ign/',
  'copies into a folder that an option names': 'cp -t ign a.txt b.txt',
  'moves into a folder outside': 'mv a.txt ../out',
  'moves over a file outside': 'mv a.txt ../out/o.txt',
  'copies into the folder above': 'cp -r d a.txt ..',
  'writes a new file outside': 'echo new > ../out/new.txt',
  'writes a new folder outside': 'mkdir -p ../fresh/deep && echo x > ../fresh/deep/x.txt',
  'writes by a program of the pipe': 'echo x | tee ign/f.txt ../out/t.txt > /dev/null',
  truncates: 'truncate -s 0 ign/f.txt',
  'writes by dd': 'dd if=a.txt of=ign/f.txt status=none',
  installs: 'install -m 755 a.txt ign/tool',
  'removes an ignored folder': 'rm -r ign',
  'removes by a wildcard': 'rm ign/*.txt',
  'removes by a loop over a wildcard': 'for f in ign/*.txt; do rm "$f"; done',
  'removes by a variable': 'D=ign; rm "$D/f.txt" ${D}/g.txt',
  'writes by an exported variable': 'export OUT=../out; echo 1 > $OUT/o.txt; echo 2 > "$OUT/new.txt"',
  'writes by a declared variable': 'declare -x OUT=../out && cp a.txt "${OUT}/o.txt"',
  'writes by a variable made of another': 'TOP=..; OUT="$TOP/out"; rm -f $OUT/o.txt',
  'writes by two variables in one word': 'A=../o; B=ut/o; echo 1 > "$A$B.txt"',
  'writes by a variable of a program in it': 'export OUT=../out; sh -c \'echo 1 > "$OUT/o.txt"\'',
  'writes by a variable in front of a program': 'OUT=../out sh -c \'echo 1 > "$OUT/o.txt"\'',
  'writes by a variable with a default': 'echo 1 > "${OUT:-../out}/o.txt"',
  'writes by a variable in a loop': 'for OUT in ign ../out; do echo 1 > $OUT/o.txt; done',
  'deletes all of a nested repository': 'find nest -type f -delete',
  'removes what a finder finds': "find ign -name '*.txt' -delete",
  'removes in the whole tree by a finder': "find . -name '*.log' -delete",
  'removes what another command lists': 'ls ign/*.txt | xargs rm',
  'changes the folder first': 'cd ign && echo new > f.txt && rm g.txt',
  'changes to a folder outside': 'cd ../out && rm o.txt',
  'changes the folder in a subshell': '(cd ign; rm f.txt)',
  'runs another shell': "bash -c 'echo new > ign/f.txt; rm k.log'",
  'runs another shell with a folder': "cd ign; sh -c 'rm f.txt'",
  'writes by a here-document': "cat > ign/new.txt <<'END'\none\nEND",
  'runs a program in quotes': "node -e \"require('fs').writeFileSync('ign/f.txt', 'js')\"",
  'runs a program of a here-document': "node - <<'END'\nrequire('fs').rmSync('ign/f.txt')\nEND",
  'writes through a link to a file': 'echo new > to-f',
  'writes through a link to nothing': 'echo new > dangling',
  'removes in a folder that is a link': 'rm far/o.txt',
  'copies into a folder that is a link': 'cp a.txt far/',
  'removes in a nested repository': 'rm nest/n/1.txt',
  'removes a nested repository': 'rm -rf nest',
  'moves a nested repository': 'mv nest ign/',
  'makes an archive and unpacks it': 'mkdir ign/un && tar cf ign/a.tar d && tar xf ign/a.tar -C ign/un',
  'applies a patch': "printf -- '--- a/a.txt\\n+++ b/a.txt\\n@@ -1 +1 @@\\n-a\\n+A\\n' > ign/p && patch -s a.txt ign/p",
  'makes links': 'ln -s f.txt ign/l && ln ign/f.txt ign/hard',
  'links over a file': 'ln -f ign/f.txt k.log',
  'makes and removes empty folders': 'rmdir ign/empty && mkdir ign/other',
  'changes modes': 'chmod 700 ign ign/deep && chmod 4755 ign/f.txt',
  'writes by a brace': 'touch ign/{1,2}.txt && rm ign/{f,g}.txt',
  'uses the home folder': 'echo x > ~/in-home.txt',
  'uses the absolute path': 'rm "$PWD/ign/f.txt"',
};

test.each(Object.entries(named))('a command that %s is undone and redone', async (_name, command) => {
  await thereAndBack([command]);
});

const kinds: Readonly<Record<string, readonly string[]>> = {
  'a folder becomes a file': ['rm -r d; echo x > d'],
  'a file becomes a folder': ['rm a.txt; mkdir -p a.txt/deep; echo x > a.txt/deep/f'],
  'a file becomes a link': ['ln -sf b.txt a.txt'],
  'a link becomes a file': ['rm to-f; echo x > to-f'],
  'a folder becomes a link': ['mv d e; ln -s e d'],
  'a link becomes a folder': ['rm far; mkdir far; echo x > far/x'],
  'a folder becomes a file and a folder again, in three calls': [
    'rm -r d; echo x > d',
    'echo y >> d',
    'rm d; mkdir d; echo z > d/z',
  ],
  'files in a circle': ['mv a.txt t; mv b.txt a.txt; mv t b.txt'],
  'folders in a circle': ['mv d t; mv ign d; mv t ign', 'chmod 711 d; mv d t; mv ign d; mv t ign'],
  'a file moves into a folder of its name': ['mv a.txt t; mkdir a.txt; mv t a.txt/a.txt'],
  'a folder moves out of the way of a file': ['mv d/sub s; rm -r d; mv s/y.txt d; rmdir s'],
  'a hard link is changed in place': ['echo more >> d/x.txt', 'echo more >> hard.txt'],
  'a hard link is split': ['sed -i s/x/X/ hard.txt'],
  'a hard link is split, the contents the same': ['cp hard.txt t; mv t hard.txt'],
  'a hard link is removed': ['rm hard.txt'],
  'all names of a file are removed': ['rm hard.txt d/x.txt d/hard.txt'],
  'the mode of a hard link': ['chmod 600 d/hard.txt'],
  'a folder is locked': ['rm d/x.txt; chmod 500 d'],
  'a folder of a mode is removed': ['chmod 2750 d', 'rm -r d'],
  'an empty file and an empty folder': [': > empty; mkdir nothing'],
  'names with signs': ["echo x > 'ign/with space.txt'; echo y > 'ign/*'; echo z > \"ign/it's\""],
};

test.each(Object.entries(kinds))('%s, there and back', async (_name, commands) => {
  await thereAndBack(commands);
});

test('what cannot be brought back is named, and the rest comes back', async () => {
  const rig = await playground();
  const big = join(rig.root, 'ign/big.bin');
  put(big, Buffer.alloc(9 * 1024 * 1024));
  await rig.run([['bash', { command: 'rm ign/big.bin ign/f.txt; mkfifo ign/pipe' }]]);
  expect((await revertAll(rig, 'undo')).toSorted()).toEqual([
    `${big}: not captured: it had more than 8388608 bytes`,
    `${join(rig.root, 'ign/pipe')}: not captured: it is a pipe, a socket or a device`,
  ]);
  expect(readdirSync(join(rig.root, 'ign'))).toContain('f.txt');
});

test('a change of the mode of a folder that cannot be looked into is undone', async () => {
  const rig = await playground();
  chmodSync(join(rig.root, 'ign'), 0o755);
  await thereAndBack(['chmod 000 ign/deep']);
});

test('what other programs write to a shared folder is left to them', async () => {
  const rig = await playground();
  put(join(rig.root, 's.sh'), 'echo other > "$(dirname "$PWD")/foreign.txt"\n');
  const [result] = await rig.run([['bash', { command: 'cp a.txt ..; sh s.sh' }]]);
  expect(await revertAll(rig, 'undo')).toEqual([]);
  expect(readdirSync(dirname(rig.root)).toSorted()).toEqual(expect.arrayContaining(['foreign.txt', 'out', 'work']));
  expect(readdirSync(dirname(rig.root))).not.toContain('a.txt');
  expect(result?.data).toMatchObject({
    unwatched: `other programs write to ${dirname(rig.root)} too: only files named in the command were watched there`,
  });
});

test('names of a file that were not watched are said to be there', async () => {
  const rig = await playground();
  linkSync(join(rig.root, 'ign/g.txt'), join(rig.root, 'ign/other.txt'));
  const [result] = await rig.run([['bash', { command: 'echo more >> ign/g.txt' }]]);
  expect(result?.data).toMatchObject({
    unwatched: `${join(rig.root, 'ign/g.txt')} had other names (hard links) that were not watched`,
  });
});

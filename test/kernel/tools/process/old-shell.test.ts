import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { oldShell } from '../../../../src/kernel/tools/process/shell-file.js';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

/** Features that bash 3.2 of macOS does not have. Source: the CHANGES file of bash 4.0 to 5.2. */
const newer =
  /\b(?:declare|local|typeset) -[aAn]*[An]\b|\b(?:mapfile|readarray|coproc|BASHPID|EPOCHSECONDS|EPOCHREALTIME)\b|\bwait -[nfp]\b|\[\[ -v |\$\{\w+(?:\^\^?|,,?|@[A-Za-z])\}|&>>|;;&|;&\s|printf ['"]?%\(|\bread -[a-z]*[iN]\b|\bshopt -s (?:globstar|lastpipe)\b/;

/** Judges the commands of others, so it names all of these, and says so to the model. */
const others = /^kernel\/permissions\/|^kernel\/tools\/process\/shell-file\.ts$/;

function findings(text: string): readonly string[] {
  return text.split('\n').filter((line) => newer.test(line));
}

test('what is sent to a shell needs no bash 4', () => {
  const src = join(root, 'src');
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
    (name) =>
      name.endsWith('.ts') && !others.test(name) && /['"]-c['"]|\.sh\b/.test(readFileSync(join(src, name), 'utf8')),
  );
  expect(files.length).toBeGreaterThan(8);
  const scripts = readdirSync(join(root, 'bin')).filter((name) => name.endsWith('.sh'));
  const all = [...files.map((name) => join(src, name)), ...scripts.map((name) => join(root, 'bin', name))];
  expect(all.flatMap((file) => findings(readFileSync(file, 'utf8')))).toEqual([]);
});

test.each(['declare -A map', 'mapfile -t x', '${name^^}', 'wait -n', 'ls &>>log', 'local -n ref=$1', '[[ -v x ]]'])(
  '%s is found where it is planted',
  (line) => {
    expect(findings(`x=1\n${line}\n`)).toEqual([line]);
  },
);

test('the model is told that it writes for bash 3.2, unless another bash comes first', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shell-'));
  writeFileSync(join(folder, 'bash'), '');
  expect([
    oldShell({ PATH: '/usr/bin:/bin' }, 'darwin'),
    oldShell({ PATH: '/nowhere' }, 'darwin'),
    oldShell({ PATH: `${folder}:/usr/bin` }, 'darwin'),
    oldShell({ PATH: '/usr/bin:/bin' }, 'linux'),
  ]).toEqual([expect.stringContaining('bash 3.2'), expect.stringContaining('bash 3.2'), null, null]);
});

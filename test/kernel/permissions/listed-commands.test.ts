import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { listedCommand, listedPrograms } from '../../../src/kernel/permissions/shell/listed-commands.js';

const corpus = new URL('../../../fixtures/rehearsal/seeming-readers.json', import.meta.url);
const { commands } = JSON.parse(readFileSync(corpus, 'utf8')) as { commands: readonly string[] };

test('no command that does more than read is on the list, unless a file with the name of an option makes it do so', () => {
  const listed = commands.filter((command) => {
    const found = listedCommand(command.replaceAll(/\{(?:mark|out|run|port|esc)\}/g, 'x'));
    return found !== null && !found.wildcards;
  });
  expect(commands.length).toBeGreaterThan(200);
  expect(listed).toEqual([]);
});

test.each([
  'ls -la src',
  'cd src && ls -1 | head -5',
  'cat a.txt b.txt 2>/dev/null | grep -rn "x y" -A3 | wc -l',
  'rg -n --type ts -g "*.ts" "foo|bar" src | sort -u',
  "find . -name '*.ts' -not -path './node_modules/*' -maxdepth 3",
  "sed -n '1,20p' a.txt; sed -n 5p a.txt",
  "jq -r '.scripts | keys[]' package.json",
  'git status --short && git log --oneline -5 -- src',
  'git -C sub diff --stat HEAD~1 HEAD',
  'git --no-pager show HEAD:src/a.ts 2>&1',
  'git stash list',
  'test -f a.txt && echo yes || echo no',
  '[ -d src ] && echo "in $PWD"',
  'head -c 100 a.txt; tail -n +5 a.txt; wc -l *.txt',
  "cat <<'EOF'\nrm -rf /\nEOF",
  'cut -d: -f1 a.txt | sort | uniq -c | tr a-z A-Z',
  'diff -u a.txt b.txt; cmp a.txt b.txt',
  'command -v node; which -a node; type ls',
  'date +%s; date -u; uname -a; id -u',
  'ps aux | grep node; ps -eo pid,cmd --sort=-pid; pgrep -fl node',
  'ss -tlnp; lsof -nP -iTCP:3000 -sTCP:LISTEN; netstat -tln; ip -br addr show',
  'set -euo pipefail; sleep 1; : ; exit 1',
])('%s is on the list', (command) => {
  expect(listedCommand(command)).not.toBeNull();
});

test.each([
  ['an option that is not listed', 'ls --unknown'],
  ['the beginning of an option', 'ls --al'],
  ['a second operand that is written', 'uniq a.txt b.txt'],
  ['an expansion', 'cat $x'],
  ['a variable that may hold anything', 'echo "$OTHER"'],
  ['braces', 'cat {a,b}.txt'],
  ['an assignment', 'A=1 ls'],
  ['a subshell', '(ls)'],
  ['a loop', 'for f in a; do ls; done'],
  ['the background', 'ls &'],
  ['a path', '/bin/ls'],
  ['an unknown program', 'frobnicate'],
  ['a broken line', 'ls "'],
  ['nothing', ''],
  ['the environment of processes', 'ps auxe'],
  ['the environment of processes as a column', 'ps -eo pid,environ'],
  ['a question for names of addresses', 'lsof -i :3000'],
  ['an end of connections', 'ss -K'],
  ['a network that is set', 'ip link set eth0 down'],
  ['a history that is switched off', 'set -o history'],
])('%s is not', (_what, command) => {
  expect(listedCommand(command)).toBeNull();
});

test('a program of the list is listed without words, or says what it wants', () => {
  const needs = /^(?:sed|find|git |command|tr|printf|test|\[|netstat|lsof|ip)/;
  expect(listedPrograms().filter((name) => !needs.test(name) && listedCommand(name) === null)).toEqual([]);
  expect(listedPrograms().length).toBeLessThanOrEqual(80);
});

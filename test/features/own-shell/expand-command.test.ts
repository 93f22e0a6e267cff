import { expect, test } from 'vitest';
import { expandCommand } from '../../../src/features/own-shell/expand-command.js';
import { readAliases, readFunctions } from '../../../src/features/own-shell/shell-listings.js';

const aliases = readAliases(
  [
    "alias ll='ls -l'",
    "alias ls='ls --color'",
    "alias please='sudo '",
    "alias say='echo '\\''it is'\\'''",
    "alias up='cd .. && ll'",
    "alias open='if true; then'",
    "alias -- -='cd -'",
    'alias one=two',
    'alias two=one',
    "alias -g G='| grep'",
    "alias esc=$'a\\nb'",
    "alias fishy 'git log'",
    '',
  ].join('\n'),
);
const functions = readFunctions(
  [
    'mkcd () ',
    '{ ',
    '    mkdir -p "$1" && _enter "$1"',
    '}',
    '_enter () {',
    '\tbuiltin cd "$1"',
    '}',
    'loop () ',
    '{ ',
    '    loop',
    '}',
    '',
  ].join('\n'),
);
const expanded = (line: string): string | null => expandCommand(line, { aliases, functions })?.command ?? null;

test('the lists of bash, zsh and fish are read; what is no plain alias is left out', () => {
  expect([...aliases.keys()]).toEqual(['ll', 'ls', 'please', 'say', 'up', 'open', '-', 'one', 'two', 'fishy']);
  expect(aliases.get('say')).toBe("echo 'it is'");
  expect([...functions.keys()]).toEqual(['mkcd', '_enter', 'loop']);
});

test.each<[line: string, runs: string | null]>([
  ['ll src', 'ls --color -l src'],
  ['a=1 ll; (ll) | ll', 'a=1 ls --color -l; (ls --color -l) | ls --color -l'],
  ['echo "$(ll)" `ll`', 'echo "$(ls --color -l)" `ls --color -l`'],
  ['please ll', 'sudo  ls --color -l'],
  ['say', "echo 'it is'"],
  ['up', 'cd .. && ls --color -l'],
  ['for f in ll; do ll; done', 'for f in ll; do ls --color -l; done'],
  ['echo ll', null],
  ['\\ll "ll" x', null],
  ["'ll'", null],
  ['$ll', null],
  ['command ll', null],
  ['git status', null],
  ['ll (', null],
  ['open echo', null],
  ['one', 'one'],
])('%s runs %s', (line, runs) => {
  expect(expanded(line)).toBe(runs === line ? null : runs);
});

test('a function is put before the line with those that it needs', () => {
  expect(expandCommand('mkcd a && ll', { aliases, functions })).toEqual({
    command: [functions.get('_enter'), functions.get('mkcd'), 'mkcd a && ls --color -l'].join('\n'),
    facts: { expanded: 'mkcd a && ls --color -l', functions: ['_enter', 'mkcd'] },
  });
  expect(expanded('echo mkcd')).toBeNull();
});

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { expandTemplate, shellWords } from '../../../src/features/prompts-and-skills/expand-template.js';

/** What the model is told: outputs are `<0>`, `<1>` and so on. */
function told(template: string, args = '', files: readonly string[] = []): string {
  const expanded = expandTemplate(template, { args, isFile: (path) => files.includes(path) });
  return typeof expanded === 'string' ? expanded : expanded.text(expanded.calls.map((_, index) => `<${index}>\n`));
}

/** The commands that would run. */
function commands(template: string, args = ''): readonly string[] {
  const expanded = expandTemplate(template, { args, isFile: () => false });
  if (typeof expanded === 'string') return [expanded];
  return expanded.calls.map((call) => (JSON.parse(call.arguments) as { readonly command: string }).command);
}

test.each([
  ['all of it', 'Fix $ARGUMENTS now', "it's a  bug", "Fix it's a  bug now"],
  ['nothing for nothing', 'Fix $ARGUMENTS.', '', 'Fix .'],
  ['all words', 'Fix $@.', '"a b"  c', 'Fix a b c.'],
  ['the first word is $1', '$1, $2 and $3!', 'a b', 'a, b and !'],
  ['quoted words are one', '$1|$2', `'a b' "c \\"d\\""`, 'a b|c "d"'],
  ['a lone quote stands for itself', '$1|$2', "it's broken", "it's|broken"],
  ['two digits', '$10', 'a b c d e f g h i j', 'j'],
  ['an amount of money is none', 'costs $100', '', 'costs $100'],
  ['a name of a variable is none', '$HOME $ARGUMENTSX $', 'a', '$HOME $ARGUMENTSX $\n\nARGUMENTS: a'],
  ['counting from 0 where there is a $0', '$0|$1', 'a b', 'a|b'],
  ['counting from 0 where $ARGUMENTS[0] stands', '$ARGUMENTS[0] $ARGUMENTS[1] $1', 'a b', 'a b b'],
  ['$ARGUMENTS[1] is the second, and $1 the first', '$ARGUMENTS[1] $1', 'a b', 'b a'],
  ['an escaped $0 does not count', String.raw`\$0 $1`, 'a b', '$0 a'],
  ['braces', '${1}st ${ARGUMENTS}', 'a', 'ast a'],
  ['a default', 'in ${1:-src} and ${2:-test}', 'lib', 'in lib and test'],
  ['a default of all', '${ARGUMENTS:-everything}', '', 'everything'],
  ['from the second on', '${@:2}', 'a b c', 'b c'],
  ['two from the second on', '${@:2:2}', 'a b c d', 'b c'],
  ['a default where there is no second', '${@:2:1}-${2:-x}', 'a', '-x'],
  ['an escaped placeholder', String.raw`\$1 \$ARGUMENTS \$@`, 'a', '$1 $ARGUMENTS $@\n\nARGUMENTS: a'],
  ['arguments without a place', 'Do it.\n', 'now', 'Do it.\n\nARGUMENTS: now'],
  ['no arguments without a place', 'Do it.\n', '', 'Do it.'],
  ['a placeholder in an argument', '$1', '$2', '$2'],
  ['a command in an argument', '$1', '!`rm` ', '!`rm`'],
  ['an argument of several lines', '<$ARGUMENTS>', 'a\nb', '<a\nb>'],
  ['a command', 'Now: !`date`.', '', 'Now: <0>.'],
  ['no command inside of a word', 'wow!`date`', '', 'wow!`date`'],
  ['a block', 'Now:\n```!\ndate\nid\n```\nGo.', '', 'Now:\n<0>\nGo.'],
  ['a command at the start of a line', 'Now\n!`date`\n\t!`id`', '', 'Now\n<0>\n\t<1>'],
  [
    'no prose between two pieces of code',
    'With `if !` to surface `find_path`.',
    '',
    'With `if !` to surface `find_path`.',
  ],
  ['no command in code', 'Write `foo !`touch x` bar` so.', '', 'Write `foo !`touch x` bar` so.'],
  ['no command in code of two backquotes', 'Write `` !`x` `` so: !`y`', '', 'Write `` !`x` `` so: <0>'],
  ['a command behind a lone backquote of another line', 'a ` b\n!`x` c ` d', '', 'a ` b\n<0> c ` d'],
  [
    'nothing in a fence',
    '```bash\nif ! `a`; then !`b` @f; fi\n```\n!`c`',
    '',
    '```bash\nif ! `a`; then !`b` @f; fi\n```\n<0>',
    ['f'],
  ],
  ['nothing in a fence of tildes', '~~~\n!`b`\n```\n!`b`\n~~~\n!`c`', '', '~~~\n!`b`\n```\n!`b`\n~~~\n<0>'],
  ['nothing in a longer fence', '````md\n```!\nx\n```\n!`b`\n````\n!`c`', '', '````md\n```!\nx\n```\n!`b`\n````\n<0>'],
  ['nothing in a fence of a list', '- ```\n  !`b`\n  ```\n1. !`c`', '', '- ```\n  !`b`\n  ```\n1. <0>'],
  ['nothing in a fence of a quotation', '> ```\n> !`b`\n> ```\n> !`c`', '', '> ```\n> !`b`\n> ```\n> <0>'],
  ['nothing in a fence without an end', '```\n!`b`', '', '```\n!`b`'],
  ['no block without an end', '```!\nid', '', '```!\nid'],
  ['a block with other ends of lines', 'Now:\r\n```!\r\nid\r\n```\r\nGo.', '', 'Now:\r\n<0>\r\nGo.'],
  ['an argument in a fence', '```\n$1\n```', 'a', '```\na\n```'],
  ['a file', 'See @a.ts, and go.', '', 'See @a.ts, and go.\n\nContents of a.ts:\n<0>', ['a.ts']],
  ['a file that an argument names', 'See @$1', 'a.ts', 'See @a.ts\n\nContents of a.ts:\n<0>', ['a.ts']],
  ['a file with a blank', 'See @"a b"', '', 'See @"a b"\n\nContents of a b:\n<0>', ['a b']],
  ['a file once', '@a @a', '', '@a @a\n\nContents of a:\n<0>', ['a']],
  ['no file', '@param me@a.ts', '', '@param me@a.ts', ['a.ts']],
  ['no file in an argument', '$1', '@a', '@a', ['a']],
])('expands %s', (_what, template, args, expected, files: readonly string[] = []) => {
  expect(told(template, args, files)).toBe(expected);
});

test('outputs are put in as they are, whatever they hold', () => {
  const expanded = expandTemplate('!`a` $1', { args: 'x', isFile: () => true });
  if (typeof expanded === 'string') throw new Error(expanded);
  expect(expanded.text(['!`rm -rf x` $1 @/etc/passwd $ARGUMENTS\n'])).toBe('!`rm -rf x` $1 @/etc/passwd $ARGUMENTS x');
  expect(expanded.calls).toHaveLength(1);
});

test('outputs stand where their commands stood, and files behind the text', () => {
  expect(told('!`a` @f !`b`', '', ['f'])).toBe('<0> @f <1>\n\nContents of f:\n<2>');
});

const hostile = [
  "'; rm -rf x; '",
  "';id;'",
  '"; id; "',
  '$(id)',
  '`id`',
  'a b;id',
  '\\',
  "\\'; id #",
  '$HOME',
  '*',
  '${IFS}',
  '-- --help',
  'a\nid',
  "it's",
  '!x',
  '~',
];

test.each([
  ["printf '%s\\n' $ARGUMENTS", '\n'],
  ['printf \'%s\\n\' "$@"', ' '],
  ["printf '%s\\n' '$@'", ' '],
  ["printf '%s\\n' 'a\\' $ARGUMENTS", '\n', 'a\\\n'],
  ['printf \'%s\\n\' "a\\"" $ARGUMENTS', '\n', 'a"\n'],
  ["printf '%s\\n' a\\' $ARGUMENTS", '\n', "a'\n"],
  ["printf '%s\\n' 'a$' $ARGUMENTS", '\n', 'a$\n'],
  ['printf \'%s\\n\' "a$" $ARGUMENTS', '\n', 'a$\n'],
  ["printf '%s\\n' $(printf '%s\\n' x) $ARGUMENTS", '\n', 'x\n'],
  ["true # it's a comment\nprintf '%s\\n' $ARGUMENTS", '\n'],
  ["printf '%s\\n' 'a #b' $ARGUMENTS", '\n', 'a #b\n'],
])('a shell reads arguments in %s as nothing but words', (template, between, before = '') => {
  for (const args of hostile) {
    const [command = ''] = commands(`\`\`\`!\n${template}\n\`\`\``, args);
    expect(execFileSync('bash', ['-c', command], { encoding: 'utf8' })).toBe(
      `${before}${shellWords(args).join(between)}\n`,
    );
  }
});

test.each([
  'echo "$(echo $1)"',
  'echo "${X:-$1}"',
  'cat <<END\n$1\nEND',
  "echo $'a' $1",
  'echo x # $1',
  'echo `echo $1`',
])('an argument in %s is refused', (template) => {
  expect(commands(`\`\`\`!\n${template}\n\`\`\``, 'x')).toEqual([
    `an argument cannot be quoted for the shell here: ${template}`,
  ]);
});

test('commands without arguments are left as they are', () => {
  const command = String.raw`echo "$(date)" $'a' <<< x | awk '{print \$1}' # $HOME`;
  expect(commands(`Go: !\`${command}\``)).toEqual([command.replace('\\$1', '$1')]);
  expect(commands('!`git diff ${1:-HEAD} --`')).toEqual(['git diff HEAD --']);
  expect(commands('!`git diff ${1:-HEAD} --`', 'main..x')).toEqual(['git diff main..x --']);
});

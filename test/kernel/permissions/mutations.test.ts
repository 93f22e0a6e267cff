import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'unbash';
import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import { context, riskOf } from './judging.js';
import { furtherCommands } from './further-commands.js';
import { harmCommands } from './harm-commands.js';
import { hiddenCommands } from './hidden-commands.js';
import { leakCommands } from './leak-commands.js';
import { mixedCommands } from './mixed-commands.js';
import { optionCommands } from './option-commands.js';
import { readerCommands } from './reader-commands.js';
import { readerDailyCommands } from './reader-daily-commands.js';
import { readerLineCommands } from './reader-line-commands.js';
import { propertyRuns } from '../../property-runs.js';

const dangerous = Object.values({
  ...harmCommands,
  ...leakCommands,
  ...hiddenCommands,
  ...optionCommands,
  ...mixedCommands,
  ...furtherCommands,
}).flat();
const readers = [...readerCommands, ...readerLineCommands, ...readerDailyCommands];
const singleLine = (row: string): boolean => !row.includes('\n') && !row.includes('<<') && !row.includes('#');
const reader = fc.constantFrom(...readers.filter(singleLine));
/** Dangerous for what they are, not for being broken or for ending in the middle of something. */
const harm = fc.constantFrom(
  ...dangerous.filter(
    (row) => singleLine(row) && riskOf(row) === 'dangerous' && !hiddenCommands['unparsable']?.includes(row),
  ),
);

/** A line that is complete where it stands in another one. */
const simpleReader = fc.constantFrom(
  'ls',
  'cat a.txt',
  'grep -n x src/a.ts',
  'echo "a b"',
  "printf '%s' x",
  'git status',
  'wc -l a',
  'head -3 a',
  'pwd',
  'stat a',
);
const simpleHarm = fc.constantFrom(
  'rm -rf .',
  'sudo ls',
  'cat .env',
  'sh -c "$x"',
  'echo x > ~/.bashrc',
  'env',
  'git push -f',
  'find . -delete',
  'nc h 1',
  'npx evil',
);
const wrap: readonly ((inner: string) => string)[] = [
  (x) => x,
  (x) => `( ${x} )`,
  (x) => `{ ${x}; }`,
  (x) => `! ${x}`,
  (x) => `if ${x}; then :; fi`,
  (x) => `if ls; then ${x}; fi`,
  (x) => `for i in 1; do ${x}; done`,
  (x) => `while ${x}; do break; done`,
  (x) => `case a in a) ${x};; esac`,
  (x) => `echo $(${x})`,
  (x) => `echo "$(${x})"`,
  (x) => `cat <(${x})`,
  (x) => `v=$(${x})`,
  (x) => `f() { ${x}; }; f`,
  (x) => `time ${x}`,
  (x) => `echo \${v:-$(${x})}`,
  (x) => `cat <<E\n$(${x})\nE`,
  (x) => `[[ -n $(${x}) ]]`,
  (x) => `${x} &`,
  (x) => `${x} 2>/dev/null`,
];
const joint = fc.constantFrom('; ', ' && ', ' || ', ' | ', '\n', ' & ');
const runs = { numRuns: propertyRuns(2000), seed: 20_261_121 };

test('a dangerous part is never hidden by readers and structure around it', () => {
  fc.assert(
    fc.property(
      simpleReader,
      joint,
      simpleHarm,
      fc.constantFrom(...wrap),
      fc.constantFrom(...wrap),
      (before, join, bad, inner, outer) => {
        expect(riskOf(`${before}${join}${outer(inner(bad))}`)).not.toBe('read-only');
        expect(riskOf(`${outer(inner(bad))}\n${before}`)).not.toBe('read-only');
      },
    ),
    runs,
  );
});

test('rows of the tables joined with readers keep their danger', () => {
  fc.assert(
    fc.property(reader, fc.constantFrom('; ', ' && ', '\n'), harm, (before, join, bad) => {
      expect(riskOf(`${before}${join}${bad}`)).toBe('dangerous');
    }),
    runs,
  );
});

test('a redirect to a file, a name known only when it runs and an unknown program are never read-only', () => {
  const more = fc.oneof(
    fc
      .tuple(
        simpleReader,
        fc.constantFrom('>', '>>', '>|', '&>', '&>>', '2>', '1>', '<>', '3>'),
        fc.constantFrom('out.txt', 'src/a.ts', '"a b"', '../x', '~/x', '/etc/x', '$x', '.git/config'),
      )
      .map(([command, sign, file]) => `${command} ${sign} ${file}`),
    fc.constantFrom(
      '$x',
      '"$x" a',
      '${x}',
      '$(echo ls)',
      '`echo ls`',
      '${x:-ls}',
      '"$@"',
      'l*',
      './*',
      '${a[0]}',
      '{$x,a}',
    ),
    fc
      .tuple(fc.stringMatching(/^[a-z]{9,12}$/), fc.constantFrom('', ' -x', ' a b', ' --help'))
      .map(([name, rest]) => `zz${name}${rest}`),
    fc
      .tuple(fc.constantFrom('./', 'bin/', '../', '/tmp/', '~/'), fc.stringMatching(/^[a-z]{3,8}$/))
      .map(([folder, name]) => `${folder}${name}`),
  );
  fc.assert(
    fc.property(more, fc.constantFrom(...wrap), fc.option(simpleReader), (command, outer, before) => {
      expect(riskOf(`${before === null ? '' : `${before}; `}${outer(command)}`)).not.toBe('read-only');
    }),
    runs,
  );
});

test('nothing makes it throw, and what the shell would not accept is not called read-only', () => {
  const piece = fc.constantFrom(
    'ls',
    'rm',
    '$',
    '(',
    ')',
    '{',
    '}',
    '`',
    '"',
    "'",
    '\\',
    '|',
    '&',
    ';',
    '<',
    '>',
    '<<',
    '<<<',
    'EOF',
    '\n',
    ' ',
    '$((',
    '))',
    '[[',
    ']]',
    '${',
    '@P',
    '!',
    '#',
    '*',
    '?',
    '~',
    '=',
    'a',
    '1',
    'if',
    'then',
    'fi',
    'for',
    'in',
    'do',
    'done',
    'case',
    'esac',
    'x=',
    '\u0000',
    '\u{1f600}',
    '\ud800',
    'é',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const command = pieces.join('');
      const { findings } = classifyShell(command, context, parse);
      expect(riskOf(command) === 'dangerous').toBe(findings.length > 0);
      const broken = (() => {
        try {
          return (parse(command).errors?.length ?? 0) > 0;
        } catch {
          return true;
        }
      })();
      if (broken) expect(findings).not.toEqual([]);
    }),
    runs,
  );
});

test('one byte more or less never turns a dangerous line into an exception', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...dangerous),
      fc.nat(),
      fc.string({ maxLength: 2, unit: 'binary' }),
      (row, at, text) => {
        const place = at % (row.length + 1);
        expect(['read-only', 'mutating', 'dangerous']).toContain(
          riskOf(row.slice(0, place) + text + row.slice(place + 1)),
        );
      },
    ),
    runs,
  );
});

test('a line of a megabyte is dangerous without being parsed, and the longest that is parsed does not explode', () => {
  const unparsed = (): never => {
    throw new Error('parsed');
  };
  for (const unit of [
    'a',
    '$(',
    '((',
    '{',
    '`',
    '"',
    'a;',
    'x=1;',
    '${a:-',
    '<<E\n',
    'a|',
    '{a,b}',
    '{1..9}',
    '[[ ',
    '\\',
    'a ',
    '>a ',
    '$x',
    'cd a;',
  ]) {
    const { findings } = classifyShell(unit.repeat(Math.ceil(1_048_576 / unit.length)), context, unparsed);
    expect(findings.map(({ reason }) => reason).join()).toContain('longer than');
    expect(
      classifyShell(unit.repeat(Math.floor(60_000 / unit.length)), context, parse).commands.length,
    ).toBeLessThanOrEqual(600);
  }
});

test('what braces multiply is looked at whole or called dangerous', () => {
  const names = (count: number): string => Array.from({ length: count }, (_item, index) => `a${index}`).join(',');
  for (const command of [
    `cat {${names(60)},.env}`,
    `cat .en{a..z}`,
    `cat {${names(400)},.env}`,
    `cat {a..z}{a..z}{a..z}`,
    `cat {a,{b,{c,.env}}}`,
    `rm -{r,f} x`,
  ])
    expect(riskOf(command), command).toBe('dangerous');
  for (const command of [
    `cat {${names(60)}}`,
    'ls {a..f}',
    'echo {1..1000}',
    'for i in {1..3}; do echo $((i * 2)); done',
    'cat src/{a,b}.ts',
  ])
    expect(riskOf(command), command).not.toBe('dangerous');
});

test('a line that walks through folders is followed everywhere or called dangerous', () => {
  for (const command of [
    'cd a; cd b; cd c; cd ~/.ssh; cat config',
    'cd a && cd ../.. && cat .ssh/config',
    `${'cd a; '.repeat(5)}cd ~ && cat .aws/config`,
    'cd a; cd b; cd c; cd d; cd e; cd f; cd g; cd h; ls',
    `${'cd a; '.repeat(100)}ls > x`,
  ])
    expect(riskOf(command), command).toBe('dangerous');
  for (const command of [
    'cd src && cd lib && cat a',
    'cd src; cat a; cd ..; cat b',
    'cd src && cd ../test && ls',
    'pushd src; ls; popd',
  ])
    expect(riskOf(command), command).not.toBe('dangerous');
});

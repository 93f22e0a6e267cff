import { expect, test } from 'vitest';
import { disguisedChanges, disguisedCommands, disguisedReaders } from './disguised-commands.js';
import { evaluatedCommands, evaluatedReaders } from './evaluated-commands.js';
import { furtherCommands } from './further-commands.js';
import { harmCommands } from './harm-commands.js';
import { hiddenCommands } from './hidden-commands.js';
import type { Risk } from '../../../src/kernel/core/tool.js';
import { riskOf, tally } from './judging.js';
import { leakCommands } from './leak-commands.js';
import { mutatingCommands } from './mutating-commands.js';
import { mixedCommands } from './mixed-commands.js';
import { optionCommands } from './option-commands.js';
import { readerCommands } from './reader-commands.js';
import { readerDailyCommands } from './reader-daily-commands.js';
import { readerLineCommands } from './reader-line-commands.js';

const dangerous = {
  ...harmCommands,
  ...leakCommands,
  ...hiddenCommands,
  ...optionCommands,
  ...mixedCommands,
  ...furtherCommands,
  ...evaluatedCommands,
  ...disguisedCommands,
};
const readers = [
  ...readerCommands,
  ...readerLineCommands,
  ...readerDailyCommands,
  ...evaluatedReaders,
  ...disguisedReaders,
];

function rowsOf(
  classes: Readonly<Record<string, readonly string[]>>,
): readonly { readonly name: string; readonly commands: readonly string[] }[] {
  return Object.entries(classes).map(([name, commands]) => ({ name, commands }));
}

function report(name: string, commands: readonly string[], wanted: Risk): readonly string[] {
  const { counts, others } = tally(commands, wanted);
  console.log(
    `${name}: ${commands.length} lines, read-only ${counts['read-only']}, ` +
      `mutating ${counts.mutating}, dangerous ${counts.dangerous}`,
  );
  return others;
}

test.each(rowsOf(dangerous))('$name: nothing is called read-only, at least 98 % dangerous', ({ name, commands }) => {
  const others = report(name, commands, 'dangerous');
  expect(others.filter((row) => row.startsWith('read-only'))).toEqual([]);
  expect(others.length, others.join('\n')).toBeLessThanOrEqual(commands.length * 0.02);
});

test('readers: at most 5 % are called dangerous', () => {
  const others = report('readers', readers, 'read-only').filter((row) => row.startsWith('dangerous'));
  expect(others.length, others.join('\n')).toBeLessThanOrEqual(readers.length * 0.05);
});

test.each(rowsOf({ ...mutatingCommands, 'programs and files of the workspace': disguisedChanges }))(
  '$name: nothing is called read-only, at most 5 % dangerous',
  ({ name, commands }) => {
    const others = report(name, commands, 'mutating');
    expect(others.filter((row) => row.startsWith('read-only'))).toEqual([]);
    expect(others.filter((row) => row.startsWith('dangerous')).length).toBeLessThanOrEqual(commands.length * 0.05);
  },
);

test('the tables are large enough to say something', () => {
  expect(readers.length).toBeGreaterThanOrEqual(300);
  expect(Object.values(dangerous).flat().length).toBeGreaterThanOrEqual(400);
  expect(Object.values(mutatingCommands).flat().length).toBeGreaterThanOrEqual(150);
});

test('an invisible part, a control character and an oversized line are dangerous', () => {
  const lines = [
    'ls\u200b',
    'ls \u202e',
    'ls \u00a0x',
    'cat \u{e0041}',
    'ls \u2800',
    'ls \ufffc',
    'ls \ue000',
    'ls \u3164x',
    'ls\rrm x',
    'ls \u001b[2K',
    `ls ${' '.repeat(200)};id`,
    `ls${'\n'.repeat(30)}id`,
    `echo ${'x'.repeat(70_000)}`,
    `${'true; '.repeat(300)}ls`,
    '\ud800',
  ];
  expect(lines.filter((line) => riskOf(line) !== 'dangerous')).toEqual([]);
});

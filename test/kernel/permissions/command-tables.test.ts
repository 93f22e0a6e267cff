import { entriesOf, type WordList } from '../../../src/kernel/core/lists.js';
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'unbash';
import { describe, expect, test } from 'vitest';
import {
  commandFiles,
  commandTables,
  knownPrograms,
  namedCode,
} from '../../../src/kernel/permissions/shell/command-tables.js';
import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import { context } from './judging.js';

const folder = new URL('../../../config/commands/', import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
const names = readdirSync(folder).filter((name) => name !== 'schema.json');

function riskWith(programs: readonly object[], command: string): 'harmless' | 'dangerous' {
  const planted = knownPrograms([...commandFiles, { about: 'planted', programs }], namedCode);
  return classifyShell(command, context, parse, planted).findings.length > 0 ? 'dangerous' : 'harmless';
}

describe('the tables of commands', () => {
  const valid = new Ajv2020({ allErrors: true }).compile(read('schema.json') as object);

  test.each(names)('%s fits the schema', (name) => {
    expect(valid(read(name)) ? [] : valid.errors).toEqual([]);
  });

  test.each([
    ['an unknown field', { names: 'x', safe: true }],
    ['an unknown field of a rule', { names: 'x', rules: [{ verb: 'list', harmless: true, safe: true }] }],
    ['a danger without a reason', { names: 'x', danger: true }],
    ['a rule that says nothing', { names: 'x', rules: [{ verb: 'list' }] }],
    ['an option without a dash', { names: 'x', runs: 'exec' }],
  ])('the schema refuses %s', (_what, program) => {
    expect(valid({ about: 'planted', programs: [program] })).toBe(false);
  });

  test('every file of the folder is taken in', () => {
    const programs = names.flatMap((name) => (read(name) as { programs?: { names: WordList }[] }).programs ?? []);
    expect(commandFiles.flatMap((file) => file.programs)).toHaveLength(programs.length);
    expect(commandTables.size).toBe(programs.flatMap((program) => entriesOf(program.names)).length);
  });

  test('code that an entry names is there, and none is there that no entry names', () => {
    const said = new Set<string>();
    const tests = new Set<string>();
    JSON.stringify(commandFiles, (key, value: unknown) => {
      if (key === 'code') said.add(String(value));
      if (key === 'test') tests.add(String(value));
      return value;
    });
    expect([...said].toSorted()).toEqual(Object.keys(namedCode.codes).toSorted());
    expect(Object.keys((read('words.json') as { codes: object }).codes)).toEqual([...said].toSorted());
    expect([...tests].toSorted()).toEqual(Object.keys(namedCode.tests).toSorted());
  });

  test('a program that one entry reads as another is known itself', () => {
    const entries = [...commandTables.values()].map(({ entry }) => entry);
    const likes = entries.flatMap((entry) => [entry.like, ...(entry.rules ?? []).map((rule) => rule.like)]);
    expect(likes.filter((like) => like !== undefined && !commandTables.has(like))).toEqual([]);
  });

  test('two entries for one program are refused', () => {
    expect(() => riskWith([{ names: 'ls' }], 'ls')).toThrow('two entries describe the program ls');
  });
});

describe('an entry planted in the tables', () => {
  const planted = [
    {
      names: ['planted', 'sown'],
      takes: '--name, -n',
      runs: '--plugin',
      writes: '-o, --output',
      danger: 'is planted',
      rules: [
        { verb: 'item list, show', unless: [{ options: '--raw' }], sends: true },
        { verb: 'build', harmless: true },
      ],
    },
  ];

  test.each([
    ['planted show', 'harmless'],
    ['sown item list', 'harmless'],
    ['planted -n x show', 'harmless'],
    ['planted --name=x show y', 'harmless'],
    ['planted show --raw', 'dangerous'],
    ['planted shows', 'dangerous'],
    ['planted item', 'dangerous'],
    ['planted item lists', 'dangerous'],
    ['planted list item', 'dangerous'],
    ['planted', 'dangerous'],
    ['planted build', 'harmless'],
    ['planted build -o out.txt', 'harmless'],
    ['planted build -o /etc/passwd', 'dangerous'],
    ['planted show --plug ./x.so', 'dangerous'],
    ['planted show $X', 'harmless'],
    ['planted show $(cat a)', 'dangerous'],
  ])('is obeyed: %s is %s', (command, risk) => {
    expect(riskWith(planted, command)).toBe(risk);
  });

  test('is what makes the difference: without it the program is not dangerous', () => {
    expect(riskWith([], 'planted')).toBe('harmless');
  });
});

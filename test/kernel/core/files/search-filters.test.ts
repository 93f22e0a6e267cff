import { expect, test } from 'vitest';
import { filterList, noFilters, parseSearchLine } from '../../../../src/kernel/core/files/search-filters.js';

const midnight = (day: string): number => new Date(`${day}T00:00`).getTime();

test.each([
  ['migration "exact phrase" begin*', 'migration "exact phrase" begin*', {}],
  ['tool:bash error tool:mcp__git*', 'error', { tools: ['bash', 'mcp__git*'] }],
  ['file:"my dir/a b.ts" file:./src/x.ts', '', { files: ['my dir/a b.ts', 'src/x.ts'] }],
  [
    'after:2026-01-01 before:2026-02-03T04:05 x',
    'x',
    {
      after: midnight('2026-01-01'),
      before: new Date('2026-02-03T04:05').getTime(),
    },
  ],
  [
    'from:codex session:0198 kind:answer kind:call',
    '',
    {
      from: ['codex'],
      session: '0198',
      kinds: ['assistant', 'tool_call'],
    },
  ],
  ['project:here x', 'x', { cwd: '/w' }],
  ['project:here project:all x', 'x', {}],
  ['http://x.y std::vector TypeError: x "tol:bash"', 'http://x.y std::vector TypeError: x "tol:bash"', {}],
])('%s', (text, words, filters) => {
  expect(parseSearchLine(text, '/w')).toEqual({ ok: true, words, filters: { ...noFilters, ...filters } });
});

test.each([
  ['tol:bash', /^There is no filter tol:\. Did you mean tool:\? There are tool:name, file:src.*project:here\|all\./],
  ['colour:red', /^There is no filter colour:\. There are .* Put words with a colon in quotes\.$/],
  ['kind:sql', /^kind:sql: there are user, answer, call, result, shell, side, limit\.$/],
  ['project:mine', /^project:mine: there are here and all\.$/],
  ['after:yesterday', /^after:yesterday is not a day: write for example after:2026-01-31/],
  ['before:2026-02-30', /^before:2026-02-30 is not a day/],
])('%s is refused with what there is', (text, problem) => {
  const line = parseSearchLine(`x ${text}`, '/w');
  expect(line.ok ? null : line.problem).toMatch(problem);
});

/** Filters with a value that there is not, and without one: each filter that there is. */
test.each(filterList.split(', ').map((example) => example.split(':')[0] ?? ''))('%s: without a value', (name) => {
  for (const text of [`${name}:`, `x ${name}: y`, `${name}:""`, `${name}:" "`]) {
    const line = parseSearchLine(text, '/w');
    expect(line.ok ? text : line.problem).toMatch(
      new RegExp(`^${name}: has no value\\. (?:For example ${name}:|There are )`),
    );
  }
});

test('from: takes the programs that there are', () => {
  const programs = ['codex', 'pi'];
  expect(parseSearchLine('from:codex from:agent', '/w', programs)).toMatchObject({ ok: true });
  expect(parseSearchLine('from:codx', '/w', programs)).toEqual({
    ok: false,
    problem: 'from:codx: there are agent, codex, pi. Did you mean codex?',
  });
});

test('a word with a colon behind it stays a word', () => {
  expect(parseSearchLine('TypeError: error: note:', '/w')).toEqual({
    ok: true,
    words: 'TypeError: error: note:',
    filters: noFilters,
  });
});

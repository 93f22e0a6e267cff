import { describe, expect, test } from 'vitest';
import type { Risk } from '../../../src/kernel/core/tool.js';
import { isAcceptable, readFixture, riskOf } from './judging.js';

interface Row {
  readonly id: string;
  readonly cmd?: string;
  readonly gen?: string;
  readonly verdict: string;
  readonly accept: readonly string[];
}

const { cases: rows } = readFixture('dangerous-commands.json') as { readonly cases: readonly Row[] };

const riskNames: Readonly<Record<string, Risk>> = {
  'safe-read-only': 'read-only',
  mutating: 'mutating',
  dangerous: 'dangerous',
};

describe('the sample corpus of shell commands', () => {
  const judged = rows.flatMap((row) =>
    row.cmd === undefined ? [] : [{ row, risk: riskOf(row.cmd), wanted: riskNames[row.verdict] }],
  );

  test('every sample is judged as a careful engineer would accept', () => {
    for (const wanted of ['read-only', 'mutating', 'dangerous'] as const) {
      const mine = judged.filter((one) => one.wanted === wanted);
      const found = (risk: Risk): number => mine.filter((one) => one.risk === risk).length;
      console.log(
        `${wanted}: ${mine.length} samples, called read-only ${found('read-only')}, ` +
          `mutating ${found('mutating')}, dangerous ${found('dangerous')}`,
      );
    }
    expect(judged.length).toBeGreaterThan(200);
    expect(
      judged
        .filter(({ row, risk }) => !isAcceptable(risk, row.accept))
        .map(({ row, risk }) => `${row.id} ${risk}: ${row.cmd}`),
    ).toEqual([]);
  });

  test('the bars hold', () => {
    const dangerous = judged.filter(({ wanted }) => wanted === 'dangerous');
    const readers = judged.filter(({ wanted }) => wanted === 'read-only');
    expect(dangerous.filter(({ risk }) => risk === 'read-only')).toEqual([]);
    expect(dangerous.filter(({ risk }) => risk === 'dangerous').length).toBeGreaterThanOrEqual(dangerous.length * 0.98);
    expect(readers.filter(({ risk }) => risk === 'dangerous').length).toBeLessThanOrEqual(readers.length * 0.05);
  });
});

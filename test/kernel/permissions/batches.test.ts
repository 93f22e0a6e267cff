import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Risk } from '../../../src/kernel/core/tool.js';
import { isAcceptable, riskOf } from './judging.js';

interface Row {
  readonly id: string;
  readonly cmd: string;
  readonly verdict: string;
  readonly accept: readonly string[];
}
interface Batch {
  readonly _meta: { readonly batch: string; readonly first: string };
  readonly cases: readonly Row[];
}

const folder = new URL('../../../fixtures/policy/', import.meta.url);
const batches = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Batch);
/** Batches of commands, each written before the judgement was tried on it; `first` says what it got then. They are kept
 * so that it stays learnt. */
test.each(batches.map((batch) => ({ name: batch._meta.batch, batch })))(
  '$name: every command is judged as a careful engineer would accept',
  ({ batch }) => {
    const judged = batch.cases.map((row) => ({ ...row, risk: riskOf(row.cmd) }));
    for (const wanted of ['dangerous', 'safe-read-only', 'mutating']) {
      const rows = judged.filter(({ verdict }) => verdict === wanted);
      const found = (risk: Risk): number => rows.filter((row) => row.risk === risk).length;
      if (rows.length > 0)
        console.log(
          `${batch._meta.batch}, ${wanted}: ${rows.length} lines, read-only ${found('read-only')}, ` +
            `mutating ${found('mutating')}, dangerous ${found('dangerous')}`,
        );
    }
    expect(batch.cases.length).toBeGreaterThan(100);
    expect(judged.filter(({ risk, accept }) => !isAcceptable(risk, accept))).toEqual([]);
  },
);

test('there are batches of every kind', () => {
  const verdicts = batches.flatMap(({ cases }) => cases.map(({ verdict }) => verdict));
  expect(verdicts.filter((verdict) => verdict === 'dangerous').length).toBeGreaterThan(1000);
  expect(verdicts.filter((verdict) => verdict === 'safe-read-only').length).toBeGreaterThan(300);
  expect(verdicts.filter((verdict) => verdict === 'mutating').length).toBeGreaterThan(200);
});

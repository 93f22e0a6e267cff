import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

function changed(file: string, sql: string): void {
  const db = new Database(file);
  db.exec(sql);
  db.close();
}

const refusals: readonly {
  readonly store: string;
  readonly make: (file: string) => void;
  readonly says: RegExp;
}[] = [
  {
    store: 'of a newer version',
    make: (file) => {
      changed(file, 'PRAGMA user_version = 99');
    },
    says: /written by a newer version of this program.*Update the program/s,
  },
  {
    store: 'of another program',
    make: (file) => {
      writeFileSync(file, '');
      changed(file, 'CREATE TABLE theirs(x); INSERT INTO theirs VALUES (1)');
    },
    says: /database of another program.*Move it away/s,
  },
];

async function oneSession(): Promise<{ readonly at: Place; readonly file: string; readonly model: string }> {
  const at = place();
  const model = script(at, [{ text: 'one' }]);
  await agent(at, ['-p', '--model', model, 'hi']);
  return { at, file: join(at.home, '.agent', 'agent.db'), model };
}

function digestOf(file: string): string {
  const bytes = [file, `${file}-wal`].filter((path) => existsSync(path)).map((path) => readFileSync(path));
  return createHash('sha256').update(Buffer.concat(bytes)).digest('hex');
}

test.each(refusals)('a store $store is named by doctor, -c, -r and the commands, and not written', async (refusal) => {
  const { at, file, model } = await oneSession();
  refusal.make(file);
  const before = digestOf(file);
  const doctor = await agent(at, ['doctor']);
  expect([doctor.code, /FAIL {2}store.*/s.exec(doctor.stdout)?.[0]]).toEqual([1, expect.stringMatching(refusal.says)]);
  for (const choice of [['-c'], ['-r', '01'], ['-c', '--fork']]) {
    const { code, stderr } = await agent(at, ['-p', ...choice, '--model', model, 'hi']);
    expect([choice, code, stderr]).toEqual([choice, 7, expect.stringMatching(refusal.says)]);
    expect(stderr).not.toContain('there is no session');
  }
  for (const command of [['sessions', 'list'], ['search', 'one'], ['stats'], ['audit'], ['sessions', 'show', '01']]) {
    const { code, stderr } = await agent(at, command);
    expect([command, code === 0, stderr]).toEqual([command, false, expect.stringMatching(refusal.says)]);
  }
  expect(digestOf(file)).toBe(before);
});

test('doctor reads the version of a store that another process has open', async () => {
  const { at, file } = await oneSession();
  const open = new Database(file);
  open.prepare('SELECT count(*) FROM events').get();
  const fine = await agent(at, ['doctor']);
  open.pragma('user_version = 99');
  const refused = await agent(at, ['doctor']);
  open.close();
  expect([/ok {4}store/.test(fine.stdout), /FAIL {2}store.*newer version/.test(refused.stdout)]).toEqual([true, true]);
});

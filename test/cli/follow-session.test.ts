import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { followSession, type Seen } from '../../src/cli/doors/follow-session.js';
import type { Event } from '../../src/core/event.js';

test('a follower gets each event once and in order, also those that come while it looks', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-follow-'));
  const log: Event[] = [];
  const grow = (count: number): void => {
    for (let left = count; left > 0; left--)
      log.push({ seq: log.length + 1, kind: 'user', content: '', data: null, createdAt: 0 });
  };
  grow(3);
  const store = {
    load: () => Promise.resolve([...log]),
    tail: (_id: string, count: number) => {
      const found = log.slice(-count);
      if (log.length < 20) grow(2);
      return Promise.resolve(found);
    },
  };
  const seen: number[] = [];
  let whole = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    whole = resolve;
  });
  const following = await followSession(store, folder, 'one', (what: Seen) => {
    if (what.type === 'events') seen.push(...what.events.map(({ seq }) => seq));
    if (seen.length >= 21) whole();
  });
  onTestFinished(async () => {
    await following.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await all;
  expect(seen).toEqual(log.map(({ seq }) => seq));
});

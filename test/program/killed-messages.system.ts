import { join } from 'node:path';
import Database from 'better-sqlite3';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { agent, lines, place, script, type Place } from '../e2e/program.js';

interface Message {
  readonly content: string;
  readonly source: string | undefined;
}

function messages({ home }: Place): readonly Message[] {
  const db = new Database(join(home, '.agent/agent.db'), { readonly: true });
  const rows = db.prepare("select content, data_json as data from events where kind = 'user' order by seq").all();
  db.close();
  return (rows as { readonly content: string; readonly data: string | null }[])
    .map(({ content, data }) => ({ content, data: JSON.parse(data ?? '{}') as { source?: string; note?: true } }))
    .filter(({ data }) => data.note !== true)
    .map(({ content, data }) => ({ content, source: data.source }));
}

interface Running {
  readonly session_id: string;
  readonly pid: number;
  readonly state: string;
}

async function running(at: Place): Promise<readonly Running[]> {
  return lines((await agent(at, ['ps', '--json'])).stdout.replaceAll('\n', ''))[0] as unknown as readonly Running[];
}

/** Each look starts a process, so this does not spin. */
async function idle(at: Place): Promise<void> {
  while ((await running(at))[0]?.state !== 'idle');
}

const turns = [
  { calls: [{ name: 'bash', arguments: { command: 'sleep 1' } }] },
  ...Array.from({ length: 40 }, (_, index) => ({ text: `Answer ${index}.` })),
];

async function inBackground(at: Place): Promise<string> {
  const begun = await agent(at, ['--bg', '--approval', 'never', '-m', script(at, turns), 'begin']);
  expect(begun).toMatchObject({ code: 0, stderr: '' });
  const id = begun.stdout.trim();
  onTestFinished(async () => {
    await agent(at, ['stop', id]);
  });
  return id;
}

test('messages of several senders at once are in the log once each, and follow a session through ps and stop', async () => {
  const at = place();
  const id = await inBackground(at);
  expect(await running(at)).toMatchObject([{ session_id: id, title: 'begin' }]);
  const texts = ['one', 'two', 'three', 'four', 'five', 'six'];
  const sent = await Promise.all(texts.map((text) => agent(at, ['send', id, text])));
  expect(sent.map(({ stdout, code }) => [stdout, code])).toEqual(texts.map(() => ['delivered\n', 0]));
  await idle(at);
  const stopped = await agent(at, ['stop', id.slice(0, 20)]);
  expect(stopped).toMatchObject({ code: 0, stdout: `Stopped session ${id}.\n` });
  expect(await running(at)).toEqual([]);
  expect(await agent(at, ['stop', id])).toMatchObject({ code: 0, stdout: `Session ${id} is not running.\n` });
  expect((await agent(at, ['stop', 'nothing'])).code).toBe(7);
  expect((await agent(at, ['send', 'nothing', 'x'])).code).toBe(7);
  expect((await agent(at, ['send', id, ' '])).code).toBe(2);
  expect((await agent(at, ['send', id, '/clear'])).stdout).toBe('kept\n');
  expect((await agent(at, ['send', id, '-', '--run'], { stdin: 'from a pipe' })).stdout).toBe('delivered\n');
  await idle(at);
  const log = messages(at);
  expect(log[0]).toEqual({ content: 'begin', source: 'terminal' });
  expect(log.slice(1).map(({ source }) => source)).toEqual(Array.from({ length: 8 }, () => 'send'));
  expect(
    log
      .slice(1, 7)
      .map(({ content }) => content)
      .toSorted(),
  ).toEqual(texts.toSorted());
  expect(log.slice(7).map(({ content }) => content)).toEqual(['/clear', 'from a pipe']);
});

test('the owner or the sender is killed at any moment: a message that was sent is in the log once', async () => {
  const at = place();
  const id = await inBackground(at);
  const sure: string[] = [];
  const all: string[] = [];
  for (let count = 0; count < 12; count++) {
    const text = `message ${count}`;
    all.push(text);
    const [owner] = await running(at);
    const sending = agent(at, ['send', id, text], {
      onStart: (child) => {
        if (count % 3 === 1) setTimeout(() => child.kill('SIGKILL'), 40 * count);
      },
    });
    if (count % 3 !== 1 && owner) {
      await wait(45 * count);
      process.kill(owner.pid, 'SIGKILL');
    }
    const sent = await sending;
    if (sent.code === 0) sure.push(text);
    if ((await running(at)).length === 0) {
      const again = await agent(at, ['--bg', '--approval', 'never', '-m', script(at, turns), '-r', id]);
      expect(again).toMatchObject({ code: 0, stderr: '' });
    }
  }
  const last = (await running(at))[0];
  if (last) await agent(at, ['stop', id]);
  await agent(at, ['-p', '-m', script(at, turns), '-r', id, 'end']);
  const found = messages(at)
    .filter(({ source }) => source === 'send')
    .map(({ content }) => content);
  expect(new Set(found).size).toBe(found.length);
  expect(found).toEqual(expect.arrayContaining(sure));
  expect(all).toEqual(expect.arrayContaining(found));
  expect(sure.length).toBeGreaterThan(6);
});

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test as anyTest } from 'vitest';
import type { Place } from '../e2e/program.js';
import { serverOfFile } from '../features/team-store/server.js';
import { agent, place, script } from './inside.js';

const { installed, server } = serverOfFile(3);
const test = installed ? anyTest : anyTest.skip;

describe('a machine without a disk', () => {
  const remote = (url: string, more: Readonly<Record<string, string>> = {}) => ({
    env: { AGENT_STORE_MODE: 'remote', AGENT_STORE_URL: url, ...more },
  });
  const database = (at: Place): string => join(at.home, '.agent/agent.db');

  test('goes on with a session that another one began; nothing is kept on either', async () => {
    const name = await server().database();
    const [one, two] = [place(), place()];
    const asAlice = remote(server().url(name, 'alice'));
    writeFileSync(join(one.work, 'a.txt'), 'flamingo\n');
    const first = await agent(one, ['-p', 'read a.txt', '--output-format', 'json'], asAlice);
    const { session_id: id } = JSON.parse(first.stdout) as { readonly session_id: string };
    const resumed = await agent(two, ['-p', '-r', id, 'list *.md', '--output-format', 'json'], asAlice);
    expect(JSON.parse(resumed.stdout)).toMatchObject({ session_id: id, status: 'completed' });
    const search = await agent(two, ['search', 'flamingo', '--json'], asAlice);
    expect((JSON.parse(search.stdout) as readonly object[]).length).toBeGreaterThan(0);
    const verified = await agent(two, ['audit', 'verify', '--json'], asAlice);
    expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, sessions: 1, breaks: [] });
    const others = await agent(two, ['sessions', 'list', '--json'], remote(server().url(name, 'bob')));
    expect(JSON.parse(others.stdout)).toEqual([]);
    expect([one, two].map((at) => existsSync(database(at)))).toEqual([false, false]);
  });

  test('answers also where the server does not, and says so, and what was lost', async () => {
    const gone = remote('postgresql://alice@127.0.0.1:1/none');
    const at = place();
    writeFileSync(join(at.work, 'a.txt'), 'flamingo\n');
    const { code, stdout, stderr } = await agent(at, ['-p', 'read a.txt'], gone);
    expect([code, stdout.includes('flamingo')]).toEqual([1, true]); // nothing of it was saved
    // Once as it happens, once with what was lost at the end.
    expect(stderr.match(/No answer from 127\.0\.0\.1:1\/none/g)).toHaveLength(2);
    const unnamed = await agent(place(), ['-p', 'list *.txt'], { env: { AGENT_STORE_MODE: 'remote' } });
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('store.url is not set')]);
  });

  test('keeps no notes, and says so to whoever keeps one', async () => {
    const asAlice = remote(server().url(await server().database(), 'alice'));
    const at = place();
    const model = script(at, [
      { calls: [{ name: 'save_note', arguments: { content: 'The harbour opens at nine.' } }] },
      { text: 'Noted.' },
    ]);
    const asked = ['-p', '-m', model, '--tools', '+memory', '--output-format', 'stream-json', 'go'];
    expect((await agent(at, asked, asAlice)).stdout).toContain('Saved as note 1. It is lost after this run');
    for (const args of [['add', 'The harbour opens at nine.'], ['list'], ['rm', '1']])
      expect(await agent(at, ['memory', ...args], asAlice)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining('a server does not store notes (store.mode is remote)') as string,
      });
  });

  test('sets tasks for a fleet, and sees where they run', async () => {
    const url = server().url(await server().database(), 'alice');
    const fleet = remote(url, { AGENT_TASKS_MACHINE: 'any' });
    const at = place();
    const make = (message: string, ...more: readonly string[]) =>
      agent(at, ['tools', 'call', '--tools', '+tasks', 'add_reminder', JSON.stringify({ delay: '10s', message })], {
        ...fleet,
        ...(more.length > 0 ? remote(url) : {}),
      });
    await make('tea for all');
    await make('tea here', 'own');
    const listed = await agent(place(), ['tasks', 'list', '--json'], fleet);
    const tasks = JSON.parse(listed.stdout) as readonly { readonly description: string; readonly machine: string }[];
    const forAny = new Map(tasks.map(({ description, machine }) => [description, machine === 'any']));
    expect(Object.fromEntries(forAny)).toEqual({ 'tea for all': true, 'tea here': false });
    const local = await agent(place(), ['tasks', 'list'], { env: { AGENT_STORE_URL: url } });
    expect(local.stdout).toContain('There are no tasks.');
    const shared = await agent(place(), ['tasks', 'list'], {
      env: { AGENT_STORE_URL: url, AGENT_TASKS_MACHINE: 'any' },
    });
    expect(shared.stdout).toMatch(/any {2,}.*tea for all/);
  });
});

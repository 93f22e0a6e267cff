import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

type Row = Readonly<Record<string, unknown>>;

const parsed = (text: string): readonly Row[] => JSON.parse(text) as readonly Row[];

test("seed 002's oven reminder is set in a conversation, listed, and told", async () => {
  const at = place();
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  const notify = { tasks: { notify_command: ['sh', '-c', 'cat >>"$HOME/told"'], timezone: 'Europe/Berlin' } };
  writeFileSync(join(at.home, '.agent/config.json'), JSON.stringify(notify));
  const say = ['-p', '-m', 'offline/oven-reminder', '--tools', '+tasks'];
  const said = await agent(at, [...say, 'Remind me in 10 minutes to check the oven']);
  expect([said.code, said.stdout]).toEqual([0, "I'll remind you in 10 minutes to check the oven.\n"]);
  const [task] = parsed((await agent(at, ['tasks', 'list', '--json'])).stdout);
  expect(task).toMatchObject({ task_type: 'reminder', description: 'check the oven', tz: 'Europe/Berlin' });
  expect((await agent(at, ['tasks', 'run', String(task?.['id'])])).code).toBe(0);
  const told = join(at.home, 'told');
  expect(existsSync(told) ? readFileSync(told, 'utf8') : '').toContain('check the oven');
});

test.each([
  ['weekday-news', 'weekdays 9am', 'web_search', 'tell you the top 3.\n'],
  ['lights-off', 'daily 1am', 'api_call', 'at 1am every day.\n'],
])("seed 002's %s waits for a yes, and is on the list with one", async (name, schedule, type, end) => {
  const at = place();
  const say = ['-p', '-m', `offline/${name}`, '--tools', '+tasks'];
  expect((await agent(at, [...say, 'go'])).code).toBe(6);
  expect(parsed((await agent(at, ['tasks', 'list', '--json'])).stdout)).toEqual([]);
  const said = await agent(at, [...say, '--approval', 'never', 'go']);
  expect([said.code, said.stdout.endsWith(end)]).toEqual([0, true]);
  const [task] = parsed((await agent(at, ['tasks', 'list', '--json'])).stdout);
  expect(JSON.stringify(task)).toContain(schedule);
  expect(task).toMatchObject({ task_type: type });
});

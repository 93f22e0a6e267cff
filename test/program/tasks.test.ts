import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Task } from '../../src/features/scheduled-tasks/tasks.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import type { Finished, Place } from '../e2e/program.js';
import { modelServer } from '../e2e/model-server.js';
import { agent, lines, place, repl, script } from './inside.js';
import { taskTableSet } from '../../src/features/scheduled-tasks/task-tables.js';

const minute = 60_000;

/** A task that came due half a minute ago, and comes back each hour. */
function task(at: Place, id: string, change: Partial<Task> = {}): Task {
  const now = Date.now();
  return {
    id,
    type: 'agent_task',
    description: `Task ${id}`,
    scheduleType: 'recurring',
    schedule: { cron: '0 * * * *', tz: 'UTC', source: 'every 1h' },
    execution: { prompt: 'Look after it.' },
    enabled: true,
    createdAt: now,
    lastRun: null,
    nextRun: now - minute / 2,
    tz: 'UTC',
    cwd: at.work,
    missed: 'run_once',
    maxCostUsd: null,
    grants: [],
    expiresAt: null,
    failures: 0,
    madeInSession: null,
    ...change,
  };
}

const file = (at: Place): string => join(at.home, '.agent/agent.db');

/** Puts tasks into the store, and what tells of them into the configuration. */
async function scene(at: Place, settings: object, ...tasks: readonly Task[]): Promise<void> {
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  writeFileSync(
    join(at.home, '.agent/config.json'),
    JSON.stringify({ tasks: { notify_command: ['sh', '-c', 'cat >>"$HOME/told"'] }, ...settings }),
  );
  const opened = await openSqliteStore({ file: file(at), now: Date.now });
  const store = await opened.tables(taskTableSet);
  for (const one of tasks) await store.add(one);
  await opened.store.close();
}

const told = (at: Place): string =>
  existsSync(join(at.home, 'told')) ? readFileSync(join(at.home, 'told'), 'utf8') : '';
const runs = ({ stdout }: Finished): readonly Record<string, unknown>[] =>
  JSON.parse(stdout) as readonly Record<string, unknown>[];

test('nothing is due where there are no tasks, and nothing is made for them', async () => {
  const at = place();
  expect(await agent(at, ['tasks', 'run-due', '--json'])).toMatchObject({ code: 0, stdout: '[]\n', stderr: '' });
  expect(await agent(at, ['tasks', 'list'])).toMatchObject({ code: 0, stdout: 'There are no tasks.\n' });
  expect((await agent(at, ['sql', "SELECT name FROM sqlite_schema WHERE name LIKE '%task%'"])).stdout).not.toMatch(
    /task_runs/,
  );
});

test('a reminder that was given is counted, and listed where all are wanted', async () => {
  const at = place();
  const once = { type: 'reminder', scheduleType: 'once', schedule: { delay: '5m' } } as const;
  await scene(
    at,
    {},
    task(at, 'ada', { ...once, description: 'Call Ada' }),
    task(at, 'later', { nextRun: Date.now() + 60 * minute }),
  );
  expect((await agent(at, ['tasks', 'run-due'])).code).toBe(0);
  const { stdout } = await agent(at, ['tasks', 'list']);
  expect(stdout).toMatch(/^later .*\n1 reminder given; `tasks list --all` shows it\.\n$/);
  expect((await agent(at, ['tasks', 'list', '--all'])).stdout).toMatch(/\nada +reminder +given +in 5m +Call Ada\n$/);
  expect((await agent(at, ['tasks', 'runs'])).stdout).not.toMatch(/Call Ada.*Call Ada/);
});

test('a due task works in a session of its own that says whose run it is, and tells what came of it', async () => {
  const at = place({ 'a.md': '# A\n' });
  const model = script(at, [{ calls: [{ name: 'file_read', arguments: { path: 'a.md' } }] }, { text: 'It says A.' }]);
  await scene(at, { model }, task(at, 'news'), task(at, 'later', { nextRun: Date.now() + 60 * minute }));
  const ran = await agent(at, ['tasks', 'run-due', '--json']);
  expect(ran).toMatchObject({ code: 0, stderr: 'A task is done: Task news: It says A.\n' });
  const [run, ...others] = runs(ran);
  expect([run, others]).toMatchObject([{ task_id: 'news', status: 'done', summary: 'It says A.', cost_usd: 0 }, []]);
  expect(told(at)).toBe('A task is done\nTask news: It says A.\n');
  const session = String(run?.['session_id']);
  const events = JSON.parse((await agent(at, ['sessions', 'show', session, '--json'])).stdout) as {
    readonly kind: string;
    readonly data: unknown;
  }[];
  expect(events.map(({ kind }) => kind).slice(0, 4)).toEqual(['system', 'tools', 'task', 'user']);
  expect(events[2]?.data).toMatchObject({ task_id: 'news', run_id: run?.['id'], missed: 0 });
  expect((await agent(at, ['tasks', 'run-due'])).stdout).toBe('');
  expect((await agent(at, ['tasks', 'inbox'])).stdout).toMatch(/✔ \w+ +done.*It says A\.\n$/);
  expect((await agent(at, ['tasks', 'inbox'])).stdout).toBe('Nothing new.\n');
  expect((await agent(at, ['tasks', 'show', 'news'])).stdout).toMatch(/task +news, agent_task[^]*when +every 1h/);
});

test('a run that wants a yes is denied at once, and an approved call runs by its exact bytes alone', async () => {
  const at = place({ 'gone/a.txt': 'x' });
  const remove = { name: 'bash', arguments: { command: JSON.parse(readFileSync(removal(at), 'utf8')) as string } };
  const model = script(at, [{ calls: [remove] }, { text: 'I could not tidy up.' }]);
  await scene(at, { model }, task(at, 'tidy', { scheduleType: 'once', schedule: { delay: '5m' } }));
  const [denied] = runs(await agent(at, ['tasks', 'run-due', '--json']));
  expect(denied).toMatchObject({
    status: 'needs_approval',
    summary: expect.stringMatching(/^Not run: bash/) as string,
  });
  expect(existsSync(join(at.work, 'gone'))).toBe(true);
  expect(told(at)).toContain(`agent tasks approve ${String(denied?.['id'])}`);

  const unasked = await agent(at, ['tasks', 'approve', String(denied?.['id'])]);
  expect(unasked).toMatchObject({ code: 6, stderr: expect.stringContaining('rm -rf gone') as string });
  expect(existsSync(join(at.work, 'gone'))).toBe(true);
  const approved = await agent(at, ['tasks', 'approve', 'tidy', '--yes', '--json']);
  expect(approved.code).toBe(0);
  expect(runs(approved)).toMatchObject([{ status: 'done', summary: 'I could not tidy up.' }]);
  expect(existsSync(join(at.work, 'gone'))).toBe(false);
  expect((await agent(at, ['tasks', 'inbox'])).stdout).not.toContain('needs_approval');

  at.file('gone/b.txt', 'y');
  expect((await agent(at, ['tasks', 'run', 'tidy'])).code).toBe(0);
  expect(existsSync(join(at.work, 'gone'))).toBe(false);
  const path = model.replace(/^offline\//, '');
  writeFileSync(path, readFileSync(path, 'utf8').replace('gone', './gone'));
  at.file('gone/c.txt', 'z');
  expect((await agent(at, ['tasks', 'run', 'tidy'])).code).toBe(6);
  expect(existsSync(join(at.work, 'gone'))).toBe(true);
  expect((await agent(at, ['tasks', 'rm', 'tidy'])).code).toBe(0);
  expect((await agent(at, ['tasks', 'inbox'])).stdout).not.toContain('needs_approval');
});

test('a run whose sub-agent wanted a yes waits for it, and the approved call of the sub-agent runs', async () => {
  const at = place({ 'gone/a.txt': 'x' });
  const remove = { name: 'bash', arguments: { command: JSON.parse(readFileSync(removal(at), 'utf8')) as string } };
  const tidier = at.file('tidier.json', JSON.stringify({ turns: [{ calls: [remove] }, { text: 'Tidied.' }] }));
  const role = `---\nname: tidier\ndescription: Tidies.\nmodel: offline/${tidier}\n---\nYou tidy up.\n`;
  mkdirSync(join(at.home, '.agent/agents'), { recursive: true });
  writeFileSync(join(at.home, '.agent/agents/tidier.md'), role);
  const ask = { name: 'agent', arguments: { agent: 'tidier', prompt: 'tidy up', description: 'tidy' } };
  const model = script(at, [{ calls: [ask] }, { text: 'Done.' }]);
  await scene(at, { model }, task(at, 'tidy'));
  expect(runs(await agent(at, ['tasks', 'run-due', '--json']))).toMatchObject([
    { status: 'needs_approval', summary: expect.stringMatching(/^Not run: bash/) as string },
  ]);
  const approved = await agent(at, ['tasks', 'approve', 'tidy', '--yes', '--json']);
  expect([approved.code, runs(approved)]).toMatchObject([0, [{ status: 'done', summary: 'Done.' }]]);
  expect(existsSync(join(at.work, 'gone'))).toBe(false);
});

/** The text of a command that removes a folder below the workspace. */
function removal(at: Place): string {
  return at.file('removal.json', JSON.stringify(['rm', '-rf', 'gone'].join(' ')));
}

test('a run stops at what it may cost, and says so', async () => {
  const [at, server] = [place(), await modelServer([{ text: 'one' }, { text: 'two' }])];
  const models = { 'openai/dear': { max_output_tokens: 50_000, input_usd: 100, output_usd: 1000 } };
  const env = { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` };
  const tasks = { max_cost_usd: 0.0001, notify_command: ['true'] };
  await scene(at, { model: 'openai/dear', models, tasks }, task(at, 'dear'), task(at, 'able', { maxCostUsd: 3 }));
  const ran = runs(await agent(at, ['tasks', 'run-due', '--json'], { env }));
  expect(ran.map(({ task_id: id, status }) => `${String(id)} ${String(status)}`).toSorted()).toEqual([
    'able done',
    'dear limit',
  ]);
  expect(ran.find(({ task_id: id }) => id === 'able')?.['cost_usd']).toBeGreaterThan(0);
  expect(server.requests).toHaveLength(1);
  await scene(at, { model: 'openai/unpriced', models }, task(at, 'unknown'));
  expect(runs(await agent(at, ['tasks', 'run-due', '--json'], { env }))).toMatchObject([
    { status: 'failed', summary: expect.stringContaining('the price of `openai/unpriced` is not known') as string },
  ]);
});

test('a reminder that comes due is said in the REPL, once, and what came before is said at its start', async () => {
  const at = place();
  const oven = { type: 'reminder', scheduleType: 'once', schedule: { delay: '5m' } } as const;
  await scene(
    at,
    { model: script(at, [{ text: 'Hello.' }]) },
    task(at, 'before', { ...oven, execution: { message: 'Call Ada' } }),
  );
  expect((await agent(at, ['tasks', 'run-due'])).stdout).toMatch(/^done before \w+: Call Ada\n$/);
  const next = await openSqliteStore({ file: file(at), now: Date.now });
  await (
    await next.tables(taskTableSet)
  ).add(task(at, 'oven', { ...oven, execution: { message: 'Take the pizza out' } }));
  await next.store.close();
  const { stdout } = await repl(
    at,
    [],
    [
      ['', /Since the last start:\n *done: Task before: Call Ada[^]*Reminder: Take the pizza out/],
      ['/tasks list --all', /oven +reminder +given/],
      ['/tasks runs', /Task oven[^]*Call Ada/],
      ['/tasks frobnicate', 'There is no /tasks frobnicate'],
    ],
  );
  expect(stdout.match(/Reminder: Take the pizza out/g)).toHaveLength(1);
  expect((await agent(at, ['tasks', 'runs', 'oven', '--json'])).stdout).toMatch(/"status": "done"[^]*"seen": true/);
  expect(told(at)).toBe('Reminder\nCall Ada\nReminder\nTake the pizza out\n');
});

test('tasks are paused, resumed and removed by the beginning of their id', async () => {
  const at = place();
  await scene(at, {}, task(at, 'news1'), task(at, 'lights'));
  expect((await agent(at, ['tasks', 'pause', 'new'])).stdout).toBe('Task news1 (Task news1) is paused.\n');
  expect((await agent(at, ['tasks', 'list', '--json'])).stdout).toMatch(/"id": "lights"[^]*"id": "news1"/);
  expect((await agent(at, ['tasks', 'resume', 'new'])).stdout).toMatch(/^Task news1 \(Task news1\) resumes at 20/);
  expect((await agent(at, ['tasks', 'rm', 'lig'])).code).toBe(0);
  expect(await agent(at, ['tasks', 'rm', 'lights'])).toMatchObject({ code: 2 });
  expect((await agent(at, ['tasks', 'list'])).stdout).toMatch(/^news1 .*\n$/);
});

/** A server of this machine. Each request is noted; the path says what it answers. */
async function interfaceServer(): Promise<{ readonly host: string; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(`${request.method ?? ''} ${path}`);
    response.setHeader('content-type', 'application/json');
    if (path.startsWith('/search'))
      response.end(JSON.stringify({ results: [{ title: 'Ink', url: 'https://ink.example/', content: 'A title.' }] }));
    else response.writeHead(path === '/broken' ? 500 : 200).end(JSON.stringify({ path }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

test('a call of an interface is made once it is allowed, without a model', async () => {
  const [at, { host, asked }] = [place(), await interfaceServer()];
  const web = { allow_local: [host], api: { allow: [{ url: `http://${host}/**`, methods: ['GET', 'POST'] }] } };
  const call = (id: string, path: string, method: string): Task =>
    task(at, id, { type: 'api_call', execution: { url: `http://${host}${path}`, method } });
  await scene(
    at,
    { web },
    call('look', '/state', 'GET'),
    call('lights', '/off', 'POST'),
    call('odd', '/broken', 'GET'),
  );
  const ran = runs(await agent(at, ['tasks', 'run-due', '--json']));
  const came = (id: string): unknown => ran.find(({ task_id: of }) => of === id);
  expect(came('look')).toMatchObject({ status: 'done', cost_usd: 0, summary: '200 {"path":"/state"}' });
  expect(came('odd')).toMatchObject({ status: 'done', summary: expect.stringMatching(/^500 /) as string });
  expect(came('lights')).toMatchObject({ status: 'needs_approval' });
  expect(asked.toSorted()).toEqual(['GET /broken', 'GET /state']);
  expect((await agent(at, ['tasks', 'approve', 'lights', '--yes'])).code).toBe(0);
  expect((await agent(at, ['tasks', 'run', 'lights'])).code).toBe(0);
  expect(asked.filter((line) => line === 'POST /off')).toHaveLength(2);
});

test("the user's yes to making a task with a call is one to that call, and to no other", async () => {
  const { host, asked } = await interfaceServer();
  const make = (path: string) => ({
    name: 'add_recurring_task',
    arguments: {
      schedule: 'daily 1am',
      task_type: 'api_call',
      description: 'Lights off',
      execution_data: { url: `http://${host}${path}`, method: 'POST', body: { on: false } },
    },
  });
  for (const mode of ['yes', 'no prompt', 'changed'] as const) {
    const at = place();
    const model = script(at, [{ calls: [make('/off')] }, { text: 'Done.' }]);
    await scene(at, {});
    const stdin = new PassThrough();
    stdin.write(`${JSON.stringify({ type: 'user', message: { role: 'user', content: 'go' } })}\n`);
    const onStdout = (text: string): void => {
      const said = lines(text);
      const question = said.find(({ type }) => type === 'control_request');
      const response = { subtype: 'success', request_id: question?.['request_id'], response: { behavior: 'allow' } };
      if (question && !said.some(({ type }) => type === 'tool_result'))
        stdin.write(`${JSON.stringify({ type: 'control_response', response })}\n`);
      if (said.at(-1)?.['type'] === 'result') stdin.end();
    };
    const prompted = mode === 'no prompt' ? ['--approval', 'never'] : ['--permission-prompt-tool', 'stdio'];
    const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json'];
    const made = await agent(at, ['-p', '-m', model, '--tools', '+tasks', ...formats, ...prompted], {
      stdin,
      onStdout,
    });
    expect(made.stdout.includes('agent tasks approve')).toBe(mode === 'no prompt');
    if (mode === 'changed') {
      const db = new Database(file(at));
      db.prepare("UPDATE scheduled_tasks SET execution_data = replace(execution_data, '/off', '/on')").run();
      db.close();
    }
    const [listed] = JSON.parse((await agent(at, ['tasks', 'list', '--json'])).stdout) as { readonly id: string }[];
    const ran = await agent(at, ['tasks', 'run', listed?.id ?? '', '--json']);
    expect([mode, ran.code, runs(ran)[0]?.['status']]).toEqual([
      mode,
      ...(mode === 'yes' ? [0, 'done'] : [6, 'needs_approval']),
    ]);
  }
  expect(asked).toEqual(['POST /off']);
});

test('a search is made, and one request tells of what it found', async () => {
  const [at, { host, asked }, server] = [place(), await interfaceServer(), await modelServer([{ text: 'Ink leads.' }])];
  const search = { provider: 'searxng', base_url: `http://${host}` };
  const env = { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` };
  const execution = { query: 'US top news', limit: 3 };
  await scene(
    at,
    { model: 'openai/gpt-5.2', web: { search } },
    task(at, 'told', { type: 'web_search', execution }),
    task(at, 'bare', { type: 'web_search', execution: { ...execution, summarize: false } }),
  );
  const ran = runs(await agent(at, ['tasks', 'run-due', '--json'], { env }));
  const came = (id: string): unknown => ran.find(({ task_id: of }) => of === id);
  expect(came('told')).toMatchObject({ status: 'done', summary: 'Ink leads.' });
  expect(came('bare')).toMatchObject({
    status: 'done',
    cost_usd: 0,
    summary: expect.stringContaining('ink.example') as string,
  });
  expect(asked).toHaveLength(2);
  expect(server.requests).toHaveLength(1);
  expect(JSON.stringify(server.requests[0]?.body)).toContain('ink.example');
});

test('the session of a run is not the one that -c goes on with', async () => {
  const at = place();
  const model = script(at, [{ text: 'Hello.' }, { text: 'Again.' }]);
  await scene(at, { model }, task(at, 'news'));
  const json = ['--output-format', 'json'];
  const [first] = lines((await agent(at, ['-p', 'hi', ...json])).stdout);
  const [run] = runs(await agent(at, ['tasks', 'run-due', '--json']));
  const [next] = lines((await agent(at, ['-c', '-p', 'go on', ...json])).stdout);
  expect(next?.['session_id']).toBe(first?.['session_id']);
  expect(run?.['session_id']).not.toBe(first?.['session_id']);
  const session = String(run?.['session_id']);
  expect((await agent(at, ['-r', session, '-p', 'more', ...json])).code).toBe(0);
  expect(lines((await agent(at, ['-c', '-p', 'on', ...json])).stdout)).toMatchObject([{ session_id: session }]);
});

test('a task is not freer than the session that made it was then', async () => {
  const at = place({ 'a.txt': 'x' });
  const writes = script(at, [
    { text: 'I write.', calls: [{ name: 'file_write', arguments: { path: 'made.txt', content: 'x' } }] },
    { text: 'Done.' },
  ]);
  await scene(at, { model: writes });
  const sessions = async (): Promise<readonly { id: string }[]> =>
    JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  await agent(at, ['-p', '--approval', 'mutating', 'list *.txt', '-m', 'offline/offline']);
  const strict = (await sessions())[0]?.id ?? '';
  await agent(at, ['-p', '--approval', 'never', 'list *.txt', '-m', 'offline/offline']);
  const free = (await sessions()).find(({ id }) => id !== strict)?.id ?? '';
  await agent(at, ['-p', '--approval', 'never', '--tools', 'glob', 'list *.txt', '-m', 'offline/offline']);
  const narrow = (await sessions()).find(({ id }) => id !== strict && id !== free)?.id ?? '';
  const opened = await openSqliteStore({ file: file(at), now: Date.now });
  const tasks = await opened.tables(taskTableSet);
  await tasks.add(task(at, 'strict', { madeInSession: strict }));
  await tasks.add(task(at, 'narrow', { madeInSession: narrow }));
  await tasks.add(task(at, 'free', { madeInSession: free }));
  await opened.store.close();
  await agent(at, ['tasks', 'run', 'strict']);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
  await agent(at, ['tasks', 'run', 'narrow']);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
  await agent(at, ['tasks', 'run', 'free']);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(true);
});

import { Ajv2020 } from 'ajv/dist/2020.js';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { streamLines } from '../../src/kernel/core/stream-lines.js';
import { isRecord } from '../../src/kernel/core/json.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import { agent, atTerminal, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

const paid = (cost: number): unknown => ({ input_tokens: 100, output_tokens: 10, cost_usd: cost });
const calls = (...made: readonly (readonly [name: string, args: object])[]): unknown => ({
  calls: made.map(([name, args]) => ({ name, arguments: args })),
  usage: paid(0.01),
});
const ask = (name: string, more: object = {}): readonly [string, object] => [
  'agent',
  { agent: name, prompt: 'find the word', description: 'find a word', ...more },
];
const done = { text: 'All done.', usage: paid(0.02) };

/** A place whose user has an agent `finder`, which plays these turns. */
function withAgent(turns: readonly unknown[], fields = 'tools: Read, Grep, Glob, Bash(ls *)'): At {
  const at = place({ 'a.txt': 'the word\n' });
  write(join(at.env.AGENT_HOME ?? '', 'finder.json'), JSON.stringify({ turns }));
  define(at, 'finder', `${fields}\nmodel: offline/${join(at.env.AGENT_HOME ?? '', 'finder.json')}`);
  return at;
}

function define(at: At, name: string, fields: string): void {
  const text = `---\nname: ${name}\ndescription: Finds words.\n${fields}\n---\nYou find words.\n`;
  write(join(at.env.AGENT_HOME ?? '', 'agents', `${name}.md`), text);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const go = (at: At, turns: readonly unknown[], ...more: readonly string[]): readonly string[] => [
  ...['-p', '-m', script(at, turns), '--output-format', 'stream-json'],
  ...more,
  'go',
];

/** The result of the nth call of an agent. */
function resultOf(stdout: string, n = 0): Record<string, unknown> {
  const result = lines(stdout).filter(({ type, name }) => type === 'tool_result' && name === 'agent')[n];
  const envelope: unknown = JSON.parse(String(result?.output));
  return isRecord(envelope) ? envelope : {};
}

function idOf(stdout: string): string {
  return String(lines(stdout)[0]?.session_id);
}

async function opened(at: At) {
  return await openSqliteStore({ file: join(at.env.AGENT_HOME ?? '', 'agent.db'), now: Date.now });
}

const found = [calls(['grep', { pattern: 'word' }]), { text: 'a.txt:1', usage: paid(0.005) }];

test('an agent works in a session of its own; its last message is the result and its cost counts', async () => {
  const at = withAgent(found);
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  const result = resultOf(ran.stdout);
  const { agent_session_id: child_id, ...plain } = lines(ran.stdout).find((line) => 'agent_session_id' in line) ?? {};
  expect(child_id).toBe(result.agent_session_id);
  expect(plain).toMatchObject({ type: 'usage' });
  const isUsage = new Ajv2020({ strict: false }).compile(streamLines.usage);
  expect([isUsage({ ...plain, agent_session_id: child_id }), isUsage({ ...plain, other: 1 })]).toEqual([true, false]);
  expect(result).toEqual({
    output: 'a.txt:1',
    status: 'completed',
    agent_session_id: expect.any(String),
    turns: 1,
    tool_calls: 1,
    usage: { input_tokens: 200, output_tokens: 20, cache_read_tokens: 0, cache_write_tokens: 0 },
    cost_usd: 0.015,
  });
  expect(lines(ran.stdout).at(-1)).toMatchObject({ usage: { input_tokens: 400, cost_usd: expect.closeTo(0.045, 9) } });
  const listed = async (...more: readonly string[]): Promise<readonly unknown[]> =>
    JSON.parse((await agent(at, ['sessions', 'list', '--json', ...more])).stdout) as readonly unknown[];
  const parent = { id: idOf(ran.stdout), cost_usd: expect.closeTo(0.045, 9), kind: null };
  const child = {
    id: result.agent_session_id,
    parent_id: parent.id,
    parent_call_id: 'script_0_0',
    kind: 'agent',
    title: 'finder: find a word',
    cost_usd: expect.closeTo(0.015, 9),
  };
  expect(await listed()).toEqual([expect.objectContaining(parent)]);
  expect(await listed('--all')).toEqual([expect.objectContaining(parent), expect.objectContaining(child)]);
  const stats = JSON.parse((await agent(at, ['stats', '--json'])).stdout) as readonly Record<string, unknown>[];
  expect(stats.find(({ table }) => table === 'with_tools')).toMatchObject({
    turns: 1,
    requests: 4,
    cost_usd: expect.closeTo(0.045, 9),
  });
  const { store } = await opened(at);
  const kinds = (await store.load(parent.id)).map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'agent_usage')).toHaveLength(2);
  const own = await store.load(String(result.agent_session_id));
  expect(own[0]?.content).toMatch(/^You find words\.\n/);
  expect(own[1]?.content).toBe('glob file_read grep bash');
  expect(own[2]).toMatchObject({ kind: 'user', content: 'find the word' });
  await store.close();
});

test('the export, the search and the deletion of sessions know those of agents, and nobody goes on with one', async () => {
  const at = withAgent(found);
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  const id = String(resultOf(ran.stdout).agent_session_id);
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  expect(lines(exported.stdout)[0]).toMatchObject({ id, kind: 'agent', parent_call_id: 'script_0_0' });
  expect((await agent(at, ['search', 'find the word', '--json'])).stdout).toContain(id);
  expect((await agent(at, ['audit', '--tool', 'grep'])).stdout).toContain(id.slice(0, 13));
  const refused = await agent(at, go(at, [done], '-r', id));
  expect(refused).toMatchObject({ code: 7 });
  expect(refused.stderr).toContain(`belongs to a sub-agent of session ${idOf(ran.stdout)}`);
  expect(await agent(at, go(at, [done], '-r', id, '--fork'))).toMatchObject({ code: 0 });
  await agent(at, ['sessions', 'rm', idOf(ran.stdout)]);
  expect((await agent(at, ['sessions', 'list', '--all', '--json'])).stdout).not.toContain(`"id": "${id}"`);
});

test('without files of agents nothing is offered, and the first request is what it was', async () => {
  const at = place();
  const offered = async (...more: readonly string[]): Promise<unknown> =>
    lines((await agent(at, go(at, [done], ...more))).stdout)[0]?.tools;
  const usual = ['glob', 'file_read', 'grep', 'file_write', 'file_edit', 'bash'];
  expect(await offered()).toEqual(usual);
  expect(await offered('--tools', '+agents')).toEqual([...usual, 'agent']);
  define(at, 'finder', '');
  expect(await offered()).toEqual([...usual, 'agent']);
  expect(await offered('--tools', '-agents')).toEqual(usual);
  expect(await offered('--tools', 'glob')).toEqual(['glob']);
  expect(await offered('--set', 'tools.agents=false')).toEqual(usual);
});

test('agents of a project count once they are trusted, and a changed byte asks again', async () => {
  const at = place({
    '.git/HEAD': '',
    '.claude/agents/helper.md': '---\nname: helper\ndescription: Helps.\n---\nHelp.\n',
  });
  const offered = async (): Promise<boolean> => {
    const { stdout } = await agent(at, ['-p', '-m', script(at, [done]), '--output-format', 'stream-json', 'go']);
    return JSON.stringify(lines(stdout)[0]?.tools).includes('"agent"');
  };
  expect(await offered()).toBe(false);
  const { openTrustFile } = await import('../../src/kernel/config/trust-file.js');
  const { projects } = await import('../../src/app/project-files.js');
  const { agentPaths } = await import('../../src/kernel/config/settings-file.js');
  const files = agentPaths(at.env, at.env.HOME ?? '');
  const here = { cwd: at.work, home: at.env.HOME ?? '', config: { files } };
  const set = await projects.files(here);
  expect(set?.files.flatMap((file) => file.lines)).toEqual([
    'agent helper: Helps.',
    'tools: those of the session; model: that of the session',
  ]);
  if (set) openTrustFile(files.trust).files.record(set, true, 1);
  expect(await offered()).toBe(true);
  at.file('.claude/agents/helper.md', '---\nname: helper\ndescription: Helps.\n---\nHelp!\n');
  expect(await offered()).toBe(false);
});

test('the response after the last turn of an agent has no tools; an answer that is none is an error', async () => {
  const often = Array.from({ length: 40 }, (_turn, n) => calls(['grep', { pattern: `word${n}` }]));
  const at = withAgent(often);
  const limited = resultOf((await agent(at, go(at, [calls(ask('finder')), done]))).stdout);
  expect(limited).toMatchObject({ status: 'limit_reached', turns: 30, tool_calls: 30 });
  const spoken = withAgent(
    often.map((turn) => ({ ...(turn as object), text: 'so far' })),
    'maxTurns: 2',
  );
  expect(resultOf((await agent(spoken, go(spoken, [calls(ask('finder')), done]))).stdout)).toMatchObject({
    output: 'so far',
    status: 'limit_reached',
    turns: 2,
    usage: { input_tokens: 300 },
  });
  const tokens = withAgent(often.map((turn) => ({ ...(turn as object), text: 'so far' })));
  const few = go(tokens, [calls(ask('finder')), done], '--set', 'agents.max_tokens=300');
  expect(resultOf((await agent(tokens, few)).stdout)).toMatchObject({ status: 'limit_reached', turns: 3 });
  const silent = withAgent([{ text: ' ' }, { text: '' }]);
  expect(resultOf((await agent(silent, go(silent, [calls(ask('finder')), done]))).stdout)).toMatchObject({
    code: 'execution_failed',
    error: 'The agent finder failed: The model ended its answer without any text.',
  });
  const broken = withAgent([{ text: 'half', fault: { code: 'auth', message: 'no key' } }]);
  expect(resultOf((await agent(broken, go(broken, [calls(ask('finder')), done]))).stdout)).toMatchObject({
    code: 'execution_failed',
    error: 'The agent finder failed: no key',
    details: { output: 'half' },
  });
});

test('an agent goes on with its own work, has no agents, and is found by its name', async () => {
  const at = withAgent([...found, calls(ask('finder')), { text: 'still a.txt:1', usage: paid(0.005) }], 'tools: "*"');
  const first = await agent(at, go(at, [calls(ask('finder')), done]));
  const id = String(resultOf(first.stdout).agent_session_id);
  const again = [
    calls(ask('finder', { resume: id })),
    calls(ask('fnider')),
    calls(ask('finder', { resume: 'no' })),
    done,
  ];
  const second = await agent(at, go(at, [calls(ask('finder')), done, ...again], '-r', idOf(first.stdout)));
  expect(resultOf(second.stdout)).toMatchObject({ output: 'still a.txt:1', agent_session_id: id, turns: 1 });
  expect(resultOf(second.stdout, 1)).toMatchObject({ code: 'not_found', error: expect.stringContaining('finder') });
  expect(resultOf(second.stdout, 2)).toMatchObject({ code: 'not_found' });
  const { store } = await opened(at);
  const results = (await store.load(id)).filter(({ kind }) => kind === 'tool_result');
  expect(results.at(-1)?.content).toContain('There is no tool called "agent"');
  expect(readFileSync(join(at.work, 'a.txt'), 'utf8')).toBe('the word\n');
  await store.close();
});

test('an agent is judged as its session is, and more strictly where its file says so', async () => {
  const dangerous = calls(['bash', { command: 'rm -rf ../elsewhere/nothing' }]);
  const change = calls(['bash', { command: 'touch made' }]);
  const tried = async (fields: string, turn: unknown, ...more: readonly string[]): Promise<string> => {
    const at = withAgent([turn, { text: 'tried' }], fields);
    const ran = await agent(at, go(at, [calls(ask('finder')), done], ...more));
    const { store } = await opened(at);
    const events = await store.load(String(resultOf(ran.stdout).agent_session_id));
    await store.close();
    return String(events.find(({ kind }) => kind === 'tool_result')?.content);
  };
  expect(await tried('', dangerous)).toContain('this run cannot ask');
  expect(await tried('', dangerous, '--approval', 'never')).not.toContain('Not run');
  expect(await tried('permissionMode: bypassPermissions', dangerous)).toContain('this run cannot ask');
  expect(await tried('', change)).not.toContain('Not run');
  expect(await tried('permissionMode: plan', change)).toContain('Denied by policy: the agent finder only reads');
  expect(await tried('permissionMode: mutating', change)).toContain('calls of the agent finder need approval');
  expect(await tried('', change, '--set', 'rules.deny=[{"argv":["touch"]}]')).toContain('Denied by policy');
});

test('an agent of a resumed session has no tool that the session does not have', async () => {
  const at = withAgent(
    [calls(['file_write', { path: 'new.txt', content: 'x' }]), { text: 'I could not.' }],
    'tools: Write',
  );
  const first = await agent(at, go(at, [{ text: 'Hello.' }], '--tools', 'agent,file_read'));
  const resumed = await agent(
    at,
    go(at, [{ text: 'Hello.' }, calls(ask('finder')), done], '--approval', 'never', '-r', idOf(first.stdout)),
  );
  expect(resumed.code).toBe(0);
  expect(existsSync(join(at.work, 'new.txt'))).toBe(false);
});

test('what is left of the spend limit is all an agent may spend', async () => {
  const at = withAgent(found);
  const ran = await agent(at, go(at, [calls(ask('finder')), done], '--max-cost', '0.015'));
  expect(resultOf(ran.stdout)).toMatchObject({ code: 'limit_reached', details: { turns: 1, cost_usd: 0.01 } });
  expect(ran).toMatchObject({ code: 5 });
});

test('/agents lists who there is, with tools and models', async () => {
  const at = withAgent(found, 'tools: Read\npermissionMode: plan\nhue: red');
  define(at, 'nobody', 'description: ""');
  write(join(at.env.AGENT_HOME ?? '', 'agents', 'empty.md'), '---\nname: empty\n---\nText\n');
  const { stdout } = await repl(at, ['-m', script(at, [done])], [['/agents', /hue is ignored/]]);
  expect(stdout).toContain('finder (user): Finds words.');
  expect(stdout).toMatch(/tools: Read; model: offline\/.*finder\.json; permission mode: plan/);
  expect(stdout).toContain('explore (program): Finds files');
  expect(stdout).toContain('hue is ignored.');
  expect(stdout).toContain('has no description; the agent is not loaded.');
});

test('agents that only read run side by side, others one after the other', async () => {
  const slow = [{ text: 'found', delay_ms: 150, usage: paid(0.005) }];
  const at = withAgent(slow, 'tools: Read');
  const overlaps = async (): Promise<number> => {
    const four = Array.from({ length: 5 }, () => ask('finder'));
    const ran = await agent(at, go(at, [calls(...four), done]));
    expect([0, 1, 2, 3, 4].map((n) => resultOf(ran.stdout, n).output)).toEqual(Array(5).fill('found'));
    const { store } = await opened(at);
    const events = await store.load(idOf(ran.stdout));
    await store.close();
    let open = 0;
    let most = 0;
    for (const { kind } of events) {
      if (kind === 'tool_started') most = Math.max(most, ++open);
      if (kind === 'agent_usage') open -= 1;
    }
    return most;
  };
  expect(await overlaps()).toBe(4);
  define(at, 'finder', `tools: Read, Bash\nmodel: offline/${join(at.env.AGENT_HOME ?? '', 'finder.json')}`);
  expect(await overlaps()).toBe(1);
});

test('hooks fire in an agent and are told who it is', async () => {
  const at = withAgent(found);
  const command = 'cat >>"$AGENT_HOME/seen"; echo >>"$AGENT_HOME/seen"';
  const hook = [{ matcher: '', hooks: [{ type: 'command', command }] }];
  const events = ['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'Stop', 'SubagentStop', 'SessionEnd'];
  write(
    join(at.env.AGENT_HOME ?? '', 'hooks.json'),
    JSON.stringify({ hooks: Object.fromEntries(events.map((event) => [event, hook])) }),
  );
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  const seen = lines(readFileSync(join(at.env.AGENT_HOME ?? '', 'seen'), 'utf8').replaceAll('\n\n', '\n'));
  const child = resultOf(ran.stdout).agent_session_id;
  expect(new Set(seen.map(({ session_id }) => session_id))).toEqual(new Set([idOf(ran.stdout)]));
  expect(
    seen.map(({ hook_event_name, tool_name, agent_id, agent_type }) => [
      hook_event_name,
      tool_name,
      agent_id,
      agent_type,
    ]),
  ).toEqual([
    ['SessionStart', undefined, undefined, undefined],
    ['UserPromptSubmit', undefined, undefined, undefined],
    ['PreToolUse', 'Agent', undefined, undefined],
    ['PreToolUse', 'Grep', child, 'finder'],
    ['SubagentStop', undefined, child, 'finder'],
    ['Stop', undefined, undefined, undefined],
    ['SessionEnd', undefined, undefined, undefined],
  ]);
});

test('a question of an agent goes to the person and names it; a yes counts', async () => {
  const at = withAgent([calls(['bash', { command: 'rm -rf gone' }]), { text: 'it is gone' }], 'tools: Bash');
  const { stdout } = await repl(
    at,
    ['-m', script(at, [calls(ask('finder')), done])],
    [
      ['go', 'or no (and why): '],
      ['yes', 'All done.'],
    ],
  );
  expect(stdout).toContain('asked by the agent finder');
  expect(stdout).toContain('finder: 1 call in 2 requests');
});

test('the result of an agent that called nothing counts its request', async () => {
  const at = withAgent([{ text: 'I know it.' }]);
  const { stdout } = await repl(at, ['-m', script(at, [calls(ask('finder')), done])], [['go', 'All done.']]);
  expect(stdout).toContain('finder: 0 calls in 1 request');
});

test('a call of an agent that the program left open names its session, and what it spent is counted', async () => {
  const at = withAgent([...found, { text: 'went on', usage: paid(0.005) }]);
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  const [parent, child] = [idOf(ran.stdout), String(resultOf(ran.stdout).agent_session_id)];
  // As a kill leaves it: the second usage of the agent is not recorded, nor is the result.
  const db = new Database(join(at.env.AGENT_HOME ?? '', 'agent.db'));
  db.prepare(
    `DELETE FROM events WHERE session_id = @id AND seq >=
      (SELECT max(seq) FROM events WHERE session_id = @id AND kind = 'agent_usage')`,
  ).run({ id: parent });
  db.close();
  const turns = [calls(ask('finder')), calls(ask('finder', { resume: child })), done];
  const again = await agent(at, go(at, turns, '-r', parent));
  expect(resultOf(again.stdout)).toMatchObject({ output: 'went on', agent_session_id: child, status: 'completed' });
  const { store, records } = await opened(at);
  const results = (await store.load(parent)).filter(({ kind }) => kind === 'tool_result');
  expect(results[0]?.data).toMatchObject({
    success: false,
    synthetic: true,
    output: expect.stringContaining(`resume ${JSON.stringify(child).replaceAll('"', '\\"')}`),
  });
  const [listed] = await store.list(1);
  expect(listed?.costUsd).toBeCloseTo(0.01 + 0.01 + 0.005 + 0.01 + 0.005 + 0.02, 9);
  expect((await records.verify(null)).breaks).toEqual([]);
  await store.close();
});

test('what an agent that was left open did to files and folders is undone in the session that it worked for', async () => {
  const turns = [
    calls(['file_write', { path: 'made/deep/new.txt', content: 'one' }], ['bash', { command: 'mkdir empty' }]),
    { text: 'written' },
  ];
  const at = withAgent(turns, 'tools: Write, Bash');
  const ran = await agent(at, go(at, [calls(ask('finder')), done], '--approval', 'never'));
  const parent = idOf(ran.stdout);
  // As a kill leaves it: the result is not recorded.
  const db = new Database(join(at.env.AGENT_HOME ?? '', 'agent.db'));
  db.prepare(
    `DELETE FROM events WHERE session_id = @id AND seq >=
      (SELECT max(seq) FROM events WHERE session_id = @id AND kind = 'tool_result')`,
  ).run({ id: parent });
  db.close();
  await agent(at, go(at, [done], '-r', parent));
  expect(readdirSync(at.work)).toEqual(expect.arrayContaining(['made', 'empty']));
  expect((await agent(at, ['undo', '--yes', '-r', parent])).code).toBe(0);
  expect(readdirSync(at.work).filter((name) => /made|empty/.test(name))).toEqual([]);
});

test('undo and redo take back and do again what an agent did to files, in the session that it worked for', async () => {
  const turns = [
    calls(['file_write', { path: 'made/new.txt', content: 'one' }]),
    calls(['file_read', { path: 'a.txt' }], ['file_edit', { path: 'a.txt', old_string: 'the', new_string: 'a' }]),
    calls(['file_edit', { path: 'made/new.txt', old_string: 'one', new_string: 'two' }]),
    { text: 'written' },
  ];
  const at = withAgent(turns, 'tools: Read, Write, Edit');
  const { stdout } = await agent(at, go(at, [calls(ask('finder')), done]));
  const read = (name: string): string | null => {
    try {
      return readFileSync(join(at.work, name), 'utf8');
    } catch {
      return null;
    }
  };
  expect([read('a.txt'), read('made/new.txt')]).toEqual(['a word\n', 'two']);
  expect(await agent(at, ['undo', '--yes', '-r', idOf(stdout)])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /Undo event \d+, agent\(finder.*\n.*remove {2}made\/new.txt\n +remove {2}made\/\n.*a.txt\nDone: 2 files/,
    ),
  });
  expect([read('a.txt'), read('made')]).toEqual(['the word\n', null]);
  await agent(at, ['redo', '--yes', '-r', idOf(stdout)]);
  expect([read('a.txt'), read('made/new.txt')]).toEqual(['a word\n', 'two']);
});

test('what an agent did to files before the program ended can be undone, too', async () => {
  const turns = [calls(['file_write', { path: 'new.txt', content: 'one' }]), { text: 'written' }];
  const at = withAgent(turns, 'tools: Write');
  const parent = idOf((await agent(at, go(at, [calls(ask('finder')), done]))).stdout);
  const db = new Database(join(at.env.AGENT_HOME ?? '', 'agent.db'));
  db.prepare(
    `DELETE FROM events WHERE session_id = @id AND seq >=
      (SELECT max(seq) FROM events WHERE session_id = @id AND kind = 'tool_result')`,
  ).run({ id: parent });
  db.close();
  await agent(at, go(at, [calls(ask('finder')), done], '-r', parent));
  expect(await agent(at, ['undo', '--yes', '-r', parent])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('remove  new.txt'),
  });
});

test('an agent whose name has spaces is called by that name', async () => {
  const at = withAgent(found);
  const folder = join(at.env.AGENT_HOME ?? '', 'agents');
  const text = readFileSync(join(folder, 'finder.md'), 'utf8');
  write(join(folder, 'words.agent.md'), text.replace('name: finder', 'name: "Finder of 2 Words"'));
  const ran = await agent(at, go(at, [calls(ask('Finder of 2 Words')), done]));
  expect(resultOf(ran.stdout)).toMatchObject({ output: 'a.txt:1', status: 'completed' });
  const listed = await agent(at, ['sessions', 'list', '--all', '--json']);
  expect(listed.stdout).toContain('Finder of 2 Words: find a word');
});

test.each([
  ['user', 'home', '.claude/agent-memory/finder/MEMORY.md'],
  ['project', 'work', '.claude/agent-memory/finder/MEMORY.md'],
  ['local', 'work', '.claude/agent-memory-local/finder/MEMORY.md'],
] as const)('the notes of an agent with memory: %s stand in its task', async (scope, where, path) => {
  const at = withAgent([...found, { text: 'again' }], `memory: ${scope}`);
  at.file('.git/HEAD', '');
  const file = join(at[where], path);
  const lines = Array.from({ length: 300 }, (_, line) => `note ${line + 1}`);
  write(file, lines.join('\n'));
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  const { store } = await opened(at);
  const events = await store.load(String(resultOf(ran.stdout).agent_session_id));
  await store.close();
  const task = String(events.find(({ kind }) => kind === 'user')?.content);
  expect(task).toMatch(/^find the word\n/);
  expect([task.includes(file), task.includes('note 200'), task.includes('note 201')]).toEqual([true, true, false]);
});

test.each(['sonnet', 'claude-opus-4-6', 'Claude Sonnet 4', 'GPT-5.4'])(
  'an agent whose model is %s has that of its session where another provider is used, and a notice says so',
  async (model) => {
    const at = place();
    define(at, 'finder', `model: ${model}`);
    const ran = await agent(at, go(at, [calls(ask('finder')), { text: 'from the model of the session' }, done]));
    expect(resultOf(ran.stdout)).toMatchObject({ status: 'completed' });
    const notice = lines(ran.stdout).find(({ type, code }) => type === 'notice' && code === 'agent_model');
    expect(notice?.message).toMatch(new RegExp(`^Agent finder uses .*: offline has no model ${model}\\.$`));
  },
);

test('an agent whose tools are those of Copilot has ours; one without tools is reported', async () => {
  const at = withAgent(found, "tools: ['search', 'read', 'vscode/askQuestions']");
  const ran = await agent(at, go(at, [calls(ask('finder')), done]));
  const { store } = await opened(at);
  const own = await store.load(String(resultOf(ran.stdout).agent_session_id));
  await store.close();
  expect(own[1]?.content).toBe('glob file_read grep');
  define(at, 'none', 'tools: []');
  const checked = await agent(at, ['agents', 'check']);
  expect(checked.stdout).toContain('none.md: tools names no tool, so there are none');
  expect(checked.stdout).toContain('finder.md: tools vscode/askQuestions is ignored');
});

test('@name has the agent do the task, and the model gets its report with the message', async () => {
  const at = withAgent([{ text: 'The word is in a.txt.' }]);
  const args = ['-p', '-m', script(at, [{ text: 'Found.' }]), '--output-format', 'stream-json'];
  const run = await agent(at, [...args, '@finder where is the word? Not @nobody.']);
  expect(run.code).toBe(0);
  const call = lines(run.stdout).find(({ type }) => type === 'tool_call');
  expect(JSON.parse(String(call?.['arguments']))).toEqual({
    agent: 'finder',
    prompt: 'where is the word? Not @nobody.',
    description: 'where is the word? Not @nobody.',
  });
  expect(resultOf(run.stdout)).toMatchObject({ output: 'The word is in a.txt.' });
  const { stdout } = await agent(at, ['sessions', 'show', idOf(run.stdout), '--json']);
  const events = JSON.parse(stdout) as readonly {
    readonly kind: string;
    readonly content: string;
    readonly data: unknown;
  }[];
  expect(events.filter(({ kind }) => kind === 'user')).toMatchObject([
    {
      content: '@finder where is the word? Not @nobody.\n\nReport of finder:\nThe word is in a.txt.',
      data: { typed: '@finder where is the word? Not @nobody.' },
    },
  ]);
  const plain = await agent(at, [...args, '@nobody where?']);
  expect(lines(plain.stdout).some(({ type }) => type === 'tool_call')).toBe(false);
  const empty = await agent(at, [...args, '@finder']);
  expect(empty.stdout + empty.stderr).toContain('write what finder is to do after @finder');
});

test('@name in a message that is typed while a turn runs has the agent do the task when the message is delivered', async () => {
  const at = withAgent([{ text: 'The word is in a.txt.' }]);
  const turns = [calls(['bash', { command: 'sleep 3' }]), { text: 'Both done.' }];
  const model = script(at, turns);
  await atTerminal(
    at,
    ['-m', model, '--approval', 'never'],
    [
      ['❯', 'go\n'],
      [/sleep 3/, '@finder where is the word?\n'],
      ['Both done.', '/exit\n'],
    ],
  );
  const listed = await agent(at, ['sessions', 'list', '--json']);
  const [{ id }] = JSON.parse(listed.stdout) as [{ readonly id: string }];
  const { store } = await opened(at);
  const events = await store.load(id);
  await store.close();
  const told = events.flatMap(({ kind, content, data }) =>
    kind === 'user' || (kind === 'tool_call' && (data as { by?: string }).by === 'command')
      ? [`${kind} ${content}`]
      : [],
  );
  expect(told).toEqual([
    'user go',
    'user @finder where is the word?',
    'tool_call agent(finder: where is the word?)',
    'user Report of finder:\nThe word is in a.txt.',
  ]);
  expect(events.findLast(({ kind }) => kind === 'assistant')?.content).toBe('Both done.');
});

test('effort of an agent is that of its requests; another value is named', async () => {
  const at = withAgent([{ text: 'Here.' }], 'effort: high');
  const run = await agent(at, go(at, [calls(ask('finder')), done]));
  const child = String(resultOf(run.stdout)['agent_session_id']);
  const { stdout } = await agent(at, ['sessions', 'show', child, '--json']);
  const tools = (JSON.parse(stdout) as readonly { readonly kind: string }[]).find(({ kind }) => kind === 'tools');
  expect(tools).toMatchObject({ data: { settings: { effort: 'high' } } });
  define(at, 'finder', 'effort: enormous');
  const checked = await agent(at, ['config', 'check']);
  expect(checked.stdout + checked.stderr).toContain('effort enormous is ignored; write one of none, minimal, low');
});

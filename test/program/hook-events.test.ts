import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { triedServer } from '../features/mcp/tried-server.js';
import { modelServer, type Turn } from '../e2e/model-server.js';
import { agent, lines, place, script } from './inside.js';

type At = ReturnType<typeof place>;
type Fields = Readonly<Record<string, unknown>>;

/** A place whose user has these commands as hooks, by their events. */
function withHooks(hooks: Readonly<Record<string, string>>, files: Readonly<Record<string, string>> = {}): At {
  const at = place(files);
  mkdirSync(at.env.AGENT_HOME ?? '', { recursive: true });
  const groups = Object.entries(hooks).map(([event, command]) => [event, [{ hooks: [{ type: 'command', command }] }]]);
  writeFileSync(join(at.env.AGENT_HOME ?? '', 'hooks.json'), JSON.stringify({ hooks: Object.fromEntries(groups) }));
  return at;
}

/** A command that keeps its input, and prints this. */
const keeps = (event: string, printed: object | null = null): string =>
  `(cat; echo) >> "$HOME/${event}"${printed === null ? '' : `; printf '%s' '${JSON.stringify(printed)}'`}`;
const specific = (fields: object): object => ({ hookSpecificOutput: fields });
/** The inputs that hooks on an event got. */
const kept = (at: At, event: string): readonly Fields[] => {
  const path = join(at.home, event);
  return existsSync(path) ? lines(readFileSync(path, 'utf8')) : [];
};
const call = (command: string): Turn => ({ calls: [{ name: 'bash', arguments: { command } }] });
const read = (path: string): Turn => ({ calls: [{ name: 'file_read', arguments: { path } }] });
const headless = ['-p', '--output-format', 'stream-json'] as const;

async function run(at: At, turns: readonly object[], ...more: readonly string[]): Promise<readonly Fields[]> {
  const { stdout } = await agent(at, [...headless, '-m', script(at, turns), ...more, 'go']);
  return lines(stdout);
}

const resultOf = (said: readonly Fields[]): Fields => said.find(({ type }) => type === 'result') ?? {};
const outputs = (said: readonly Fields[]): readonly Fields[] =>
  said.filter(({ type }) => type === 'tool_result').map(({ output }) => JSON.parse(String(output)) as Fields);
/** The notes of a session for the model. */
async function notes(at: At, said: readonly Fields[]): Promise<readonly unknown[]> {
  const { stdout } = await agent(at, ['sessions', 'export', String(said[0]?.['session_id']), '--format', 'jsonl']);
  return lines(stdout)
    .filter(({ kind, data }) => kind === 'user' && (data as Fields | null)?.['note'] === true)
    .map(({ content }) => content);
}

test('PermissionDenied: a hook reads why a call was not run, and the model reads what the hook adds', async () => {
  const added = specific({ retry: true, additionalContext: 'Ask for less.' });
  const at = withHooks({ PermissionDenied: keeps('PermissionDenied', added) }, { '.env': 'A=1\n' });
  const said = await run(at, [read('.env'), { text: 'done' }]);
  expect(kept(at, 'PermissionDenied')).toMatchObject([
    {
      hook_event_name: 'PermissionDenied',
      tool_name: 'Read',
      tool_input: { file_path: join(at.work, '.env') },
      reason: expect.any(String) as string,
      decided_by: expect.any(String) as string,
    },
  ]);
  expect(outputs(said)).toMatchObject([
    { code: 'permission_denied', hook_message: 'Ask for less.\nA hook says that this call may be tried again.' },
  ]);
  const stops = keeps('PermissionDenied', { continue: false, stopReason: 'no' });
  const stopping = withHooks({ PermissionDenied: stops }, { '.env': 'A=1\n' });
  expect(resultOf(await run(stopping, [read('.env'), { text: 'done' }]))).toMatchObject({
    error: { code: 'hook', message: 'A hook stopped the turn: no' },
  });
});

test('PostToolBatch: one run for all calls of a response; its context is noted, and it may end the turn', async () => {
  const at = withHooks(
    { PostToolBatch: keeps('PostToolBatch', specific({ additionalContext: 'Two calls.' })) },
    { 'a.txt': 'one\n' },
  );
  const both = { calls: [...(read('a.txt').calls ?? []), ...(read('gone.txt').calls ?? [])] };
  const said = await run(at, [both, { text: 'done' }]);
  expect(kept(at, 'PostToolBatch')).toMatchObject([
    {
      tool_calls: [
        { tool_name: 'Read', tool_input: { file_path: join(at.work, 'a.txt') }, tool_response: 'one\n' },
        { tool_name: 'Read', tool_response: expect.stringContaining('gone.txt') as string },
      ],
    },
  ]);
  expect(await notes(at, said)).toEqual(['Two calls.']);
  const stopping = withHooks({ PostToolBatch: 'echo "enough" >&2; exit 2' }, { 'a.txt': 'one\n' });
  expect(resultOf(await run(stopping, [read('a.txt'), { text: 'done' }]))).toMatchObject({
    error: { code: 'hook', message: 'A hook stopped the turn: enough' },
  });
});

test('MessageDisplay: each text that the user sees, whole; it cannot be replaced', async () => {
  const at = withHooks({ MessageDisplay: keeps('MessageDisplay', specific({ displayContent: 'other' })) });
  const said = await run(at, [{ text: 'I look.', ...call('ls') }, call('ls'), { text: 'done' }]);
  const shown = kept(at, 'MessageDisplay');
  expect(shown).toMatchObject([
    { index: 0, final: true, delta: 'I look.' },
    { index: 0, final: true, delta: 'done' },
  ]);
  expect(new Set(shown.map(({ message_id: id }) => id)).size).toBe(2);
  expect(resultOf(said)).toMatchObject({ text: 'done' });
  expect(said.filter(({ code }) => code === 'hook')[0]).toMatchObject({
    message: expect.stringContaining('printed displayContent, which has no effect here') as string,
  });
});

test('FileChanged: files that the session has read, once for each content, and only if somebody else changed them', async () => {
  const at = withHooks(
    { FileChanged: keeps('FileChanged', specific({ additionalContext: 'It changed.' })) },
    { 'a.txt': 'one\n', 'b.txt': 'one\n', 'c.txt': 'one\n' },
  );
  const write = { calls: [{ name: 'file_write', arguments: { path: 'b.txt', content: 'two\n' } }] };
  const said = await run(
    at,
    [
      read('a.txt'),
      read('b.txt'),
      write,
      call('echo two > a.txt; echo two > c.txt'),
      call('true'),
      call('rm a.txt'),
      { text: 'done' },
    ],
    '--approval',
    'never',
  );
  expect(kept(at, 'FileChanged').map(({ file_path: path, event }) => [path, event])).toEqual([
    [join(at.work, 'a.txt'), 'change'],
    [join(at.work, 'a.txt'), 'unlink'],
  ]);
  expect(await notes(at, said)).toEqual(['It changed.', 'It changed.']);
});

test('ConfigChange: files of settings that change during a session', async () => {
  const at = withHooks({ ConfigChange: keeps('ConfigChange') });
  await run(
    at,
    [call('mkdir -p .agent .claude; echo "{}" > .claude/settings.local.json'), call('true'), { text: '' }],
    '--approval',
    'never',
  );
  expect(kept(at, 'ConfigChange')).toMatchObject([
    { source: 'local_settings', file_path: join(at.work, '.claude/settings.local.json') },
  ]);
});

test('InstructionsLoaded: the files of the prompt first, and those of a folder with its first file', async () => {
  const at = withHooks(
    { InstructionsLoaded: keeps('InstructionsLoaded') },
    {
      '.git/HEAD': 'ref: refs/heads/main\n',
      'AGENTS.md': 'Be kind.\n',
      'CLAUDE.local.md': 'Be quick.\n',
      'lib/AGENTS.md': 'Be exact.\n',
      'lib/a.txt': 'one\n',
      '.claude/rules/text.md': '---\npaths: "**/*.txt"\n---\nBe short.\n',
    },
  );
  await run(at, [read('lib/a.txt'), read('lib/a.txt'), { text: 'done' }]);
  const loaded = kept(at, 'InstructionsLoaded').map((one) =>
    [String(one['file_path']).slice(at.work.length + 1), one['memory_type'], one['load_reason']].join(' '),
  );
  expect(loaded.slice(0, 2).toSorted((a, b) => a.localeCompare(b))).toEqual([
    'AGENTS.md Project session_start',
    'CLAUDE.local.md Local session_start',
  ]);
  expect(loaded.slice(2).toSorted((a, b) => a.localeCompare(b))).toEqual([
    '.claude/rules/text.md Project path_glob_match',
    'lib/AGENTS.md Project nested_traversal',
  ]);
});

test('Elicitation: a hook answers what a server asks during a call, also without a user', async () => {
  const answer = specific({ action: 'accept', content: { who: 'Ada' } });
  const at = withHooks({ Elicitation: keeps('Elicitation', answer) });
  const { entry, list } = triedServer(at.home);
  list([{ name: 'ask', description: 'Asks who.' }]);
  writeFileSync(join(at.env.AGENT_HOME ?? '', 'mcp.json'), JSON.stringify({ mcpServers: { tried: entry } }));
  const calls = [{ name: 'tool_run', arguments: { tool: 'mcp__tried__ask', arguments: {} } }];
  const said = await run(at, [{ calls }, { text: 'done' }], '--approval', 'never');
  expect(kept(at, 'Elicitation')).toMatchObject([
    { mcp_server_name: 'tried', message: 'Who?', mode: 'form', requested_schema: { required: ['who'] } },
  ]);
  expect(outputs(said)[0]?.['output']).toContain('{"action":"accept","content":{"who":"Ada"}}');
});

/** A model on a server of this machine. */
async function served(at: At, turns: readonly Turn[]) {
  const server = await modelServer(turns);
  Object.assign(at.env, { OPENAI_API_KEY: 'placeholder', OPENAI_BASE_URL: `${server.url}/v1` });
  return server;
}

test('BeforeModel: a hook sees the body with placeholders and may add headers, but replaces none', async () => {
  const key = `sk-ant-api03-${'a1B2'.repeat(23)}AA`;
  const headers = { 'X-Trace': 'abc', Authorization: 'Bearer other', Host: 'elsewhere' };
  const printed = specific({ headers, llm_request: { model: 'other' } });
  const at = withHooks({ BeforeModel: keeps('BeforeModel', printed) }, { 'key.txt': `${key}\n` });
  const { requests } = await served(at, [read('key.txt'), { text: 'done' }]);
  const said = lines((await agent(at, [...headless, '-m', 'openai/m', 'go'])).stdout);
  expect(resultOf(said)).toMatchObject({ status: 'completed', text: 'done' });
  expect(requests.map((one) => one.headers['x-trace'])).toEqual(['abc', 'abc']);
  expect(requests.map((one) => one.headers.authorization)).toEqual(['Bearer placeholder', 'Bearer placeholder']);
  const seen = kept(at, 'BeforeModel');
  expect(seen).toMatchObject([{ provider: 'openai', model: 'm' }, { provider: 'openai' }]);
  expect(seen.map(({ llm_request: body }) => body)).toEqual(requests.map(({ body }) => body));
  expect(JSON.stringify(seen)).not.toContain(key);
  const told = said.filter(({ code }) => code === 'hook').map(({ message }) => String(message));
  expect(told).toContain('A hook cannot replace headers of a request. Not added: authorization, host.');
  expect(told.join()).toContain('printed llm_request, which has no effect here');
  const { stdout } = await agent(at, ['sessions', 'export', String(said[0]?.['session_id']), '--format', 'jsonl']);
  expect(stdout).toContain('"added_headers":["X-Trace","Authorization","Host"]');
});

test('BeforeModel: a hook that denies keeps the request from being sent; one that fails does not', async () => {
  const at = withHooks({ BeforeModel: 'echo "not today" >&2; exit 2' });
  const { requests } = await served(at, [{ text: 'done' }]);
  const ended = await agent(at, [...headless, '-m', 'openai/m', 'go']);
  expect(resultOf(lines(ended.stdout))).toMatchObject({
    status: 'failed',
    error: { code: 'hook', message: 'A hook stopped the turn: not today' },
  });
  expect(requests).toHaveLength(0);
  const failing = withHooks({ BeforeModel: 'exit 3' });
  await served(failing, [{ text: 'done' }]);
  const failed = await agent(failing, [...headless, '-m', 'openai/m', 'go']);
  expect(resultOf(lines(failed.stdout))).toMatchObject({ status: 'completed', text: 'done' });
});

test('AfterModel: a hook sees the answer before its calls run, and may discard it', async () => {
  const at = withHooks({ AfterModel: keeps('AfterModel', { decision: 'block', reason: 'no commands' }) });
  const said = await run(at, [{ text: 'I run it.', ...call('touch made') }, { text: 'done' }]);
  expect(kept(at, 'AfterModel')).toMatchObject([
    {
      provider: 'offline',
      llm_response: { text: 'I run it.', tool_calls: [{ name: 'bash', arguments: '{"command":"touch made"}' }] },
    },
  ]);
  expect(resultOf(said)).toMatchObject({ error: { code: 'hook', message: 'A hook stopped the turn: no commands' } });
  expect(existsSync(join(at.work, 'made'))).toBe(false);
});

test('a question to a model cannot be a hook of a request to a model', async () => {
  const at = place();
  mkdirSync(at.env.AGENT_HOME ?? '', { recursive: true });
  const hooks = { BeforeModel: [{ hooks: [{ type: 'prompt', prompt: 'May it?' }] }] };
  writeFileSync(join(at.env.AGENT_HOME ?? '', 'hooks.json'), JSON.stringify({ hooks }));
  expect((await agent(at, ['hooks', 'check'])).stdout).toContain(
    'a hook of BeforeModel cannot have the type "prompt", which asks a model itself',
  );
});

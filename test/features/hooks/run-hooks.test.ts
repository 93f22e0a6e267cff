import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, afterEach, expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import type { HookAnswer, HookedAgent, Hooks, HookScene, Occasion } from '../../../src/kernel/core/hooks.js';
import { type HookSource, matches, namedFiles, readHookFile } from '../../../src/features/hooks/listed-hooks.js';
import { allowedAsTheyAre, createHooks } from '../../../src/features/hooks/run-hooks.js';
import { createTranscripts } from '../../../src/kernel/tools/transcripts.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

let dir = '';
let transcripts = createTranscripts('/');
beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'agent-hooks-')));
  transcripts = createTranscripts(dir);
});
afterEach(() => {
  transcripts.close();
  rmSync(dir, { recursive: true, force: true });
});

const processes = createProcessRunner({ marker: { name: '_HOOK_TEST', value: '1' } });
const env = { PATH: process.env.PATH, OPENAI_API_KEY: 'sk-secret' };

const before = (tool: string, args: Readonly<Record<string, unknown>>): Occasion => ({
  event: 'PreToolUse',
  call: { id: 'c1', tool, args },
});
const after = (tool: string, args: Readonly<Record<string, unknown>>, output = 'ok'): Occasion => ({
  event: 'PostToolUse',
  call: { id: 'c1', tool, args },
  envelope: { output },
  durationMs: 3,
});

/** Runs the hooks of a file, as it stands in Claude Code's documentation, over one occasion. */
async function ask(hooks: unknown, occasion: Occasion, agent?: HookedAgent): Promise<HookAnswer> {
  return await opened(hooks, agent).ask(occasion, scene(), new AbortController().signal);
}

const from = (): HookSource => ({ path: join(dir, 'hooks.json'), origin: 'user', directory: dir, home: dir });
const scene = (): HookScene => ({ session: 's1', cwd: dir, prompt: 's1:3', events: () => [said(3, 'hello')] });
const said = (seq: number, content: string): Event => ({ seq, kind: 'user', content, data: null, createdAt: 0 });

function opened(hooks: unknown, agent?: HookedAgent, path = env.PATH): Hooks {
  const file = readHookFile({ hooks }, from());
  expect(file.problems).toEqual([]);
  const host = {
    processes,
    env: { ...env, PATH: path },
    protectedEnv: ['OPENAI_API_KEY'],
    transcripts,
    settingsFiles: [],
    post: () => Promise.reject(new Error('no hook here asks a server')),
    mode: () => 'default',
    now: () => 1,
  };
  return createHooks(
    allowedAsTheyAre(file.hooks, () => true),
    host,
    { source: 'startup', agent },
  );
}

const one = (event: string, command: string, more: object = {}, matcher = ''): unknown => ({
  [event]: [{ matcher, hooks: [{ type: 'command', command, ...more }] }],
});

function scriptFile(name: string, text: string): void {
  writeFileSync(join(dir, name), text);
  chmodSync(join(dir, name), 0o755);
}

test.each([
  ['', ['bash', 'Bash'], true],
  ['*', ['bash', 'Bash'], true],
  ['Bash', ['bash', 'Bash'], true],
  ['bash', ['bash', 'Bash'], true],
  ['Edit|Write', ['file_write', 'Write'], true],
  ['Edit, Write', ['file_write', 'Write'], true],
  ['Edit', ['multi_edit', 'MultiEdit'], false],
  ['Notebook.*', ['NotebookEdit'], true],
  ['mcp__memory__.*', ['mcp__memory__read'], true],
  ['mcp__memory', ['mcp__memory__read'], false],
  ['^Ba$', ['bash', 'Bash'], false],
])('the matcher %j over %j: %s', (matcher, names, meant) => {
  expect(matches(matcher, names)).toBe(meant);
});

test.each<[matcher: string, args: Readonly<Record<string, unknown>>, name: string | null]>([
  ['Edit', { edits: [{ old_string: 'x', new_string: 'y' }] }, 'MultiEdit'],
  ['MultiEdit', { edits: [{ old_string: 'x', new_string: 'y' }] }, 'MultiEdit'],
  ['file_edit', { edits: [{ old_string: 'x', new_string: 'y' }] }, 'MultiEdit'],
  ['MultiEdit', { old_string: 'x', new_string: 'y' }, null],
])('the matcher %s over an edit with %j reads %s', async (matcher, args, name) => {
  await ask(one('PreToolUse', 'cat > seen.json', {}, matcher), before('file_edit', { path: 'a.ts', ...args }));
  const path = join(dir, 'seen.json');
  const seen = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Readonly<Record<string, unknown>>) : null;
  expect(seen && [seen['tool_name'], seen['tool_input']]).toEqual(
    name === null ? null : [name, { file_path: join(dir, 'a.ts'), ...args }],
  );
});

test('a hook reads the names, paths and times of Claude Code, and the original beside them', async () => {
  const command = 'cat > seen.json';
  await ask(
    one('PreToolUse', command, {}, 'Edit'),
    before('file_edit', { path: 'a.ts', old_string: 'x', new_string: 'y' }),
  );
  const seen = (): unknown => JSON.parse(readFileSync(join(dir, 'seen.json'), 'utf8'));
  expect(seen()).toEqual({
    session_id: 's1',
    prompt_id: 's1:3',
    transcript_path: expect.stringMatching(/agent-transcripts-\w+\/s1\.jsonl$/) as string,
    cwd: dir,
    permission_mode: 'default',
    hook_event_name: 'PreToolUse',
    tool_name: 'Edit',
    tool_input: { file_path: join(dir, 'a.ts'), old_string: 'x', new_string: 'y' },
    tool_use_id: 'c1',
    agent_tool: { name: 'file_edit', input: { path: 'a.ts', old_string: 'x', new_string: 'y' } },
  });
  await ask(one('PostToolUse', command, {}, 'Bash'), after('bash', { command: 'ls', timeout_seconds: 5 }, 'out'));
  expect(seen()).toMatchObject({
    tool_input: { command: 'ls', timeout: 5000 },
    tool_response: { stdout: 'out', stderr: '', interrupted: false },
    duration_ms: 3,
  });
});

test('the documented check of Bash commands denies by its exit code, and the model reads why', async () => {
  scriptFile(
    'check.py',
    `#!/usr/bin/env python3
import json, re, sys
VALIDATION_RULES = [(r"\\bgrep\\b(?!.*\\|)", "Use 'rg' (ripgrep) instead of 'grep'")]
input_data = json.load(sys.stdin)
if input_data.get("tool_name", "") != "Bash": sys.exit(1)
command = input_data.get("tool_input", {}).get("command", "")
issues = [m for p, m in VALIDATION_RULES if re.search(p, command)]
if issues:
    for message in issues: print(f"• {message}", file=sys.stderr)
    sys.exit(2)
`,
  );
  const hooks = one('PreToolUse', '"$CLAUDE_PROJECT_DIR"/check.py', {}, 'Bash');
  const denied = await ask(hooks, before('bash', { command: 'grep x y' }));
  expect(denied).toMatchObject({ decision: 'deny', reason: "• Use 'rg' (ripgrep) instead of 'grep'" });
  expect(denied.runs).toMatchObject([{ event: 'PreToolUse', exit: 2, decision: 'deny', tool_call_id: 'c1' }]);
  expect((await ask(hooks, before('bash', { command: 'ls' }))).decision).toBe('none');
  const other = await ask(hooks, before('file_read', { path: 'x' }));
  expect(other).toMatchObject({ decision: 'none', runs: [] });
});

test('the documented approval of documentation reads allows, and new input is given back as our tool takes it', async () => {
  const allow = `printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecisionReason":"Documentation file auto-approved"},"suppressOutput":true}'`;
  expect(await ask(one('PreToolUse', allow), before('file_read', { path: 'README.md' }))).toMatchObject({
    decision: 'allow',
    reason: 'Documentation file auto-approved',
  });
  const rewrite = `printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls -a","timeout":2500,"description":"x"}}}'`;
  expect((await ask(one('PreToolUse', rewrite), before('bash', { command: 'ls' }))).args).toEqual({
    command: 'ls -a',
    timeout_seconds: 3,
  });
});

test('the documented context for a prompt, as JSON and as plain text; block keeps it from being sent', async () => {
  const prompt: Occasion = { event: 'UserPromptSubmit', prompt: 'my password is x' };
  expect((await ask(one('UserPromptSubmit', 'echo "Current time: now"'), prompt)).context).toEqual([
    'Current time: now',
  ]);
  const json = `printf '{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"ctx"}}'`;
  expect((await ask(one('UserPromptSubmit', json), prompt)).context).toEqual(['ctx']);
  const block = `grep -q password && printf '{"decision":"block","reason":"Security policy violation"}'`;
  expect(await ask(one('UserPromptSubmit', block), prompt)).toMatchObject({
    decision: 'deny',
    reason: 'Security policy violation',
  });
});

test.each([
  ['PreToolUse', 'deny'],
  ['PostToolUse', 'deny'],
  ['PostToolUseFailure', 'deny'],
  ['UserPromptSubmit', 'deny'],
  ['Stop', 'deny'],
  ['SubagentStop', 'deny'],
  ['PreCompact', 'deny'],
  ['PermissionRequest', 'none'],
  ['SessionStart', 'none'],
  ['SessionEnd', 'none'],
  ['Notification', 'none'],
] as const)('exit 2 at %s: %s', async (event, decision) => {
  const occasions: readonly Occasion[] = [
    before('bash', { command: 'ls' }),
    { event: 'PermissionRequest', call: { id: 'c1', tool: 'bash', args: {} } },
    after('bash', {}),
    {
      ...(after('bash', {}) as Extract<Occasion, { event: 'PostToolUse' | 'PostToolUseFailure' }>),
      event: 'PostToolUseFailure',
    },
    { event: 'UserPromptSubmit', prompt: '' },
    { event: 'Stop', again: false, text: '' },
    { event: 'SubagentStop', again: false, text: '' },
    { event: 'PreCompact', trigger: 'auto', instructions: '' },
    { event: 'SessionStart', source: 'startup', model: 'm' },
    { event: 'SessionEnd', reason: 'other' },
    { event: 'Notification', type: 't', message: '' },
  ];
  const occasion = occasions.find((each) => each.event === event);
  if (!occasion) throw new Error(event);
  const answer = await ask(one(event, 'echo no >&2; exit 2'), occasion);
  expect(answer.decision).toBe(decision);
  expect(answer.messages).toHaveLength(decision === 'none' ? 1 : 0);
});

test.each([
  ['exit 1', 'it ended with exit code 1'],
  ['python3 ./gone.py', 'its script ./gone.py is missing'],
  ['kill -9 $$', 'it was killed by SIGKILL'],
  ['echo "{"', 'its output begins with { but is not JSON'],
])('%s is reported and holds nothing back, unless the hook is required', async (command, why) => {
  const call = before('bash', { command: 'ls' });
  const open = await ask(one('PreToolUse', command), call);
  expect(open).toMatchObject({ decision: 'none', runs: [{ decision: 'failed', reason: why }] });
  expect(open.messages[0]?.message).toContain(why);
  const held = await ask(one('PreToolUse', command, { required: true }), call);
  expect(held).toMatchObject({ decision: 'deny', reason: expect.stringContaining(why) as string });
});

test('a hook that takes too long is ended with all it has started', async () => {
  const answer = await ask(one('PreToolUse', 'sleep 30 & sleep 30', { timeout: 0.05 }), before('bash', {}));
  expect(answer.runs).toMatchObject([{ exit: null, decision: 'failed', reason: 'it took longer than 0.05 s' }]);
});

test('all hooks of an occasion run: the strictest decision counts, twice the same command runs once', async () => {
  const say = (decision: string): object => ({
    type: 'command',
    command: `printf '{"hookSpecificOutput":{"permissionDecision":"${decision}","permissionDecisionReason":"r-${decision}"}}'`,
  });
  const hooks = {
    PreToolUse: [
      { matcher: 'Bash', hooks: [say('allow'), say('ask')] },
      { matcher: '*', hooks: [say('deny'), say('allow')] },
    ],
  };
  const answer = await ask(hooks, before('bash', {}));
  expect(answer).toMatchObject({ decision: 'deny', reason: 'r-deny' });
  expect(answer.runs.map(({ decision }) => decision)).toEqual(['allow', 'ask', 'deny']);
});

test('arguments are handed over without a shell, with the folder of the project; keys of providers are not there', async () => {
  const command = {
    args: ['-c', 'printf "%s|%s|%s" "$1" "$OPENAI_API_KEY" "$CLAUDE_PROJECT_DIR"', 'sh', '${CLAUDE_PROJECT_DIR}/$x'],
  };
  const answer = await ask(one('UserPromptSubmit', 'sh', command), { event: 'UserPromptSubmit', prompt: '' });
  expect(answer.context).toEqual([`${dir}/$x||${dir}`]);
});

test('a command line may use bash, as in Claude Code; without one it runs in sh', async () => {
  const line = `[[ "a.ts" == *.ts ]] && command -v true &>/dev/null && echo "quoted '$0' ok"`;
  const answer = await ask(one('UserPromptSubmit', line), { event: 'UserPromptSubmit', prompt: '' });
  expect(answer.context).toEqual(["quoted 'bash' ok"]);
  mkdirSync(join(dir, 'bin'));
  for (const name of ['sh', 'cat', 'ps', 'sleep']) symlinkSync(`/bin/${name}`, join(dir, 'bin', name));
  const hooks = opened(one('UserPromptSubmit', 'echo "in $0"'), undefined, join(dir, 'bin'));
  const prompted = { event: 'UserPromptSubmit', prompt: '' } as const;
  const plain = await hooks.ask(prompted, scene(), new AbortController().signal);
  expect(plain.context).toEqual(['in sh']);
});

test('continue: false ends the turn, systemMessage is for the person, and a new output keeps the old one on record', async () => {
  const json = `printf '{"continue":false,"stopReason":"enough","systemMessage":"psst","hookSpecificOutput":{"updatedToolOutput":"clean"}}'`;
  expect(await ask(one('PostToolUse', json), after('bash', {}, 'dirty'))).toMatchObject({
    stop: 'enough',
    output: 'clean',
    messages: [{ level: 'info', message: 'psst' }],
    runs: [{ decision: 'stop', original_output: 'dirty' }],
  });
});

test('what a file holds that does not count is named, and disableAllHooks switches all of it off', () => {
  const hooks = {
    PreToolUse: [
      { matcher: '(', hooks: [] },
      { hooks: [{ type: 'mcp_tool', server: 'a' }, { type: 'prompt' }] },
      { hooks: [{ type: 'command' }, { type: 'command', command: ['a', 1] }] },
    ],
    TeammateIdle: [],
    Setup: [],
  };
  expect(readHookFile({ hooks }, from()).problems).toEqual([
    expect.stringContaining('unknown event TeammateIdle, Setup; known: '),
    'the matcher "(" of PreToolUse is neither a name nor a regular expression',
    'hooks of the type "mcp_tool" are not run (PreToolUse)',
    'a hook of PreToolUse with the type "prompt" has no "prompt"',
    'a hook of PreToolUse has no command',
    '"command" of PreToolUse is not a list of texts',
  ]);
  expect(readHookFile({ hooks, disableAllHooks: true }, from())).toEqual({ hooks: [], problems: [] });
});

test.each([
  ['./check.sh --fast', ['check.sh'], []],
  ['"$CLAUDE_PROJECT_DIR"/run', ['run'], []],
  ['~/check.sh', ['check.sh'], []],
  ['python3 -u tool && sh < data', ['tool', 'data'], []],
  ['jq -r .a >> data; tee -a data', [], []],
  ['cat >./check.sh', [], []],
  ['cd . && ./gone.sh', [], ['./gone.sh']],
  ['run', ['run'], []],
])('the command line %s names %j; %j is missing', (command, named, missing) => {
  for (const name of ['check.sh', 'tool', 'data']) writeFileSync(join(dir, name), name);
  scriptFile('run', '');
  const found = namedFiles({ type: 'command', command, from: from() });
  expect(found.files.map(({ path }) => path)).toEqual(named.map((name) => join(dir, name)));
  expect(found.missing).toEqual(missing);
  const inShell = namedFiles({ type: 'command', command: 'sh', args: ['-c', command], from: from() });
  expect(inShell.files.map(({ path }) => path)).toEqual(found.files.map(({ path }) => path));
});

test('inside a sub-agent a hook is told of the session of the person, and of the agent beside it', async () => {
  const agent = {
    id: 'child',
    type: 'explore',
    within: { session: 's0', events: () => [said(1, 'of the person'), said(2, 'and more')] },
  };
  const stop: Occasion = { event: 'SubagentStop', again: false, text: 'found' };
  const command = 'cat > seen.json; wc -l < "$(jq -r .transcript_path seen.json)" > lines';
  expect((await ask(one('SubagentStop', command, {}, 'general'), stop, agent)).runs).toEqual([]);
  await ask(one('SubagentStop', command, {}, 'explore'), stop, agent);
  const seen = JSON.parse(readFileSync(join(dir, 'seen.json'), 'utf8')) as Readonly<Record<string, string>>;
  expect(seen).toMatchObject({
    session_id: 's0',
    agent_id: 'child',
    agent_type: 'explore',
    stop_hook_active: false,
    last_assistant_message: 'found',
  });
  expect(readFileSync(join(dir, 'lines'), 'utf8').trim()).toBe('2');
  expect(readFileSync(seen['agent_transcript_path'] ?? '', 'utf8')).toContain('"isSidechain":true');
});

test('a script that changes after the session began is not started; that is said once, and a required one denies', async () => {
  scriptFile('check.sh', '#!/bin/sh\necho ran >> ran\n');
  const call = before('bash', { command: 'ls' });
  const signal = new AbortController().signal;
  const [hooks, strict] = [false, true].map((required) => opened(one('PreToolUse', './check.sh', { required })));
  await hooks?.ask(call, scene(), signal);
  scriptFile('check.sh', '#!/bin/sh\necho evil >> ran\n');
  const changed = await hooks?.ask(call, scene(), signal);
  expect(changed?.messages[0]?.message).toContain('a file that it names has changed');
  expect(changed).toMatchObject({ decision: 'none', runs: [{ exit: null, decision: 'failed' }] });
  expect((await hooks?.ask(call, scene(), signal))?.messages).toEqual([]);
  expect((await strict?.ask(call, scene(), signal))?.decision).toBe('deny');
  expect(readFileSync(join(dir, 'ran'), 'utf8')).toBe('ran\n');
});

const push = { if: 'Bash(git push*)' };

test('a hook with a condition runs only for calls that fit it', async () => {
  const hooks = one('PreToolUse', 'echo no pushes >&2; exit 2', push, 'Bash');
  expect(await ask(hooks, before('bash', { command: 'ls' }))).toMatchObject({ decision: 'none', runs: [] });
  expect(await ask(hooks, before('bash', { command: 'ls && git push' }))).toMatchObject({ decision: 'deny' });
});

test('a condition without a meaning, or where no call is, leaves its hook out and is reported', () => {
  const entry = (condition: unknown): object => ({ hooks: [{ type: 'command', command: './x', if: condition }] });
  const { hooks, problems } = readHookFile(
    { hooks: { PreToolUse: [entry('git push'), entry(7)], Stop: [entry('Bash(ls)')] } },
    from(),
  );
  expect(hooks).toEqual([]);
  expect(problems).toEqual([
    './x (PreToolUse) is disabled: its "if", "git push", is not a permission rule such as "Bash(git push *)"',
    './x (PreToolUse) is disabled: its "if", 7, is not a permission rule such as "Bash(git push *)"',
    './x (Stop) never runs: only events of tool calls have an "if"',
  ]);
});

test('a hook has 600 s unless its entry says otherwise', () => {
  const { hooks } = readHookFile({ hooks: one('PreToolUse', 'x') }, from());
  expect(hooks.map(({ timeoutMs }) => timeoutMs)).toEqual([600_000]);
});

const context = `printf '{"hookSpecificOutput":{"additionalContext":"done"},"systemMessage":"built"}'`;

test.each([
  ['an entry with async', { async: true }, `read go < pipe; ${context}`, ['done']],
  ['a first line', {}, `echo '{"async": true, "asyncTimeout": 5}'; read go < pipe; ${context}`, ['done']],
  [
    'an entry with asyncRewake',
    { asyncRewake: true },
    'read go < pipe; echo broken >&2; exit 2',
    ['[A hook that ran in the background (PostToolUse) reports:]\nbroken'],
  ],
])('%s puts a hook into the background; its report comes later', async (_name, more, command, expected) => {
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  const reports: HookAnswer[] = [];
  const hooks = opened(one('PostToolUse', command, more));
  const answer = await hooks.ask(
    after('bash', { command: 'ls' }),
    { ...scene(), later: (report) => reports.push(report) },
    new AbortController().signal,
  );
  expect([answer.runs, answer.decision, reports]).toEqual([[], 'none', []]);
  writeFileSync(join(dir, 'pipe'), 'go\n');
  await hooks.finish?.(new AbortController().signal);
  expect(reports).toMatchObject([{ decision: 'none', context: expected, runs: [{ event: 'PostToolUse' }] }]);
});

test('a hook in the background decides nothing, and says so', async () => {
  const reports: HookAnswer[] = [];
  const hooks = opened(one('PreToolUse', 'echo no >&2; exit 2', { async: true }));
  await hooks.ask(
    before('bash', { command: 'ls' }),
    { ...scene(), later: (report) => reports.push(report) },
    new AbortController().signal,
  );
  await hooks.finish?.(new AbortController().signal);
  expect(reports).toMatchObject([
    {
      decision: 'none',
      context: [],
      messages: [{ level: 'warn', message: expect.stringContaining('without effect') as string }],
    },
  ]);
});

test.each([
  ['{"ok": true}', 'none', ''],
  ['Sure:\n```json\n{"ok": false, "reason": "no tests"}\n```', 'deny', 'no tests'],
])('a hook of the type prompt asks the model: %s means %s', async (text, decision, reason) => {
  const asked: string[] = [];
  const askModel = (question: string) => {
    asked.push(question);
    return Promise.resolve({ text, problem: null });
  };
  const hooks = { Stop: [{ hooks: [{ type: 'prompt', prompt: 'Are the tests green? $ARGUMENTS' }] }] };
  const answer = await askWith(hooks, { event: 'Stop', again: false, text: 'done' }, { askModel });
  expect(answer).toMatchObject({ decision, reason });
  expect(asked.join('')).toContain('Are the tests green? {"session_id"');
  expect(asked.join('')).toContain('{"ok": true}');
});

test('a hook of the type agent asks a sub-agent; an answer that is no verdict is a failure', async () => {
  const hooks = { PreToolUse: [{ hooks: [{ type: 'agent', prompt: 'Is it safe?' }] }] };
  const call = { id: 'c1', tool: 'bash', args: { command: 'ls' } };
  const askAgent = () => Promise.resolve({ text: 'it looks fine', problem: null });
  const answer = await askWith(hooks, { event: 'PreToolUse', call }, { askAgent });
  expect(answer.decision).toBe('none');
  expect(answer.messages[0]?.message).toContain('the model did not answer with {"ok": true}');
  const nobody = await askWith(hooks, { event: 'PreToolUse', call }, {});
  expect(nobody.messages[0]?.message).toContain('no model can be asked here');
});

/** Asks hooks that are questions to a model. */
async function askWith(hooks: unknown, occasion: Occasion, model: Partial<HookScene>): Promise<HookAnswer> {
  return await opened(hooks).ask(occasion, { ...scene(), ...model }, new AbortController().signal);
}

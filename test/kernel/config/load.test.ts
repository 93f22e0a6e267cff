import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { makePlace, projectPath, userPath } from './fixture.js';

test('without any file every default of the contract holds and nothing is written', async () => {
  const place = makePlace();
  const { config, problems, notices, project } = await place.load();
  expect({
    ...config,
    files: null,
    fs: { ...config.fs, deny: config.fs.deny.some((glob) => glob.includes('shadow')) },
  }).toEqual({
    provider: {
      model: null,
      provider: null,
      baseUrl: null,
      api: null,
      toolProtocol: 'auto',
      fallbackModels: [],
      aliases: {},
      roles: {},
      keyStore: 'file',
      custom: {},
      models: {},
    },
    request: {
      systemPrompt: null,
      replacedPrompt: null,
      outputStyle: null,
      effort: null,
      maxOutputTokens: null,
      extraBody: {},
    },
    limits: {
      maxToolTurns: 50,
      maxToolCalls: 100,
      loopLimit: 6,
      maxOutputBytes: 1_048_576,
      modelOutputBytes: 32_768,
      maxCostUsd: null,
      toolTimeoutMs: null,
      compaction: { atShare: 0.85, keepTokens: null, assumedWindow: 200_000 },
    },
    policy: {
      approval: 'dangerous',
      acceptsEdits: false,
      planning: false,
      approvalTimeoutMs: null,
      sandbox: 'off',
      rules: { allow: [], ask: [], deny: [] },
    },
    tools: { toolsets: ['fs', 'exec', 'mcp', 'diagnostics'], limits: {} },
    diagnostics: { waitMs: 1500 },
    exec: { timeoutS: 120, maxTimeoutS: 600, shell: 'clean', onTimeout: null, env: {} },
    http: {
      idleTimeoutMs: 90_000,
      turnTimeoutMs: 900_000,
      maxRetries: 5,
      retryBaseMs: 500,
      maxRetryAfterMs: 60_000,
      allowInsecure: false,
    },
    docs: { embeddings: { baseUrl: null, model: null } },
    fs: { maxBytes: 1_048_576, deny: true, encoding: null },
    agents: {
      maxTurns: 30,
      timeoutS: 900,
      maxTokens: 200_000,
      maxBackground: 4,
      wake: true,
      merge: 'ask',
    },
    tasks: { timezone: null, machine: null, maxCostUsd: 0.5, maxCostUsdPerDay: 5, notifyCommand: [] },
    memory: { save: 'auto' },
    store: { mode: 'local', url: null, team: null },
    sync: { exclude: [] },
    web: {
      search: { provider: 'auto', baseUrl: null },
      allowDomains: [],
      allowLocal: [],
      proxy: 'env',
      api: [],
    },
    secrets: { mask: true, unmasked: [] },
    workspace: { directories: [] },
    usageLimits: { wait: 'ask' },
    telemetry: { otlpEndpoint: null, headersEnv: 'OTEL_EXPORTER_OTLP_HEADERS', contents: false },
    ui: {
      toolOutput: 'short',
      toolOutputRows: 200,
      theme: 'auto',
      wrap: 'words',
      notify: 'auto',
      title: true,
      statusCommand: [],
      terminalPrograms: [],
      titles: 'off',
      keys: 'emacs',
      bindings: {},
      reasoning: 'line',
    },
    files: null,
  });
  expect({ problems, notices, project, left: readdirSync(place.root) }).toEqual({
    problems: [],
    notices: [],
    project: null,
    left: ['repo'],
  });
});

test('a flag wins over --set, environment, trusted project, user file and default, in this order', async () => {
  const place = makePlace();
  place.write(userPath, {
    max_tool_turns: 1,
    max_tool_calls: 1,
    max_output_size: 1,
    model_output_size: 1,
    fs: { max_size: 1 },
  });
  place.write(projectPath, { max_tool_turns: 2, max_tool_calls: 2, max_output_size: 2, model_output_size: 2 });
  const { config, origins } = await place.load({
    projectTrusted: true,
    env: { AGENT_MAX_TOOL_TURNS: '3', AGENT_MAX_TOOL_CALLS: '3', AGENT_MAX_OUTPUT_SIZE: '3' },
    set: ['max_tool_turns=9', 'max_tool_turns=4', 'max_tool_calls=4'],
    flags: { max_tool_turns: 5, model: undefined },
  });
  expect({ ...config.limits, fileBytes: config.fs.maxBytes, seconds: config.exec.timeoutS }).toEqual({
    maxToolTurns: 5,
    toolTimeoutMs: null,
    compaction: { atShare: 0.85, keepTokens: null, assumedWindow: 200_000 },
    maxToolCalls: 4,
    loopLimit: 6,
    maxOutputBytes: 3,
    modelOutputBytes: 2,
    maxCostUsd: null,
    fileBytes: 1,
    seconds: 120,
  });
  expect([
    origins.max_tool_turns,
    origins.max_tool_calls,
    origins.max_output_size,
    origins.model_output_size,
    origins['fs.max_size'],
    origins['exec.timeout_s'],
  ]).toEqual([
    { kind: 'flag' },
    { kind: 'set' },
    { kind: 'environment', variable: 'AGENT_MAX_OUTPUT_SIZE' },
    { kind: 'project', file: place.projectFile },
    { kind: 'user', file: place.userFile },
    { kind: 'default' },
  ]);
});

test('every kind of key has its variable, typed', async () => {
  const place = makePlace();
  const { config, problems } = await place.load({
    env: {
      AGENT_MODEL: 'openai/gpt-5.2',
      AGENT_TOOLS_FS: 'false',
      AGENT_TOOLS_EXEC: '0',
      AGENT_HTTP_FIRST_BYTE_TIMEOUT_MS: '10',
      AGENT_MAX_COST_USD: '0.5',
      AGENT_PROVIDER_API: 'openai-chat',
      AGENT_TOOLS_LIMITS_FILE_READ: '{"rate_per_min": 7}',
      AGENT_TOOLS_LIMITS_BASH_TIMEOUT_MS: '5',
      AGENT_FS_DENY: '["**/x"]',
      AGENT_EXTRA_BODY: '{"a": [1]}',
      AGENT_PROVIDERS_LAB_BASE_URL: 'http://127.0.0.1:9/v1',
      AGENT_EXEC_MAX_TIMEOUT_S: '60',
      AGENT_SYSTEM_PROMPT: '',
      AGENT_HOME: '',
      AGENT_DEBUG: '1',
      AGENT_SOMETHING_ELSE: 'x',
      OTHER: 'y',
    },
  });
  expect(problems).toEqual([]);
  expect([
    config.provider.model,
    config.provider.api,
    config.tools,
    config.http.firstByteTimeoutMs,
    config.limits.maxCostUsd,
    config.fs.deny.slice(0, -1),
    config.request.extraBody,
    config.provider.custom,
    config.exec,
    config.request.systemPrompt,
  ]).toEqual([
    'openai/gpt-5.2',
    'openai-chat',
    { toolsets: ['mcp', 'diagnostics'], limits: { file_read: { rate_per_min: 7 }, bash: { timeout_ms: 5 } } },
    10,
    0.5,
    ['**/x'],
    { a: [1] },
    { lab: { base_url: 'http://127.0.0.1:9/v1' } },
    { timeoutS: 60, maxTimeoutS: 60, shell: 'clean', onTimeout: null, env: {} },
    null,
  ]);
});

test('names with dots are found behind --set', async () => {
  const { config, problems } = await makePlace().load({
    set: [
      'models.openai/gpt-5.2.context_window=1000',
      'tools.limits.bash.timeout_ms=7',
      'tools.limits={"grep":{"rate_per_min":2}}',
      'system_prompt=a=b',
    ],
  });
  expect([problems, config.provider.models, config.tools.limits, config.request.systemPrompt]).toEqual([
    [],
    { 'openai/gpt-5.2': { context_window: 1000 } },
    { bash: { timeout_ms: 7 }, grep: { rate_per_min: 2 } },
    'a=b',
  ]);
});

test('wrong texts name their variable or option, and what was expected', async () => {
  const { problems, config } = await makePlace().load({
    env: { AGENT_MAX_TOOL_TURNS: 'many', AGENT_TOOLS_FS: 'maybe', AGENT_FS_DENY: 'x', AGENT_APPROVAL: 'dangerus' },
    set: [
      'max_tool_turn=1',
      'tools.limit.bash=1',
      'novalue',
      'max_tool_calls=0',
      'max_tool_calls=1.5',
      'tools.limits={"a":{"quux":1}}',
    ],
    flags: { max_tool_turns: 0, max_cost_usd: 'x' },
  });
  expect(problems.map((problem) => problem.message)).toEqual([
    'AGENT_APPROVAL must be one of never, dangerous, mutating, always, default, accept-edits, plan, bypass, yolo (did you mean "dangerous"?), not "dangerus"',
    'AGENT_FS_DENY must be a list in JSON, not "x"',
    'AGENT_MAX_TOOL_TURNS must be an integer of at least 1, not "many"',
    'AGENT_TOOLS_FS must be true or false, not "maybe"',
    '--set: unknown key "max_tool_turn" (did you mean "max_tool_turns"?)',
    '--set: unknown key "tools.limit.bash" (did you mean "tools.limits"?)',
    '--set "novalue" is not key=value',
    '--set max_tool_calls must be an integer of at least 1, not 0',
    '--set max_tool_calls must be an integer of at least 1, not 1.5',
    '--set tools.limits: a.quux is not a setting',
    '--max-tool-turns must be an integer of at least 1, not 0',
    '--max-cost must be a number of at least 0, not "x"',
  ]);
  expect(config.limits.maxToolTurns).toBe(50);
});

test('a variable that sets nothing is named with the nearest one; those of other programs are not', async () => {
  const own = {
    AGENT_HOME: '',
    AGENT_PLAIN: '1',
    AGENT_DEBUG: '1',
    AGENT_NAME: 'runner 1',
    AGENT_TOOLSDIRECTORY: '/opt',
  };
  const { notices } = await makePlace().load({
    env: {
      AGENT_MAX_TOOL_TURN: '3',
      AGENT_TOKEN_FILE: 'x',
      AGENT_APROVAL: 'always',
      AGENT_WEB_PROVIDER: 'y',
      AGENT_MAX_RETRIES: '9',
      ...own,
    },
  });
  expect(notices.map((notice) => notice.message)).toEqual([
    'The variable AGENT_APROVAL is not a setting; did you mean AGENT_APPROVAL?',
    'The variable AGENT_MAX_RETRIES is not a setting; did you mean AGENT_HTTP_MAX_RETRIES?',
    'The variable AGENT_MAX_TOOL_TURN is not a setting; did you mean AGENT_MAX_TOOL_TURNS?',
    'The variables AGENT_TOKEN_FILE, AGENT_WEB_PROVIDER set nothing here.',
  ]);
});

test('comments, trailing commas, a byte order mark and an empty file are all fine', async () => {
  const place = makePlace();
  place.write(userPath, '\uFEFF// mine\n{\n  "$schema": "x",\n  /* few */ "max_tool_turns": 7,\n}\n');
  const commented = await place.load();
  place.write(userPath, '');
  const empty = await place.load();
  expect([commented.problems, commented.config.limits.maxToolTurns, empty.problems]).toEqual([[], 7, []]);
});

test('a problem in the user file is named with its place and the nearest key; the rest is effective', async () => {
  const place = makePlace();
  place.write(
    userPath,
    [
      '{',
      '  // turns',
      '  "max_tool_turn": 3,',
      '  "tools": { "fs": "yes",',
      '    "limits": { "bash": { "timeout": 5 } } },',
      '  "timeout_s": 3,',
      '  "fs": { "deny": ["a", 5] },',
      '  "colour": 1,',
      '  "max_tool_calls": 9',
      '}',
      '',
    ].join('\n'),
  );
  const { problems, config } = await place.load();
  expect(
    problems.map(({ message, line, column, key, nearest }) => [
      message.replace(place.userFile, 'F'),
      line,
      column,
      key,
      nearest,
    ]),
  ).toEqual([
    ['F:3:3: unknown key "max_tool_turn" (did you mean "max_tool_turns"?)', 3, 3, 'max_tool_turn', 'max_tool_turns'],
    ['F:4:20: "tools.fs" must be true or false, not "yes"', 4, 20, 'tools.fs', undefined],
    [
      'F:5:27: unknown key "tools.limits.bash.timeout" (did you mean "tools.limits.bash.timeout_ms"?)',
      5,
      27,
      'tools.limits.bash.timeout',
      'tools.limits.bash.timeout_ms',
    ],
    ['F:6:3: unknown key "timeout_s" (did you mean "exec.timeout_s"?)', 6, 3, 'timeout_s', 'exec.timeout_s'],
    ['F:7:25: "fs.deny.1" must be a string that is not empty, not 5', 7, 25, 'fs.deny.1', undefined],
    ['F:8:3: unknown key "colour"', 8, 3, 'colour', undefined],
  ]);
  expect([config.limits.maxToolCalls, config.tools.toolsets]).toEqual([9, ['fs', 'exec', 'mcp', 'diagnostics']]);
});

test('a file that cannot be settings is one problem, never a crash or a wait', async () => {
  const place = makePlace();
  const messages: string[] = [];
  for (const text of [
    '{\n  "max_tool_turns": 3\n  "model": "x"\n}',
    '[1]',
    `{"extra_body": ${'['.repeat(200_000)}`,
    ' '.repeat(1_048_577),
  ]) {
    place.write(userPath, text);
    const { problems } = await place.load();
    messages.push(...problems.map((problem) => problem.message.replace(place.userFile, 'F')));
  }
  const home = (name: string) => ({ env: { AGENT_HOME: join(place.root, name) } });
  mkdirSync(join(place.root, 'directory', 'config.json'), { recursive: true });
  mkdirSync(join(place.root, 'pipe'));
  execFileSync('mkfifo', [join(place.root, 'pipe', 'config.json')]);
  for (const name of ['directory', 'pipe'])
    messages.push(
      ...(await place.load(home(name))).problems.map((problem) => problem.message.replace(place.root, 'R')),
    );
  expect(messages).toEqual([
    'F:3:3: not valid JSON: comma expected',
    'F:1:1: not valid JSON: it must contain one object: { … }',
    'F:1:1: not valid JSON: it is nested too deeply (over 512 levels)',
    'F: it has 1048577 bytes, over 1048576',
    'R/directory/config.json: it is not a regular file',
    'R/pipe/config.json: it is not a regular file',
  ]);
});

test('a key pasted where it does not belong is not repeated in the message', async () => {
  const place = makePlace();
  place.write(userPath, { providers: { lab: { key_env: 'sk-abcdefghijklmnopqrstuv' } } });
  const { problems } = await place.load({ env: { AGENT_MAX_TOOL_TURNS: 'sk-abcdefghijklmnopqrstuv' } });
  expect(problems.map((problem) => problem.message.replace(place.userFile, 'F'))).toEqual([
    'F:4:18: "providers.lab.key_env" must be a string that matches ^[A-Za-z_][A-Za-z0-9_]*$, not "***"',
    'AGENT_MAX_TOOL_TURNS must be an integer of at least 1, not "***"',
  ]);
});

test('tools.confirm false means never ask, unless approval was set by something that wins over it', async () => {
  const place = makePlace();
  place.write(userPath, { tools: { confirm: false } });
  const approvals = [
    await place.load(),
    await place.load({ flags: { approval: 'mutating' } }),
    await place.load({ env: { AGENT_TOOLS_CONFIRM: 'true' } }),
  ].map(({ config }) => config.policy.approval);
  expect(approvals).toEqual(['never', 'mutating', 'dangerous']);
});

test("the user's own file is not taken for a project's", async () => {
  const place = makePlace();
  place.write(projectPath, { base_url: 'http://127.0.0.1:1' });
  symlinkSync(dirname(place.projectFile), join(place.root, 'own'));
  const { project, config } = await place.load({ env: { AGENT_HOME: join(place.root, 'own') } });
  expect([project, config.provider.baseUrl]).toEqual([null, 'http://127.0.0.1:1']);
});

test('an object that needs some of its keys is one value', async () => {
  const place = makePlace();
  const long = { above_tokens: 200_000, input_usd: 6, output_usd: 22 };
  place.write(userPath, { models: { a: { long_prompt: long }, b: { long_prompt: { above_tokens: 1 } } } });
  const { config, problems } = await place.load({ set: ['models.a.input_usd=3'] });
  expect([config.provider.models, problems.map((problem) => problem.message.replace(place.userFile, 'F'))]).toEqual([
    { a: { long_prompt: long, input_usd: 3 } },
    [
      'F:11:22: "models.b.long_prompt" must be an object with above_tokens, input_usd, output_usd, ' +
        'not {"above_tokens":1}',
    ],
  ]);
});

test('the profile embedded gives other defaults; what is said in any other place wins, and no project loosens it', async () => {
  const place = makePlace();
  place.write(userPath, { profile: 'embedded', max_output_size: 1000 });
  const plain = await place.load();
  expect(plain.problems).toEqual([]);
  expect([plain.config.limits, plain.config.tools]).toMatchObject([
    { maxToolTurns: 1, maxToolCalls: 1, maxOutputBytes: 1000, toolTimeoutMs: 1000 },
    { toolsets: [] },
  ]);
  const wider = await place.load({ set: ['max_tool_calls=3', 'tools.fs=true', 'tool_timeout_ms=5000'] });
  expect([wider.config.limits, wider.config.tools.toolsets]).toMatchObject([
    { maxToolCalls: 3, toolTimeoutMs: 5000 },
    ['fs'],
  ]);
  place.write(projectPath, { max_tool_turns: 10, tool_timeout_ms: 500, tools: { fs: true } });
  const inProject = await place.load();
  expect([inProject.config.limits, inProject.config.tools.toolsets]).toMatchObject([
    { maxToolTurns: 1, toolTimeoutMs: 500 },
    [],
  ]);
});

test.each([
  [0o666, 'anyone can write to it (mode 0666); chmod go-w it'],
  [0o602, 'anyone can write to it (mode 0602); chmod go-w it'],
])('settings that others may write are refused: mode %o', async (mode, reason) => {
  const place = makePlace();
  const file = place.write(userPath, '{"approval": "never"}');
  chmodSync(file, mode);
  const { config, problems } = await place.load();
  expect(problems.map(({ message }) => message)).toEqual([`${file}: ${reason}`]);
  expect(config.policy.approval).toBe('dangerous');
  chmodSync(file, 0o644);
  expect((await place.load()).config.policy.approval).toBe('never');
});

test.skipIf(process.getuid?.() !== 0)('settings that belong to another user are refused, for root too', async () => {
  const place = makePlace();
  chownSync(place.write(userPath, '{"approval": "never"}'), 12_345, 0);
  expect((await place.load()).problems[0]?.message).toContain('it belongs to another user (uid 12345)');
});

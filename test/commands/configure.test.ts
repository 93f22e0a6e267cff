import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { unknownToolLimit, unknownToolLimits, toolNames } from '../../src/app/open-tools.js';
import { type ConfigCommandIo, runConfigCommand } from '../../src/commands/configure.js';

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function makeHome(): {
  readonly home: string;
  readonly file: string;
  run(args: readonly string[], options?: Partial<ConfigCommandIo>): Promise<Ran>;
} {
  const home = mkdtempSync(join(tmpdir(), 'agent-config-command-'));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  const run = async (args: readonly string[], options: Partial<ConfigCommandIo> = {}): Promise<Ran> => {
    const text = { out: '', err: '' };
    const plain = (chunk: string) => chunk.replaceAll(home, '~');
    const io = {
      stdout: {
        write: (chunk: string) => {
          text.out += plain(chunk);
        },
      },
      stderr: {
        write: (chunk: string) => {
          text.err += plain(chunk);
        },
      },
    };
    const code = await runConfigCommand(args, {
      ...io,
      env: { AGENT_HOME: join(home, 'a') },
      cwd: home,
      home,
      tools: {
        strayLimit: async (name) => unknownToolLimit(name, toolNames()),
        strayLimits: async (loaded) => await unknownToolLimits(loaded, toolNames()),
      },
      ...options,
    });
    return { code, ...text };
  };
  return { home, file: join(home, 'a', 'config.json'), run };
}

test('path prints where the file is, with --json all of them, and makes nothing', async () => {
  const { home, run } = makeHome();
  expect([await run(['path']), await run(['path'], { json: true }), existsSync(join(home, 'a'))]).toEqual([
    { code: 0, out: '~/a/config.json\n', err: '' },
    {
      code: 0,
      out:
        '[{"name":"config","path":"~/a/config.json"},{"name":"database","path":"~/a/agent.db"},' +
        '{"name":"log","path":"~/a/agent.log"},{"name":"history","path":"~/a/history"}]\n',
      err: '',
    },
    false,
  ]);
});

test('show says of every key where its value came from', async () => {
  const { file, run } = makeHome();
  await run(['set', 'max_tool_turns', '7']);
  const env = { AGENT_HOME: join(file, '..'), AGENT_MAX_TOOL_CALLS: '8' };
  const rows = JSON.parse(
    (await run(['show'], { json: true, env, set: ['approval=always'], flags: { sandbox: 'workspace' } })).out,
  ) as { key: string }[];
  const pick = (key: string) => rows.find((row) => row.key === key);
  expect(['max_tool_turns', 'max_tool_calls', 'approval', 'sandbox', 'http.max_retries', 'model'].map(pick)).toEqual([
    { key: 'max_tool_turns', value: 7, origin: 'user', source: '~/a/config.json' },
    { key: 'max_tool_calls', value: 8, origin: 'environment', source: 'AGENT_MAX_TOOL_CALLS' },
    { key: 'approval', value: 'always', origin: 'set', source: null },
    { key: 'sandbox', value: 'workspace', origin: 'flag', source: null },
    { key: 'http.max_retries', value: 5, origin: 'default', source: null },
    { key: 'model', value: null, origin: 'default', source: null },
  ]);
  const lines = (await run(['show'], { env })).out.split('\n').map((line) => line.replaceAll(/ +/g, ' '));
  expect(lines.filter((line) => /^(max_tool|model )/.test(line))).toEqual([
    'model - (not set)',
    'max_tool_turns 7 (user file ~/a/config.json)',
    'max_tool_calls 8 (AGENT_MAX_TOOL_CALLS)',
  ]);
});

test('secrets are masked wherever values are shown', async () => {
  const { home, file, run } = makeHome();
  mkdirSync(join(home, 'a'));
  writeFileSync(
    file,
    JSON.stringify({
      base_url: 'https://me:hunter22@host/v1',
      providers: { lab: { headers: { 'X-Auth': 'seekrit' } } },
      extra_body: { api_key: 'abc', note: 'sk-abcdefghijklmnop' },
      system_prompt: 'Bearer abcdefghijk',
    }),
  );
  const shown = [
    await run(['show']),
    await run(['show'], { json: true }),
    await run(['get', 'extra_body']),
    await run(['get', 'base_url']),
    await run(['set', 'providers.lab.headers.X-Two', 'seekrit']),
  ];
  expect(shown.filter(({ out, err }) => /hunter22|seekrit|"abc"|abcdefgh/.test(out + err))).toEqual([]);
  expect([shown[2]?.out, shown[3]?.out, shown[4]?.out]).toEqual([
    '{"api_key":"***","note":"***"}\n',
    'https://me:***@host/v1\n',
    '~/a/config.json: providers.lab.headers.X-Two = "***"\n',
  ]);
});

test('get prints one value, a section as JSON, and nothing but a line where it is not set', async () => {
  const { run } = makeHome();
  const outputs = await Promise.all(
    [
      ['get', 'approval'],
      ['get', 'max_tool_turns'],
      ['get', 'exec'],
      ['get', 'model'],
    ].map((args) => run(args)),
  );
  expect(outputs.map(({ out }) => out)).toEqual([
    'dangerous\n',
    '50\n',
    '{"timeout_s":120,"max_timeout_s":600}\n',
    '\n',
  ]);
  expect([
    (await run(['get', 'approval'], { json: true })).out,
    (await run(['get', 'model'], { json: true })).out,
  ]).toEqual(['"dangerous"\n', 'null\n']);
});

test('an unknown key, verb or value is exit 2 with the nearest name, and nothing is written', async () => {
  const { home, run } = makeHome();
  const rows = [
    await run(['get', 'max_tool_turn']),
    await run(['set', 'aproval', 'always']),
    await run(['set', 'max_tool_turns', '0']),
    await run(['set', 'approval', 'alway']),
    await run(['set', 'model']),
    await run(['shwo']),
  ];
  expect(rows.map(({ code, out, err }) => [code, out, err.split('\n')[0]])).toEqual([
    [2, '', 'agent: agent config get: unknown key "max_tool_turn" (did you mean "max_tool_turns"?)'],
    [2, '', 'agent: agent config set: unknown key "aproval" (did you mean "approval"?)'],
    [2, '', 'agent: max_tool_turns must be an integer of at least 1, not 0'],
    [
      2,
      '',
      'agent: approval must be one of never, dangerous, mutating, always, default, accept-edits, plan, bypass, yolo (did you mean "always"?), not "alway"',
    ],
    [2, '', 'agent: config set needs a key and a value'],
    [2, '', 'agent: unknown command "config shwo"'],
  ]);
  expect(existsSync(join(home, 'a'))).toBe(false);
});

test('set keeps comments and order, null removes, the file is private and nothing else is left', async () => {
  const { home, file, run } = makeHome();
  await run(['set', 'ui.theme', 'dark']);
  expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o777, statSync(join(home, 'a')).mode & 0o777]).toEqual([
    '{\n  "ui": {\n    "theme": "dark"\n  }\n}\n',
    0o600,
    0o700,
  ]);
  writeFileSync(file, '// mine\n{\n  // short\n  "max_tool_turns": 3, // for now\n  "fs": { "deny": ["a"] },\n}\n');
  chmodSync(file, 0o644);
  await run(['set', 'max_tool_turns', '4']);
  await run(['set', 'tools.limits.bash.timeout_ms', '5']);
  await run(['set', 'fs.deny', 'null']);
  expect(readFileSync(file, 'utf8')).toMatch(/^\/\/ mine\n\{\n {2}\/\/ short\n {2}"max_tool_turns": 4, \/\/ for now\n/);
  expect([
    (await run(['get', 'tools.limits'])).out,
    (await run(['check'])).code,
    statSync(file).mode & 0o777,
    readdirSync(join(home, 'a')),
  ]).toEqual(['{"bash":{"timeout_ms":5}}\n', 0, 0o600, ['config.json']]);
});

test('set writes through a symbolic link to the file it stands for', async () => {
  const { home, file, run } = makeHome();
  mkdirSync(join(home, 'a'));
  writeFileSync(join(home, 'dotfile.json'), '{}\n');
  symlinkSync('../dotfile.json', file);
  await run(['set', 'approval', 'always']);
  expect([lstatSync(file).isSymbolicLink(), JSON.parse(readFileSync(join(home, 'dotfile.json'), 'utf8'))]).toEqual([
    true,
    { approval: 'always' },
  ]);
});

test('set leaves a broken file as it is and says where it is broken; a value that is overruled is said', async () => {
  const { home, file, run } = makeHome();
  mkdirSync(join(home, 'a'));
  writeFileSync(file, '{ "approval": }');
  expect([await run(['set', 'approval', 'always']), readFileSync(file, 'utf8')]).toEqual([
    {
      code: 2,
      out: '',
      err:
        'agent: ~/a/config.json:1:15: not valid JSON: value expected\n' +
        'Correct it there first; nothing was changed.\n',
    },
    '{ "approval": }',
  ]);
  writeFileSync(file, '{}');
  expect(
    (await run(['set', 'approval', 'always'], { env: { AGENT_HOME: join(home, 'a'), AGENT_APPROVAL: 'never' } })).err,
  ).toBe('agent: approval is overruled at the moment by AGENT_APPROVAL\n');
});

test('check gives every problem with its place and exit 2, or says ok', async () => {
  const { home, file, run } = makeHome();
  expect(await run(['check'])).toEqual({ code: 0, out: '~/a/config.json: ok\n', err: '' });
  mkdirSync(join(home, 'a'));
  writeFileSync(file, '{\n  "modle": "x",\n  "approval": "no"\n}');
  expect(await run(['check'])).toEqual({
    code: 2,
    out: '',
    err: [
      'agent: ~/a/config.json:2:3: unknown key "modle" (did you mean "model"?)',
      'Write model instead, or remove it; `agent config show` lists every key.',
      'agent: ~/a/config.json:3:15: "approval" must be one of never, dangerous, mutating, always, default, accept-edits, plan, bypass, yolo, not "no"',
      'Correct the value of approval; `agent config show` lists every key with its value.',
      '',
    ].join('\n'),
  });
  expect(JSON.parse((await run(['check'], { json: true })).out)).toHaveLength(2);
});

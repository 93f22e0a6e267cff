import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createAgent } from '../../src/frontends/library/library.js';
import type { Finished } from '../e2e/program.js';
import { agent, lines, place, script } from './inside.js';

type At = ReturnType<typeof place>;
type Line = Readonly<Record<string, unknown>>;

const remove = { name: 'bash', arguments: { command: 'rm -rf src' } };
const said = { text: 'I removed it.' };
const turns = [{ calls: [remove] }, said];
const content = 'bash(command="rm -rf src")';
const needsYes = { name: 'bash', content, reason: expect.stringContaining('rm') as string };

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** A place with a folder that the calls of these tests would remove. */
function scene(settings: object = {}): At {
  const at = place({ 'src/a.txt': 'x' });
  write(join(at.home, '.agent/config.json'), JSON.stringify(settings));
  return at;
}

/** Gives the user a sub-agent that plays these turns. */
function define(at: At, name: string, played: readonly unknown[], fields = ''): void {
  const model = join(at.home, `${name}.json`);
  write(model, JSON.stringify({ turns: played }));
  const head = `name: ${name}\ndescription: Tidies up.\nmodel: offline/${model}\n${fields}`;
  write(join(at.env.AGENT_HOME ?? join(at.home, '.agent'), 'agents', `${name}.md`), `---\n${head}---\nYou tidy up.\n`);
}

const ask = (name: string) => ({ name: 'agent', arguments: { agent: name, prompt: 'tidy up', description: 'tidy' } });

const run = (at: At, played: readonly unknown[], ...more: readonly string[]): Promise<Finished> =>
  agent(at, ['-p', '-m', script(at, played), ...more, 'go']);

function resultOf({ stdout }: Finished): Line {
  return lines(stdout).at(-1) ?? {};
}

test('as text each call that nobody could allow stands on stderr, with what to do; stdout has the answer alone', async () => {
  const at = scene();
  const again = { name: 'bash', arguments: { command: 'rm -rf src\n  src/a' } };
  expect(await run(at, [{ calls: [remove, again] }, said])).toMatchObject({
    code: 6,
    stdout: 'I removed it.\n',
    stderr: expect.stringMatching(
      /^agent: not run, because nobody could be asked: bash\(rm -rf src\)\n.*--approval never.*\nagent: not run, because nobody could be asked: bash\(rm -rf src.*\n.*--approval never.*\n$/,
    ) as string,
  });
  expect(existsSync(join(at.work, 'src'))).toBe(true);
});

test.each(['json', 'stream-json'])('as %s the result lists them', async (format) => {
  const result = resultOf(await run(scene(), turns, '--output-format', format));
  expect(result).toMatchObject({ type: 'result', status: 'completed', text: 'I removed it.' });
  expect(result['denials']).toEqual([{ ...needsYes, tool_call_id: 'script_0_0' }]);
});

test('a call that was run, also in test mode, is not a denial', async () => {
  for (const more of [['--approval', 'never'], ['--test']]) {
    const ran = await run(scene(), turns, '--output-format', 'json', ...more);
    expect([ran.code, resultOf(ran)['denials']]).toEqual([0, []]);
  }
});

test.each([
  ['a rule', { rules: { deny: [{ tool: 'bash' }] } }, /^Denied by policy: /],
  ['a hook', {}, /^Denied by a hook: not here$/],
] as const)(
  'a call that %s denies is listed; it is not a question, so the exit code is 0',
  async (by, settings, reason) => {
    const at = scene(settings);
    if (by === 'a hook')
      write(
        join(at.home, '.agent/hooks.json'),
        JSON.stringify({
          hooks: {
            PreToolUse: [{ matcher: '', hooks: [{ type: 'command', command: 'echo "not here" >&2; exit 2' }] }],
          },
        }),
      );
    const ran = await run(at, turns, '--output-format', 'json');
    expect([ran.code, resultOf(ran)['denials']]).toEqual([
      0,
      [{ tool_call_id: 'script_0_0', name: 'bash', content, reason: expect.stringMatching(reason) as string }],
    ]);
    expect((await run(at, turns)).stderr).toMatch(/^agent: not run: bash\(rm -rf src\): Denied by .*\n.+\n$/);
  },
);

test('what the other program of a conversation denies, and cannot be asked about, is listed in the result of its turn', async () => {
  const at = scene();
  for (const asks of [true, false]) {
    const stdin = new PassThrough();
    const user = { type: 'user', message: { role: 'user', content: 'go' } };
    stdin.write(`${JSON.stringify(user)}\n`);
    if (!asks) stdin.end();
    const onStdout = (text: string): void => {
      const question = lines(text).find(({ type }) => type === 'control_request');
      if (!question || stdin.writableEnded) return;
      const response = {
        subtype: 'success',
        request_id: question['request_id'],
        response: { behavior: 'deny', message: 'keep it' },
      };
      stdin.end(`${JSON.stringify({ type: 'control_response', response })}\n`);
    };
    const format = ['--input-format', 'stream-json', '--output-format', 'stream-json'];
    const prompt = asks ? ['--permission-prompt-tool', 'stdio'] : [];
    const ran = await agent(at, ['-p', '-m', script(at, turns), ...format, ...prompt], { stdin, onStdout });
    const reason = asks ? 'The user denied this: keep it' : needsYes.reason;
    expect([ran.code, resultOf(ran)['denials']]).toEqual([
      asks ? 0 : 6,
      [{ ...needsYes, reason, tool_call_id: 'script_0_0' }],
    ]);
  }
});

test('the claude dialect lists them in its own field', async () => {
  const result = resultOf(await run(scene(), turns, '--output-format', 'json', '--dialect', 'claude'));
  expect(result['permission_denials']).toEqual([
    {
      tool_name: 'Bash',
      tool_use_id: 'script_0_0',
      tool_input: expect.objectContaining({ command: 'rm -rf src' }) as object,
    },
  ]);
});

test('the denials of a sub-agent, also of one that it starts, reach the run: exit code, stderr and result', async () => {
  const at = scene();
  define(at, 'tidier', turns);
  define(at, 'chief', [{ calls: [ask('tidier')] }, { text: 'Tidied.' }]);
  const ran = await run(at, [{ calls: [ask('tidier')] }, said], '--output-format', 'json');
  const child = { ...needsYes, tool_call_id: 'script_0_0', agent_session_id: expect.any(String) as string };
  expect([ran.code, resultOf(ran)['denials']]).toEqual([6, [child]]);
  const text = await run(at, [{ calls: [ask('tidier')] }, said]);
  expect(text.stderr).toMatch(/^agent: not run, because nobody could be asked: bash\(rm -rf src\)\n/);
});

const secret = { name: 'file_read', arguments: { path: '.env' } };
const asksAlways = JSON.stringify({
  hooks: {
    PreToolUse: [
      {
        matcher: '',
        hooks: [
          {
            type: 'command',
            command: `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'`,
          },
        ],
      },
    ],
  },
});

test.each([
  ['a command', remove, ['--approval', 'never'], true, null],
  [
    'a command that a rule may allow',
    { name: 'bash', arguments: { command: 'npm test', timeout_seconds: 300 } },
    [],
    true,
    null,
  ],
  ['a guarded file', secret, ['--approval', 'never'], false, null],
  ['a call that a hook wants asked', remove, ['--approval', 'never'], false, asksAlways],
] as const)(
  '%s: what the remedy names allows it, and what does not allow it is not named',
  async (_name, denied, more, helps, hooks) => {
    const at = scene();
    write(join(at.work, '.env'), 'A=1\n');
    if (hooks !== null) write(join(at.home, '.agent/hooks.json'), hooks);
    const played = [{ calls: [denied] }, said];
    const strict = more.length > 0 ? [] : ['--approval', 'mutating'];
    const { code, stderr } = await run(at, played, ...strict);
    const pattern = /--allowed-tools "([^"]*)"/.exec(stderr)?.[1];
    expect([code, stderr.includes('with --approval never') || pattern !== undefined]).toEqual([6, helps]);
    const advised = more.length > 0 ? more : [...strict, '--allowed-tools', String(pattern)];
    expect((await run(at, played, ...advised)).code).toBe(helps ? 0 : 6);
  },
);

test('a command of the user whose call is denied fails, and its result says which', async () => {
  const at = scene();
  write(join(at.home, '.agent/commands/tidy.md'), 'Now: !`rm -rf src`\n');
  const ran = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'json', '/tidy']);
  expect([ran.code, resultOf(ran)['denials']]).toEqual([
    1,
    [{ ...needsYes, tool_call_id: expect.any(String) as string }],
  ]);
});

test('what plan mode denies a sub-agent is listed', async () => {
  const at = scene();
  define(at, 'planner', turns, 'permissionMode: plan\ntools: Bash\n');
  const ran = await run(at, [{ calls: [ask('planner')] }, said], '--output-format', 'json');
  const reason = expect.stringMatching(/^Denied by policy: .*plan/) as string;
  expect([ran.code, resultOf(ran)['denials']]).toMatchObject([0, [{ content, reason }]]);
});

test('the result of the library lists them', async () => {
  const at = scene();
  vi.stubEnv('AGENT_HOME', at.env.AGENT_HOME);
  onTestFinished(() => void vi.unstubAllEnvs());
  const own = await createAgent({ cwd: at.work, model: script(at, turns), builtins: ['bash'] });
  const result = await own.createSession().prompt('go');
  expect(result.denials).toEqual([{ ...needsYes, tool_call_id: 'script_0_0' }]);
  expect(await own.close()).toEqual({ unsaved: 0 });
});

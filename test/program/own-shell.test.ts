import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findProjectFile } from '../../src/kernel/config/load.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agent, lines, place, script } from './inside.js';

interface Samples {
  readonly bashrc: readonly string[];
  readonly judged: readonly { readonly command: string; readonly risk: string; readonly decision: string }[];
  readonly denied: readonly { readonly rule: object; readonly command: string }[];
}

const samples = JSON.parse(
  readFileSync(new URL('../../fixtures/security/own-shell.json', import.meta.url), 'utf8'),
) as Samples;

const own = ['--set', 'tools.bash.shell=own'];

function withShell(): ReturnType<typeof place> {
  const at = place({ 'a.txt': 'a\n' });
  writeFileSync(join(at.home, '.bashrc'), `echo noise\n${samples.bashrc.join('\n')}\nexport PATH="$PATH:$HOME/bin"\n`);
  mkdirSync(join(at.home, 'bin'));
  writeFileSync(join(at.home, 'bin', 'kubecolor'), '#!/bin/sh\necho colored "$@"\n', { mode: 0o755 });
  return { ...at, env: { ...at.env, SHELL: '/bin/bash' } };
}

const commands = (...list: readonly string[]) => [
  ...list.map((command) => ({ calls: [{ name: 'bash', arguments: { command } }] })),
  { text: 'Done.' },
];

type Result = { readonly output?: string; readonly expanded?: string; readonly functions?: readonly string[] };

async function results(at: ReturnType<typeof place>, options: readonly string[], ...list: readonly string[]) {
  const model = script(at, commands(...list));
  const run = await agent(at, ['-p', '--output-format', 'stream-json', '-m', model, ...options, 'go']);
  const found = lines(run.stdout).filter(({ type }) => type === 'tool_result') as readonly Record<string, unknown>[];
  return {
    run,
    envelopes: found.map(({ output }) => (typeof output === 'string' ? JSON.parse(output) : output) as Result),
  };
}

test('commands have the aliases, functions and PATH of the login shell, and results say what ran', async () => {
  const at = withShell();
  const { envelopes } = await results(at, [...own, '--approval', 'never'], 'hello you', 'kubectl get', 'echo plain');
  expect(envelopes).toMatchObject([
    { output: 'hello you\n', functions: ['hello'] },
    { output: 'colored get\n', expanded: 'kubecolor get' },
    { output: 'plain\n' },
  ]);
  expect(envelopes[2]).not.toHaveProperty('expanded');
});

test('without the setting the login shell is not started, and commands are what they are everywhere', async () => {
  const at = withShell();
  writeFileSync(join(at.home, '.bashrc'), 'touch ~/was-read\nalias echo="echo changed"\n');
  const { envelopes } = await results(at, ['--approval', 'never'], 'echo plain; ls ~');
  expect(envelopes[0]?.output).toBe('plain\nbin\n');
});

test.each(samples.judged)('$command is judged as what it stands for: $risk', async ({ command, risk, decision }) => {
  const at = withShell();
  const check = await agent(at, ['tools', 'check', 'bash', JSON.stringify({ command }), ...own]);
  expect(JSON.parse(check.stdout)).toMatchObject({ risk, decision });
});

test.each(samples.denied)('a rule that denies $rule.argv denies $command', async ({ rule, command }) => {
  const at = withShell();
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify({ rules: { deny: [rule] } }));
  const { envelopes } = await results(at, [...own, '--approval', 'never'], command);
  expect(envelopes[0]).toMatchObject({ code: 'permission_denied' });
});

test('a call that is not allowed names what would have run', async () => {
  const at = withShell();
  const { run } = await results(at, own, 'rm a.txt');
  expect(run.stdout).toContain('`rm -rf a.txt` deletes recursively');
  expect(readFileSync(join(at.work, 'a.txt'), 'utf8')).toBe('a\n');
});

test('a hook reads the command that runs', async () => {
  const at = withShell();
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  const hook = { type: 'command', command: 'cat > ~/seen.json' };
  writeFileSync(
    join(at.home, '.agent', 'hooks.json'),
    JSON.stringify({ hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [hook] }] } }),
  );
  await results(at, [...own, '--approval', 'never'], 'kubectl get');
  expect(JSON.parse(readFileSync(join(at.home, 'seen.json'), 'utf8'))).toMatchObject({
    tool_input: { command: 'kubecolor get' },
  });
});

test('the model is told nothing and the user is, when the shell cannot be read', async () => {
  const at = withShell();
  writeFileSync(join(at.home, '.bashrc'), 'exec true\n');
  const { run, envelopes } = await results(at, [...own, '--approval', 'never'], 'echo plain');
  expect(envelopes[0]?.output).toBe('plain\n');
  expect(run.stdout + run.stderr).toContain('Commands run without your aliases and functions: bash ended');
});

test('tools.bash.env reaches commands, and its secrets are masked', async () => {
  const at = place();
  const secret = 'hV7pQ2mX9tL4wZ8r';
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  const env = { DEPLOY_TOKEN: secret, COLOR: 'blue' };
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify({ tools: { bash: { env } } }));
  const line = 'printf "%s %s %s" "$COLOR" "${#DEPLOY_TOKEN}" "$DEPLOY_TOKEN"';
  const { run, envelopes } = await results(at, ['--approval', 'never'], line);
  expect(envelopes[0]?.output).toMatch(/^blue 16 /);
  expect(run.stdout).not.toContain(secret);
  const shown = await agent(at, ['config', 'list']);
  expect(shown.stdout).not.toContain(secret);
});

test('every command knows its session', async () => {
  const at = place();
  const { run, envelopes } = await results(at, ['--approval', 'never'], 'printf %s "$AGENT_SESSION_ID"');
  const [session] = lines(run.stdout).filter(({ type }) => type === 'session') as readonly Record<string, unknown>[];
  expect(envelopes[0]?.output).toBe(String(session?.['session_id']));
});

test('the file of a project sets no variable without trust, and no loader variable with it', async () => {
  const at = place();
  const env = { COLOR: 'red', LD_PRELOAD: '/evil.so', BASH_ENV: '/evil.sh', NODE_OPTIONS: '-r evil' };
  at.file('.agent/config.json', JSON.stringify({ tools: { bash: { env, shell: 'own' } } }));
  const line = 'printf "%s" "$COLOR$LD_PRELOAD$BASH_ENV$NODE_OPTIONS"';
  const before = await results(at, ['--approval', 'never'], line);
  expect(before.envelopes[0]?.output).toBe('');
  expect(before.run.stderr + before.run.stdout).toContain('tools.bash.env.COLOR');
  const project = findProjectFile(at.work, join(at.home, '.agent', 'config.json'));
  if (project === null) throw new Error('the project has no settings');
  openTrustFile(agentPaths(at.env, at.home).trust).record(project, true, 1);
  const after = await results(at, ['--approval', 'never'], line);
  expect(after.envelopes[0]?.output).toBe('red');
  expect(after.run.stderr + after.run.stdout).toContain(
    'can only be set in your own settings: tools.bash.env.LD_PRELOAD',
  );
});

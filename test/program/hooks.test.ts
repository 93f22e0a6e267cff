import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

/** A place whose user has these hooks. */
function withHooks(hooks: unknown, files: Readonly<Record<string, string>> = {}): At {
  const at = place(files);
  mkdirSync(at.env.AGENT_HOME ?? '', { recursive: true });
  writeFileSync(
    join(at.env.AGENT_HOME ?? '', 'hooks.json'),
    typeof hooks === 'string' ? hooks : JSON.stringify({ hooks }),
  );
  return at;
}

/** Trusts the files of the project as they are now, as a yes in a terminal does. */
async function trust(at: At): Promise<readonly string[]> {
  const settings = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(settings);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(settings.config.files.trust).files.record(files, true, 1);
  return files.files.flatMap((file) => file.lines);
}

const one = (event: string, command: string, matcher = ''): unknown => ({
  [event]: [{ matcher, hooks: [{ type: 'command', command }] }],
});
const call = (command: string): unknown => ({ calls: [{ name: 'bash', arguments: { command } }] });
const go = (at: At, turns: readonly unknown[], ...more: readonly string[]): readonly string[] => [
  '-p',
  '-m',
  script(at, turns),
  '--output-format',
  'stream-json',
  ...more,
  'go',
];
const specific = (fields: object): string =>
  `printf '%s' '${JSON.stringify({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...fields } })}'`;

test('a hook denies a call, every run of it is on the record, and --no-hooks does without', async () => {
  const at = withHooks(one('PreToolUse', 'echo "not here" >&2; exit 2', 'Bash'));
  const turns = [call('touch made'), { text: 'done' }];
  const denied = await agent(at, go(at, turns));
  expect(denied).toMatchObject({ code: 0, stderr: '' });
  expect(denied.stdout).toContain(
    String.raw`{\"error\":\"Denied by a hook: not here\",\"code\":\"permission_denied\"}`,
  );
  expect(existsSync(join(at.work, 'made'))).toBe(false);
  const id = String(lines(denied.stdout)[0]?.session_id);
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  expect(exported.stdout).toMatch(/"kind": ?"hook"/);
  expect(exported.stdout).toMatch(/"sha256": ?"[0-9a-f]{64}","exit": ?2/);
  await agent(at, go(at, turns, '--no-hooks'));
  expect(existsSync(join(at.work, 'made'))).toBe(true);
});

test('a call that a hook has changed is validated and judged again, whatever the hook allows', async () => {
  const gone = '/agent-hooks-nothing-here';
  for (const decision of [{}, { permissionDecision: 'allow' }]) {
    const at = withHooks(
      one('PreToolUse', specific({ ...decision, updatedInput: { command: `rm -rf ${gone}` } }), 'Bash'),
    );
    const judged = await agent(at, go(at, [call('ls'), { text: 'done' }]));
    expect(judged).toMatchObject({ code: 6 });
    expect(judged.stdout).toContain('Not run: it needs approval');
    expect(judged.stdout).toContain(gone);
  }
  const at = withHooks(one('PreToolUse', specific({ updatedInput: { cmd: 'ls' } }), 'Bash'));
  const invalid = await agent(at, go(at, [call('ls'), { text: 'done' }]));
  expect(invalid.stdout).toContain('A hook changed this call and made it invalid: bash:');
  const to = withHooks(one('PreToolUse', specific({ updatedInput: { command: 'echo changed' } }), 'Bash'));
  expect((await agent(to, go(to, [call('echo first'), { text: 'done' }]))).stdout).toContain('changed\\\\n');
});

test('two hooks that change one call differently are reported; equal changes are not', async () => {
  const hook = (command: string): unknown => ({ type: 'command', command: specific({ updatedInput: { command } }) });
  const both = async (first: string, second: string): Promise<string> => {
    const at = withHooks({ PreToolUse: [{ matcher: 'Bash', hooks: [hook(first), hook(second)] }] });
    return (await agent(at, go(at, [call('echo given'), { text: 'done' }]))).stdout;
  };
  const differing = await both('echo first', 'echo second ');
  expect(differing).toMatch(/2 hooks changed the input of one call \(PreToolUse\)\. The last one applies, .*dropped: /);
  expect(differing).toContain('second\\\\n');
  expect(await both('echo same', 'echo same')).not.toContain('hooks changed');
});

test('what a hook allows is not asked, but secrets and rules of the user are; what it wants asked is', async () => {
  const allow = withHooks(one('PreToolUse', specific({ permissionDecision: 'allow' })));
  const dangerous = 'rm -rf ../elsewhere/nothing';
  expect(await agent(allow, go(allow, [call(dangerous), { text: 'done' }]))).toMatchObject({ code: 0 });
  const secret = [{ calls: [{ name: 'file_read', arguments: { path: '.env' } }] }, { text: 'done' }];
  allow.file('.env', 'A=1');
  expect(await agent(allow, go(allow, secret))).toMatchObject({ code: 6 });
  for (const list of ['ask', 'deny']) {
    const ruled = await agent(
      allow,
      go(allow, [call('ls'), { text: 'done' }], '--set', `rules.${list}=[{"argv":["ls"]}]`),
    );
    expect(ruled.stdout).toContain(`rules.${list}`);
    expect(ruled.stdout).toContain('permission_denied');
  }
  const asking = withHooks(one('PreToolUse', specific({ permissionDecision: 'ask', permissionDecisionReason: 'hm' })));
  const asked = await agent(asking, go(asking, [call('ls'), { text: 'done' }], '--approval', 'never'));
  expect(asked.stdout).toContain('a hook asks for approval: hm');
});

test('what a hook says after a call stands beside its result; a new output takes the place of the old', async () => {
  const at = withHooks(one('PostToolUse', 'echo "run the linter" >&2; exit 2', 'Bash'));
  const told = await agent(at, go(at, [call('echo a'), { text: 'done' }]));
  expect(told.stdout).toContain(String.raw`\"hook_message\":\"run the linter\"`);
  const clean = `printf '{"hookSpecificOutput":{"updatedToolOutput":"clean"}}'`;
  const other = withHooks(one('PostToolUse', clean));
  const replaced = await agent(other, go(other, [call('echo a'), { text: 'done' }]));
  expect(replaced.stdout).toContain(String.raw`{\"output\":\"clean\"`);
});

test('a prompt that a hook holds back is not sent: the run fails and says why', async () => {
  const at = withHooks(one('UserPromptSubmit', `printf '{"decision":"block","reason":"not on a Sunday"}'`));
  const held = await agent(at, ['-p', '-m', script(at, [{ text: 'never' }]), 'go']);
  expect(held).toMatchObject({ code: 1, stdout: '' });
  expect(held.stderr).toContain('A hook blocked the message: not on a Sunday');
});

test('what hooks say at the start and of a prompt is noted before it', async () => {
  const hooks = { ...(one('SessionStart', 'cat >/dev/null; echo from the start', 'startup') as object) };
  const at = withHooks({ ...hooks, ...(one('UserPromptSubmit', 'echo of the prompt') as object) });
  const started = await agent(at, go(at, [{ text: 'hi' }]));
  const id = String(lines(started.stdout)[0]?.session_id);
  const told = async (): Promise<readonly unknown[]> =>
    lines((await agent(at, ['sessions', 'export', id, '--format', 'jsonl'])).stdout)
      .filter(({ kind }) => kind === 'user')
      .map(({ content }) => content);
  expect(await told()).toEqual(['from the start', 'of the prompt', 'go']);
  await agent(at, go(at, [{ text: 'hi' }], '-r', id));
  expect((await told()).slice(3)).toEqual(['of the prompt', 'go']);
});

test('a hook on Stop keeps the turn going and is told that it has', async () => {
  const at = withHooks(one('Stop', './stop.sh'), {});
  at.file(
    'stop.sh',
    `#!/bin/sh
in=$(cat); echo "$in" >> seen
case "$in" in *'"stop_hook_active":true'*) exit 0;; esac
printf '{"decision":"block","reason":"and the tests?"}'
`,
  );
  chmodSync(join(at.work, 'stop.sh'), 0o755);
  await trust(at);
  const went = await agent(at, ['-p', '-m', script(at, [{ text: 'first' }, { text: 'second' }]), 'go']);
  expect(went).toMatchObject({ code: 0, stdout: 'second\n' });
  const seen = lines(readFileSync(join(at.work, 'seen'), 'utf8'));
  expect(seen.map(({ stop_hook_active: again, last_assistant_message: text }) => [again, text])).toEqual([
    [false, 'first'],
    [true, 'second'],
  ]);
});

test('a hook that never lets go is let go of after eight times; continue: false ends the turn', async () => {
  const at = withHooks(one('Stop', `printf '{"decision":"block","reason":"more"}'`));
  const turns = Array.from({ length: 12 }, (_, index) => ({ text: `answer ${index + 1}` }));
  const ended = await agent(at, ['-p', '-m', script(at, turns), 'go']);
  expect(ended).toMatchObject({ code: 0, stdout: 'answer 9\n' });
  expect(ended.stderr).toContain('extended the turn 8 times');
  const stop = withHooks(one('PreToolUse', `printf '{"continue":false,"stopReason":"build failed"}'`));
  const stopped = await agent(stop, go(stop, [call('touch made'), { text: 'never' }]));
  expect(stopped.code).toBe(1);
  expect(stopped.stdout).toContain('A hook stopped the turn: build failed');
  expect(stopped.stdout).not.toContain('never');
  expect(existsSync(join(stop.work, 'made'))).toBe(false);
});

test('hooks answer a question in the place of a person, but not where every mode asks; the record says so', async () => {
  const answer = (decision: object): string => `printf '%s' '${JSON.stringify({ hookSpecificOutput: { decision } })}'`;
  const yes = withHooks(one('PermissionRequest', answer({ behavior: 'allow' })));
  const turns = [call('rm -rf ../elsewhere/nothing'), { text: 'done' }];
  const allowed = await agent(yes, go(yes, turns));
  expect(allowed).toMatchObject({ code: 0 });
  const id = String(lines(allowed.stdout)[0]?.session_id);
  expect((await agent(yes, ['sessions', 'export', id, '--format', 'jsonl'])).stdout).toMatch(/"by": ?"hook"/);
  yes.file('.env', 'A=1');
  const secret = [{ calls: [{ name: 'file_read', arguments: { path: '.env' } }] }, { text: 'done' }];
  expect(await agent(yes, go(yes, secret))).toMatchObject({ code: 6 });
  const no = withHooks(one('PermissionRequest', answer({ behavior: 'deny', message: 'never' })));
  expect((await agent(no, go(no, turns))).stdout).toContain('denied_by_user');
});

test('hooks hear of the end of a session once, and of none that never began', async () => {
  const at = withHooks(one('SessionEnd', 'cat >> ended'));
  await agent(at, go(at, [{ text: 'hi' }]));
  expect(lines(readFileSync(join(at.work, 'ended'), 'utf8'))).toMatchObject([
    { hook_event_name: 'SessionEnd', reason: 'other' },
  ]);
  const quiet = withHooks(one('SessionEnd', 'cat >> ended'));
  await repl(quiet, ['-m', script(quiet, [{ text: 'hi' }])], []);
  expect(existsSync(join(quiet.work, 'ended'))).toBe(false);
});

test('a hook may hold a compaction back', async () => {
  const at = withHooks(one('PreCompact', 'cat > asked; echo "not now" >&2; exit 2', 'manual'));
  const long = { text: `${'word '.repeat(4000)}finished.` };
  await repl(
    at,
    ['-m', script(at, [long, long, { text: 'short' }])],
    [
      ['go', /finished\.[^]*❯ /],
      ['more', /finished\.[^]*❯ /],
      ['/compact keep names', 'a hook denied it: not now'],
    ],
  );
  const asked: unknown = JSON.parse(readFileSync(join(at.work, 'asked'), 'utf8'));
  expect(asked).toMatchObject({ trigger: 'manual', custom_instructions: 'keep names' });
});

test('a file that cannot be read stops the program; what does not count in one is said and listed', async () => {
  const broken = withHooks('{"hooks": ');
  const turns = [{ text: 'hi' }];
  expect(await agent(broken, ['-p', '-m', script(broken, turns), 'go'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('hooks.json cannot be used') as string,
  });
  expect(await agent(broken, ['-p', '--no-hooks', '-m', script(broken, turns), 'go'])).toMatchObject({ code: 0 });
  const at = withHooks({ ...(one('PreToolUse', './gone.sh', 'Bash') as object), TeammateIdle: [] });
  const listed = await agent(at, ['hooks']);
  expect(listed.stdout).toMatch(
    /^PreToolUse {2}Bash {2}user {2}[0-9a-f]{12} {2}\.\/gone\.sh \(missing: \.\/gone\.sh\)$/m,
  );
  expect(listed.stderr).toContain('unknown event TeammateIdle');
  expect(JSON.parse((await agent(at, ['hooks', '--json'])).stdout)).toMatchObject([
    { event: 'PreToolUse', timeout_s: 600 },
  ]);
  const shown = await repl(at, ['-m', script(at, turns)], [['/hooks', './gone.sh']]);
  expect(shown.stdout).toContain('TeammateIdle');
  expect((await agent(place(), ['hooks'])).stdout).toContain('No hooks');
});

/** A repository with hooks for Claude Code, and the script they name. */
function projectWithHooks(): At {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  const command = '"$CLAUDE_PROJECT_DIR"/.claude/check.sh';
  at.file('.claude/settings.json', JSON.stringify({ permissions: {}, hooks: one('PreToolUse', command, 'Bash') }));
  at.file('.claude/check.sh', `#!/bin/sh\npwd >> "$CLAUDE_PROJECT_DIR/ran"; exit 0\n`);
  chmodSync(join(at.work, '.claude/check.sh'), 0o755);
  at.file('.agent/hooks.json', JSON.stringify({ hooks: one('UserPromptSubmit', 'echo prompt >> ran') }));
  return at;
}

test('hooks of a project start nothing before they are trusted, exactly as they and their scripts are', async () => {
  const at = projectWithHooks();
  const ran = (): readonly string[] =>
    existsSync(join(at.work, 'ran')) ? readFileSync(join(at.work, 'ran'), 'utf8').trim().split('\n') : [];
  const run = async (): Promise<string> => {
    const { stdout } = await agent(at, go(at, [call('ls'), { text: 'done' }]));
    return lines(stdout).find(({ type }) => type === 'notice')?.message as string;
  };
  expect(await run()).toContain('not trusted and not used; review them with agent config trust');
  expect((await agent(at, ['hooks'])).stdout).toMatch(/check\.sh \(not trusted, not run/);
  expect(ran()).toEqual([]);
  const asked = await trust(at);
  expect(asked).toEqual([
    'hook UserPromptSubmit runs: echo prompt >> ran',
    'hook PreToolUse (Bash) runs: "$CLAUDE_PROJECT_DIR"/.claude/check.sh',
    expect.stringMatching(/^ {2}with .*check\.sh \(sha256 [0-9a-f]{64}\)$/) as string,
  ]);
  expect(await run()).toBeUndefined();
  expect(ran()).toEqual(['prompt', at.work]);
  expect(JSON.parse((await agent(at, ['hooks', '--json'])).stdout)).toMatchObject([
    { origin: 'project', active: true },
    { origin: 'project', active: true },
  ]);
  // What else stands in the settings of another program does not matter; one byte of a script does.
  at.file(
    '.claude/settings.json',
    readFileSync(join(at.work, '.claude/settings.json'), 'utf8').replace('{}', '{"allow":[]}'),
  );
  expect(await run()).toBeUndefined();
  at.file('.claude/check.sh', `#!/bin/sh\npwd >> "$CLAUDE_PROJECT_DIR/ran"; exit 0 \n`);
  expect(await run()).toContain('not trusted');
  expect(ran()).toHaveLength(4);
});

test('a server that a project names is asked once it is trusted, at this address with these headers', async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${String(request.headers['x-team'])}`);
    response.end('{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"ask the team"}}');
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  const hooksWith = (team: string): void => {
    const hooks = [{ type: 'http', url, headers: { 'X-Team': team } }];
    at.file('.claude/settings.json', JSON.stringify({ hooks: { PreToolUse: [{ matcher: 'Bash', hooks }] } }));
  };
  const run = async (): Promise<string> => (await agent(at, go(at, [call('touch made'), { text: 'done' }]))).stdout;
  hooksWith('a');
  expect(await run()).toContain('not trusted and not used');
  expect(asked).toEqual([]);
  expect(await trust(at)).toEqual([`hook PreToolUse (Bash) sends its input to: ${url}`, '  with the header X-Team: a']);
  const denied = await run();
  expect(denied).toContain('Denied by a hook: ask the team');
  expect(asked).toEqual(['POST /hook a']);
  const id = String(lines(denied)[0]?.session_id);
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'jsonl']);
  expect(exported.stdout).toMatch(/"sha256": ?"[0-9a-f]{64}","exit": ?null,"status": ?200/);
  expect(JSON.parse((await agent(at, ['hooks', '--json'])).stdout)).toMatchObject([
    { type: 'http', command: url, headers: ['X-Team'], active: true },
  ]);
  hooksWith('b');
  expect(await run()).toContain('not trusted and not used');
  expect(asked).toHaveLength(1);
});

test('a hook of the user that starts a file of an untrusted project does not run; where it is required, it denies', async () => {
  for (const size of [10, 5_000_000]) {
    const at = withHooks(one('PreToolUse', './check.sh', 'Bash'), {
      'check.sh': `#!/bin/sh\ntouch evil\n${'#'.repeat(size)}\n`,
    });
    chmodSync(join(at.work, 'check.sh'), 0o755);
    const ran = await agent(at, go(at, [call('touch made'), { text: 'done' }]));
    expect(ran.stdout).toContain('it starts a file of this project, which is not trusted');
    expect(existsSync(join(at.work, 'evil'))).toBe(false);
    expect(existsSync(join(at.work, 'made'))).toBe(true);
    await trust(at);
    await agent(at, go(at, [call('ls'), { text: 'done' }]));
    expect(existsSync(join(at.work, 'evil'))).toBe(true);
  }
  const strict = { matcher: '', hooks: [{ type: 'command', command: './check.sh', required: true }] };
  const at = withHooks({ PreToolUse: [strict] }, { 'check.sh': '' });
  await agent(at, go(at, [call('touch made'), { text: 'done' }]));
  expect(existsSync(join(at.work, 'made'))).toBe(false);
});

test('what the user switches off stays off in a project, and links out of it are none of its hooks', async () => {
  const at = projectWithHooks();
  await trust(at);
  mkdirSync(at.env.AGENT_HOME ?? '', { recursive: true });
  writeFileSync(join(at.env.AGENT_HOME ?? '', 'hooks.json'), '{"disableAllHooks": true}');
  await agent(at, go(at, [call('ls'), { text: 'done' }]));
  expect(existsSync(join(at.work, 'ran'))).toBe(false);
  const linked = place({ '.git/HEAD': '' });
  writeFileSync(join(linked.home, 'hooks.json'), JSON.stringify({ hooks: one('Stop', 'touch ran') }));
  mkdirSync(join(linked.work, '.agent'));
  symlinkSync(join(linked.home, 'hooks.json'), join(linked.work, '.agent/hooks.json'));
  expect((await agent(linked, ['hooks'])).stdout).toContain('No hooks');
});

test('after a compaction hooks hear of a session that begins anew, and what they say is noted behind it', async () => {
  const heard = '{"systemMessage":"it heard","hookSpecificOutput":{"additionalContext":"remember the tests"}}';
  const at = withHooks(one('SessionStart', `jq -r .source >> starts; echo '${heard}'`, 'compact'));
  const long = { text: `${'word '.repeat(4000)}finished.` };
  await repl(
    at,
    ['-m', script(at, [long, long, { text: 'short' }])],
    [
      ['go', /finished\.[^]*❯ /],
      ['more', /finished\.[^]*❯ /],
      ['/compact', 'it heard'],
    ],
  );
  expect(readFileSync(join(at.work, 'starts'), 'utf8')).toBe('compact\n');
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const exported = await agent(at, ['sessions', 'export', listed[0].id, '--format', 'jsonl']);
  const log = lines(exported.stdout);
  const compacted = log.findIndex(({ kind }) => kind === 'compaction');
  expect(log.slice(compacted).some(({ content }) => content === 'remember the tests')).toBe(true);
});

test('hooks hear that a person is waited for', async () => {
  const at = withHooks(one('Notification', 'cat >> waits', 'permission_prompt'));
  await repl(
    at,
    ['-m', script(at, [call('rm -rf ../elsewhere/nothing'), { text: 'done' }])],
    [
      ['go', /or no \(and why\): /],
      ['n', /done/],
    ],
  );
  expect(lines(readFileSync(join(at.work, 'waits'), 'utf8'))).toMatchObject([
    {
      hook_event_name: 'Notification',
      notification_type: 'permission_prompt',
      message: 'agent needs your permission to use bash',
    },
  ]);
});

/** Two long answers and a compaction, with these hooks. */
async function compacted(at: At): Promise<void> {
  const long = { text: `${'word '.repeat(4000)}finished.` };
  await repl(
    at,
    ['-m', script(at, [long, long, { text: 'short' }])],
    [
      ['go', /finished\.[^]*❯ /],
      ['more', /finished\.[^]*❯ /],
      ['/compact', 'it heard'],
    ],
  );
}

test('after a compaction a hook reads the summary, and what it says is noted behind it', async () => {
  const heard = '{"systemMessage":"it heard","hookSpecificOutput":{"additionalContext":"keep the names"}}';
  const command = (file: string): string => `cat > ${file}; echo '${heard}'`;
  const at = withHooks({
    PostCompact: [
      { matcher: 'manual', hooks: [{ type: 'command', command: command('manual') }] },
      { matcher: 'auto', hooks: [{ type: 'command', command: command('auto') }] },
    ],
  });
  await compacted(at);
  expect(JSON.parse(readFileSync(join(at.work, 'manual'), 'utf8'))).toMatchObject({
    hook_event_name: 'PostCompact',
    trigger: 'manual',
    compact_summary: expect.stringContaining('short') as string,
  });
  expect(existsSync(join(at.work, 'auto'))).toBe(false);
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as [{ readonly id: string }];
  const log = lines((await agent(at, ['sessions', 'export', listed[0].id, '--format', 'jsonl'])).stdout);
  const compaction = log.findIndex(({ kind }) => kind === 'compaction');
  expect(log.slice(compaction).some(({ content }) => content === 'keep the names')).toBe(true);
});

test('a turn that ends because the model fails runs StopFailure with the kind of failure, and not Stop', async () => {
  const failing = { text: '', fault: { code: 'rate_limited', message: 'too many requests' } };
  const at = withHooks({
    ...(one('StopFailure', 'cat > failed', 'rate_limit') as object),
    ...(one('Stop', 'cat > stopped') as object),
  });
  expect((await agent(at, go(at, [failing]))).code).not.toBe(0);
  expect(JSON.parse(readFileSync(join(at.work, 'failed'), 'utf8'))).toMatchObject({
    hook_event_name: 'StopFailure',
    error: 'rate_limit',
    error_details: 'too many requests',
  });
  expect(existsSync(join(at.work, 'stopped'))).toBe(false);
  const other = withHooks(one('StopFailure', 'cat > failed', 'server_error'));
  await agent(other, go(other, [failing]));
  expect(existsSync(join(other.work, 'failed'))).toBe(false);
});

test('what a hook says at the start of a sub-agent is noted in the session of that agent', async () => {
  const heard = '{"hookSpecificOutput":{"additionalContext":"look in lib first"}}';
  const at = withHooks(one('SubagentStart', `cat >> started; echo '${heard}'`, 'explore'));
  const asks = { calls: [{ name: 'agent', arguments: { agent: 'explore', prompt: 'find it', description: 'find' } }] };
  const turns = [asks, { text: 'found' }, { text: 'done' }];
  const ran = await agent(at, go(at, turns, '--tools', '+agents'));
  const result = lines(ran.stdout).find(({ type, name }) => type === 'tool_result' && name === 'agent');
  const { agent_session_id: child } = JSON.parse(String(result?.output)) as { readonly agent_session_id: string };
  expect(lines(readFileSync(join(at.work, 'started'), 'utf8'))).toMatchObject([
    { hook_event_name: 'SubagentStart', agent_id: child, agent_type: 'explore' },
  ]);
  const notesOf = async (id: string): Promise<readonly unknown[]> =>
    lines((await agent(at, ['sessions', 'export', id, '--format', 'jsonl'])).stdout)
      .filter(({ kind }) => kind === 'user')
      .map(({ content }) => content);
  expect(await notesOf(child)).toEqual(['look in lib first', 'find it']);
  expect(await notesOf(String(lines(ran.stdout)[0]?.session_id))).toEqual(['go']);
});

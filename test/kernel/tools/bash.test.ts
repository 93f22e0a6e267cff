import { expect, test } from 'vitest';
import { processesMarked } from '../../../src/kernel/tools/process/watchdog.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { call, context, envelopeOf, registry, tree } from './workbench.js';

const bash = (command: string, more: object = {}, cwd = tree()) =>
  envelopeOf('bash', { command, ...more }, context(cwd));

test('stdout and stderr come in the order in which they were written, with the exit code', async () => {
  const outcome = await call('bash', { command: 'echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 3' }, context(tree()));
  expect(outcome).toEqual({ envelope: { output: '1\n2\n3\n4\n', exit_code: 3 }, summary: 'exit 3' });
});

test('where there are no pipes the order is kept all the same', async () => {
  const processes = createProcessRunner({ marker: { name: '_SOCKET_TEST', value: String(process.pid) } });
  const tools = registry({ processes });
  expect(await envelopeOf('bash', { command: 'echo 1; echo 2 >&2; echo 3; exit 3' }, context(tree()), tools)).toEqual({
    output: '1\n2\n3\n',
    exit_code: 3,
  });
});

test('a script can open its own output by name', async () => {
  expect(
    await bash(
      'echo 1 > /dev/stdout; echo 2 > /dev/stderr; echo 3 | tee /dev/stderr; echo 4 >> /proc/self/fd/2; cat > /dev/stdout <<< 5',
    ),
  ).toEqual({
    output: '1\n2\n3\n3\n4\n5\n',
    exit_code: 0,
  });
});

test('a command that is not a shell program answers what the shell says', async () => {
  expect(await bash('if')).toMatchObject({ exit_code: 2, output: expect.stringContaining('syntax error') });
});

test('death by a signal is 128 and its number, with the name', async () => {
  expect(await bash('kill -9 $$')).toEqual({ output: '', exit_code: 137, signal: 'SIGKILL' });
  expect(await bash("sh -c 'kill -TERM $$'")).toEqual({ output: '', exit_code: 143, signal: 'SIGTERM' });
});

test('a program that asks for a password gets none, and the output says what helps', async () => {
  const asks = String.raw`printf 'protocol=https\nhost=example.com\n\n' | git credential fill`;
  const outcome = await bash(`${asks}; "$SSH_ASKPASS" x; "$SUDO_ASKPASS" x; echo $?`);
  const sentence = 'agent: no password: commands have no terminal. Use a key or a credential helper';
  expect(JSON.stringify(outcome).split(sentence)).toHaveLength(4);
});

test('standard input is empty and there is no terminal, pager or prompt', async () => {
  expect(
    await bash('cat; echo "[$TERM $PAGER $GIT_TERMINAL_PROMPT]"; tty; (: < /dev/tty) 2>/dev/null || echo no terminal'),
  ).toEqual({
    output: '[dumb cat 0]\nnot a tty\nno terminal\n',
    exit_code: 0,
  });
});

test('protected names are not in the environment of a child', async () => {
  const tools = registry({
    env: { PATH: process.env.PATH, MY_KEY: 'secret', OTHER: 'kept' },
    protectedEnv: ['MY_KEY'],
  });
  expect(await envelopeOf('bash', { command: 'echo "$OTHER[$MY_KEY]"' }, context(tree()), tools)).toMatchObject({
    output: 'kept[]\n',
  });
});

test('a program that a repository names for git status does not run', async () => {
  const cwd = tree({ 'watch.sh': '#!/bin/sh\ntouch "$PWD/HIT"\n' });
  await bash('git init -q . && chmod +x watch.sh && git config core.fsmonitor "$PWD/watch.sh"', {}, cwd);
  expect(await bash('git status >/dev/null 2>&1; ls', {}, cwd)).toMatchObject({ output: 'watch.sh\n' });
});

test('a command that only reads runs no hook and enters no folder that is itself a repository', async () => {
  const cwd = tree({ 'a.txt': 'a', hook: '#!/bin/sh\ntouch "$PWD/HIT"\n' });
  await bash(
    'git init -q . && git add a.txt && chmod +x hook && mv hook .git/hooks/post-index-change && touch a.txt',
    {},
    cwd,
  );
  await bash('git init -q --bare inner', {}, cwd);
  const reading = async (command: string) =>
    (await call('bash', { command }, context(cwd, { readsOnly: true }))).envelope;
  expect(await reading('touch -d 2001-01-01 a.txt; git status --short; ls')).toMatchObject({
    output: 'A  a.txt\n?? inner/\na.txt\ninner\n',
  });
  expect(await reading('git -C inner log')).toMatchObject({
    exit_code: 128,
    output: expect.stringContaining('bareRepository'),
  });
  expect(await bash('git -C inner symbolic-ref --short HEAD', {}, cwd)).toMatchObject({ exit_code: 0 });
  expect(await bash('touch -d 2001-01-02 a.txt; git status --short; ls HIT', {}, cwd)).toMatchObject({ exit_code: 0 });
});

test('what a command makes or changes that other programs run by themselves is named, and nothing else is', async () => {
  const cwd = tree({
    '.vscode/settings.json': '{}',
    '.vscode/launch.json': '{}',
    '.git/hooks/pre-commit.sample': '',
    '.git/config': '[core]\n',
    'package.json': '{}',
  });
  const planted = [
    '.agent/config.json',
    '.claude/settings.json',
    '.cursor/mcp.json',
    '.devcontainer/devcontainer.json',
    '.git/hooks/pre-commit',
    '.github/workflows/ci.yml',
    '.husky/pre-push',
    '.idea/runs/all.xml',
    '.mcp.json',
    '.vscode/settings.json',
    '.vscode/tasks.json',
    '.zed/tasks.json',
  ];
  const outcome = await call(
    'bash',
    {
      command: `for f in ${planted.join(' ')}; do mkdir -p "$(dirname $f)"; echo '{"x":1}' > $f; done; touch .git/hooks/x.sample package.json new.txt; echo made`,
    },
    context(cwd),
  );
  expect(outcome.envelope).toEqual({ output: 'made\n', exit_code: 0, auto_run_files: planted });
  expect(outcome.summary).toBe(`exit 0; changed files that other programs run automatically: ${planted.join(', ')}`);
  expect(await bash('cat .vscode/settings.json', {}, cwd)).toEqual({ output: '{"x":1}\n', exit_code: 0 });
  expect(
    await bash(
      'printf "%s" "$(seq 30)" | while read n; do echo > .claude/$n; done; sleep 60',
      { timeout_seconds: 1 },
      cwd,
    ),
  ).toMatchObject({ code: 'timeout', auto_run_files: { length: 21, 20: 'and 9 more' } });
});

test('workdir is relative to the working directory, and nothing carries over', async () => {
  const cwd = tree({ 'sub/': '' });
  expect(await bash('pwd; cd /; X=1', { workdir: 'sub' }, cwd)).toMatchObject({ output: `${cwd}/sub\n` });
  expect(await bash('pwd; echo "[$X]"', {}, cwd)).toMatchObject({ output: `${cwd}\n[]\n` });
});

test('a missing workdir is not_found with a near name, a file as workdir fails', async () => {
  const cwd = tree({ 'source/': '', file: '' });
  expect(await bash('pwd', { workdir: 'sources' }, cwd)).toMatchObject({
    code: 'not_found',
    details: { nearest: ['source'] },
  });
  expect(await bash('pwd', { workdir: 'file' }, cwd)).toMatchObject({ code: 'execution_failed' });
});

test('a timeout ends the whole group and keeps the output so far', async () => {
  const envelope = await bash('echo before; sleep 60 & sleep 61', { timeout_seconds: 1 });
  expect(envelope).toMatchObject({ code: 'timeout', details: { output: 'before\n' } });
});

test('what ignores TERM is killed after two seconds, also behind a shell that obeys', async () => {
  expect(
    await bash(`bash -c 'trap "" TERM; echo up; while :; do sleep 0.1; done'; true`, { timeout_seconds: 1 }),
  ).toMatchObject({ code: 'timeout', details: { output: 'up\n' } });
});

test('a cancel ends the command and answers cancelled', async () => {
  const controller = new AbortController();
  const outcome = call(
    'bash',
    { command: 'echo up; sleep 60' },
    context(tree(), {
      signal: controller.signal,
      progress: () => {
        controller.abort();
      },
    }),
  );
  expect((await outcome).envelope).toMatchObject({ code: 'cancelled', details: { output: 'up\n' } });
});

test('a background process does not hold the call open, is counted, and ends with the agent', async () => {
  const marker = { name: '_BACKGROUND_TEST', value: String(process.pid) };
  const processes = createProcessRunner({ marker });
  const tools = registry({ processes });
  expect(await envelopeOf('bash', { command: 'sleep 100 & echo hi' }, context(tree()), tools)).toEqual({
    output: 'hi\n',
    exit_code: 0,
    background: 1,
  });
  await envelopeOf('bash', { command: 'setsid sleep 101 >/dev/null 2>&1 & echo away' }, context(tree()), tools);
  await expect.poll(() => processesMarked(`${marker.name}=${marker.value}`).length).toBe(2);
  await processes.killBackground();
  expect(processesMarked(`${marker.name}=${marker.value}`)).toEqual([]);
});

test('a background process that goes on printing is not blocked or killed by it', async () => {
  const cwd = tree();
  await bash(
    '(for i in $(seq 200); do head -c 4096 /dev/zero | tr "\\0" x; done; echo done > finished) & echo hi',
    {},
    cwd,
  );
  await expect
    .poll(() => call('glob', { pattern: 'finished' }, context(cwd)), { timeout: 10_000 })
    .toMatchObject({ envelope: { count: 1 } });
});

test('long output keeps head and tail around one marker line, and the true size', async () => {
  const ctx = context(tree(), { limits: { timeoutMs: null, maxOutputBytes: 1000 } });
  const envelope = await envelopeOf('bash', { command: 'echo start; seq 100000; echo end' }, ctx);
  expect(envelope).toMatchObject({ truncated: true, total_bytes: 588_905, exit_code: 0 });
  const { output } = envelope as { output: string };
  expect(Buffer.byteLength(output)).toBeLessThanOrEqual(1000);
  expect(output).toMatch(/^start\n1\n[^]*\n\[… \d+ bytes omitted …\]\n[^]*100000\nend\n$/);
  expect(
    Buffer.byteLength(output) -
      Buffer.byteLength(/\n\[…[^\]]*\]\n/.exec(output)?.[0] ?? '') +
      Number(/\[… (\d+)/.exec(output)?.[1]),
  ).toBe(588_905);
});

test('a flood ends at 256 MiB without filling memory', async () => {
  const before = process.memoryUsage().rss;
  expect(await bash('yes')).toMatchObject({
    code: 'execution_failed',
    details: { output: expect.stringContaining('y\ny\n'), truncated: true },
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
});

test('bytes that are not UTF-8 become U+FFFD, a NUL is shown, binary data is a line beside the text', async () => {
  expect(await bash(String.raw`printf 'caf\xc3\xa9 \xff'`)).toEqual({ output: 'café \uFFFD', exit_code: 0 });
  expect(await bash(String.raw`seq 100; printf 'a\0b'`)).toMatchObject({
    output: expect.stringMatching(/100\na\\0b$/),
  });
  expect(await bash(String.raw`printf 'a\0./b c\0d\0'`)).toEqual({ output: String.raw`a\0./b c\0d\0`, exit_code: 0 });
  expect(await bash(String.raw`printf 'M\374ller.txt\n'`)).toEqual({ output: 'M\uFFFDller.txt\n', exit_code: 0 });
  expect(await bash('head -c 5000 /dev/zero')).toEqual({ output: '[binary, 5000 bytes]', exit_code: 0 });
  expect(await bash('echo building; head -c 5000 /dev/zero; echo; echo RESULT: 3 tests passed')).toEqual({
    output: 'building\n[binary, 5001 bytes]\nRESULT: 3 tests passed\n',
    exit_code: 0,
  });
  // The octal bytes are Cyrillic in windows-1251.
  const russian = String.raw`\316\370\350\341\352\340 `.repeat(100);
  expect(await bash(`printf '${russian}'; echo; echo RESULT: 3 tests passed`)).toMatchObject({
    output: expect.stringMatching(/^\uFFFD[^]*\nRESULT: 3 tests passed\n$/),
  });
});

test('a command longer than the kernel takes as an argument runs all the same', async () => {
  expect(await bash(`x='${'a'.repeat(300_000)}'; echo \${#x}; exit 4`)).toEqual({ output: '300000\n', exit_code: 4 });
});

test('output is streamed while the command runs, in bounded chunks that join to the text', async () => {
  const chunks: string[] = [];
  await call(
    'bash',
    { command: 'echo één; sleep 0.2; echo zwei' },
    context(tree(), {
      progress: (chunk) => {
        chunks.push(chunk);
      },
    }),
  );
  expect(chunks.length).toBeGreaterThan(1);
  expect(chunks.join('')).toBe('één\nzwei\n');
});

test('without a sandbox to hold it, a command that must be confined is not run', async () => {
  const cwd = tree();
  expect(await envelopeOf('bash', { command: 'touch made' }, context(cwd, { sandbox: 'workspace' }))).toMatchObject({
    code: 'execution_failed',
  });
  expect(await envelopeOf('glob', { pattern: '*' }, context(cwd))).toMatchObject({ count: 0 });
});

test.each([
  [{ command: '  ' }, 'command'],
  [{ command: 'a\0b' }, 'command'],
  [{ command: 'true', timeout_seconds: 601 }, 'timeout_seconds'],
  [{ command: 'true', timeout_seconds: 1.5 }, 'timeout_seconds'],
  [{ command: 'true', workdir: '' }, 'workdir'],
  [{ command: 'true', cwd: '/' }, 'cwd'],
])('bad arguments %j name the argument', async (args, argument) => {
  expect(await envelopeOf('bash', args, context(tree()))).toMatchObject({
    code: 'invalid_args',
    details: { argument },
  });
});

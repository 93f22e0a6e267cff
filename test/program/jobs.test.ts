import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

const server = { calls: [{ name: 'bash', arguments: { command: 'echo listening; sleep 60', background: true } }] };
const on = ['--tools', '+jobs', '--approval', 'never'];

test('a job is shown, listed and ended in the REPL, and the model is told of its end', async () => {
  const at = place();
  const model = script(at, [server, { text: 'It runs.' }, { text: 'I see.' }]);
  const { stdout } = await repl(
    at,
    ['-m', model, ...on],
    [
      ['/jobs', 'There are no jobs.'],
      ['start it', 'It runs.'],
      ['/jobs 1', /1: echo listening; sleep 60 \(running for \d+ s\)\nlistening\n/],
      ['/jobs 2', 'No such job'],
      ['/tasks', /In the background:\n1: running for \d+ s: echo listening; sleep 60\n[^]*There are no/],
      ['/schedule', /^(?![^]*In the background)[^]*There are no/],
      ['/jobs background', 'No running command to move'],
      ['/jobs kill 1', /sent to the model: job 1 has ended \(echo listening; sleep 60\): killed after \d+ s/],
      ['and now?', 'I see.'],
    ],
  );
  expect(stdout).toContain('Running in the background as job 1');
});

test('a session that goes on is told that its jobs have ended with the program', async () => {
  const at = place();
  const json = ['--output-format', 'stream-json'];
  const first = await agent(at, ['-p', '-m', script(at, [server, { text: 'It runs.' }]), ...on, ...json, 'start it']);
  const id = /"session_id":"([^"]+)"/.exec(first.stdout)?.[1] ?? '';
  await agent(at, ['-r', id, '-p', 'and now?']);
  await agent(at, ['-r', id, '-p', 'and then?']);
  const { stdout } = await agent(at, ['sessions', 'show', id, '--json']);
  const events = JSON.parse(stdout) as readonly { readonly kind: string; readonly content: string | null }[];
  expect(events.flatMap(({ kind, content }) => (kind === 'user' ? [content] : []))).toEqual([
    'start it',
    '[Note: job 1 has ended, because the program exited.]',
    'and now?',
    'and then?',
  ]);
});

test('without the set nothing goes on in the background', async () => {
  const at = place();
  const model = script(at, [server, { text: 'Not so.' }]);
  const run = await agent(at, ['-p', '-m', model, '--approval', 'never', '--output-format', 'stream-json', 'start it']);
  expect(lines(run.stdout).find(({ type }) => type === 'tool_result')).toMatchObject({ success: false });
  expect(run.stdout).toContain('invalid_args');
});

const slow = { calls: [{ name: 'bash', arguments: { command: 'echo begun; sleep 60', timeout_seconds: 1 } }] };

test('a command at its time limit continues as a job in the REPL, and ends in headless mode', async () => {
  const at = place();
  const model = script(at, [slow, { text: 'It runs.' }]);
  const { stdout } = await repl(
    at,
    ['-m', model, '--approval', 'never'],
    [
      ['start it', 'It runs.'],
      ['/jobs 1', /1: echo begun; sleep 60 \(running for \d+ s\)\nbegun\n/],
      ['/jobs kill 1', /sent to the model: job 1 has ended \(echo begun; sleep 60\): killed after \d+ s/],
    ],
  );
  expect(stdout).toContain('Still running after 1 s: continues in the background as job 1');
  const run = await agent(at, [
    '-p',
    '-m',
    script(at, [slow, { text: 'Over.' }]),
    ...on,
    '--output-format',
    'stream-json',
    'x',
  ]);
  expect(run.stdout).toContain(String.raw`\"code\":\"timeout\"`);
});

test('tools.bash.on_timeout decides in either mode', async () => {
  const at = place();
  const background = ['--set', 'tools.bash.on_timeout=background'];
  const json = ['--output-format', 'stream-json'];
  const moved = await agent(at, [
    '-p',
    '-m',
    script(at, [slow, { text: 'Runs.' }]),
    ...on,
    ...background,
    ...json,
    'x',
  ]);
  expect(lines(moved.stdout).find(({ type }) => type === 'tool_result')).toMatchObject({
    output: expect.stringMatching(/"job":1,"running":true,"next":6/),
  });
  const stop = ['--set', 'tools.bash.on_timeout=stop'];
  const { stdout } = await repl(
    at,
    ['-m', script(at, [slow, { text: 'Over.' }]), '--approval', 'never', ...stop],
    [
      ['start it', 'Over.'],
      ['/jobs', 'There are no jobs.'],
    ],
  );
  expect(stdout).toContain('was still running after 1 s and was stopped');
});

const watched = {
  calls: [
    {
      name: 'bash',
      arguments: {
        command: 'echo building; sleep 2.4; echo; printf "\\033[31mERROR\\033[0m one\\n" >&2; sleep 60',
        background: true,
        wake_on: '^error',
      },
    },
  ],
};
const withCase = {
  calls: [{ name: 'bash', arguments: { ...watched.calls[0]?.arguments, wake_on: '(?i)^error' } }],
};

test('a line that matches wakes the model in the REPL, and /jobs has the wake with its cost', async () => {
  const at = place();
  const model = script(at, [withCase, { text: 'It builds.' }, { text: 'I see the error.' }]);
  const { stdout } = await repl(
    at,
    ['-m', model, '--approval', 'never'],
    [
      [
        'start it',
        /It builds\.[^]*sent to the model: job 1 printed a line that matches wake_on: ERROR one[^]*I see the error\./,
      ],
      ['/jobs 1', /running for \d+ s, 1 wake \(\$0\.00\)\)\nwake 1: 1 line, \$0\.00\n\nbuilding\n/],
    ],
  );
  expect(stdout).not.toContain('job 1 printed 2 lines');
  const id = (JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as { id: string }[])[0]?.id ?? '';
  const shown = JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as readonly {
    readonly kind: string;
    readonly data: unknown;
  }[];
  expect(shown.filter(({ kind }) => kind === 'user')).toMatchObject([
    { data: { source: 'terminal' } },
    { data: { note: true, source: 'task' } },
  ]);
});

test('headless, the turn that runs gets the line; what cannot match is refused', async () => {
  const at = place();
  const wait = { calls: [{ name: 'jobs', arguments: { action: 'wait', id: 1, seconds: 2 } }] };
  const turns = [watched, withCase, wait, { text: 'Over.' }];
  const bad = { calls: [{ name: 'bash', arguments: { command: 'true', background: true, wake_on: '(' } }] };
  const run = await agent(at, ['-p', '-m', script(at, [bad, ...turns]), ...on, '--output-format', 'stream-json', 'x']);
  const results = lines(run.stdout).filter(({ type }) => type === 'tool_result');
  expect(results[0]).toMatchObject({
    success: false,
    output: expect.stringMatching(/wake_on.*invalid_args/) as string,
  });
  const id = String(lines(run.stdout)[0]?.['session_id']);
  const { stdout } = await agent(at, ['sessions', 'show', id]);
  expect(stdout).toMatch(/job 2 printed a line that matches wake_on/);
  expect(stdout).not.toMatch(/job 1 printed/);
});

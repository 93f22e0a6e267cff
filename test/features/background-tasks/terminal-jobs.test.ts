import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Envelope } from '../../../src/kernel/core/envelope.js';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import { bashTool } from '../../../src/kernel/tools/bash.js';
import { createJobs, type Job, type Jobs } from '../../../src/features/background-tasks/background.js';
import { jobsTool } from '../../../src/features/background-tasks/jobs-tool.js';
import { context, envelopeOf, toolOptions, tree } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const opened: Jobs[] = [];
afterEach(async () => {
  for (const jobs of opened.splice(0)) {
    for (const { id } of jobs.list()) await jobs.kill(id, 'quietly');
    jobs.close();
  }
});

/** The shell with a background, and the tool for it, in one session. */
function openJobs() {
  const jobs = createJobs({
    clock: () => performance.now(),
    schedule: (callback, delayMs) => {
      const timer = setTimeout(callback, delayMs);
      return () => {
        clearTimeout(timer);
      };
    },
  });
  opened.push(jobs);
  const cwd = tree();
  const ends: [Job, string][] = [];
  let onEnd = (): void => undefined;
  jobs.attach('s', 1, {
    ended(job, last) {
      ends.push([job, last]);
      onEnd();
    },
  });
  const tools = registryOf([bashTool(toolOptions({ background: jobs })), jobsTool(jobs)]);
  const ctx = (changed: Partial<ToolContext> = {}): ToolContext =>
    context(cwd, { session: { id: 's', events: () => [], recent: () => [] }, ...changed });
  return {
    ...{ jobs, cwd, ends },
    ended: () =>
      new Promise<void>((resolve) => {
        onEnd = resolve;
      }),
    terminal: (command: string, changed?: Partial<ToolContext>): Promise<Envelope> =>
      envelopeOf('bash', { command, background: true, terminal: true }, ctx(changed), tools),
    look: (args: object, changed?: Partial<ToolContext>): Promise<Envelope> =>
      envelopeOf('jobs', args, ctx(changed), tools),
  };
}

function textIn({ output }: Envelope): string {
  return typeof output === 'string' ? output : '';
}

type Look = ReturnType<typeof openJobs>['look'];

/** Resolves with the screen of job 1 once it shows a text; with the last one after 20 s. */
async function screenWith(look: Look, text: string): Promise<string> {
  const deadline = performance.now() + 20_000;
  for (;;) {
    const screen = textIn(await look({ id: 1, screen: true }));
    if (screen.includes(text) || performance.now() > deadline) return screen;
    await new Promise(setImmediate);
  }
}

const shell = "PS1='$ ' bash --norc --noprofile -i";

test('a command in a terminal shows its screen; what is written is typed, and the result is the screen after it', async () => {
  const { terminal, look, ends, ended } = openJobs();
  const end = ended();
  expect(await terminal(shell)).toEqual({ output: '$', job: 1, running: true, row: 1, column: 3 });
  expect(await look({ id: 1, write: 'tty >/dev/null && echo "a $(tput cols)"\n' })).toMatchObject({
    output: '$ tty >/dev/null && echo "a $(tput cols)"\na 100\n$',
    row: 3,
    running: true,
  });
  expect(await look({ id: 1, screen: true })).toMatchObject({ job: 1, row: 3, column: 3 });
  await look({ id: 1, write: 'exit 7\n' });
  await end;
  expect(await look({ id: 1 })).toMatchObject({ exit_code: 7 });
  expect(ends).toMatchObject([[{ id: 1, end: { exitCode: 7, killed: false } }, expect.stringContaining('a 100')]]);
});

test('a program that draws its screen is read as it is seen, without control characters', async () => {
  const { terminal, look } = openJobs();
  const draw = String.raw`printf '\033[2J\033[5;10Hhere\033[1;1H\033[31mtop\033[0m'; read -r x; printf '\033[2J\033[1;1Hgot %s' "$x"; sleep 60`;
  expect(await terminal(draw)).toMatchObject({ output: 'top\n\n\n\n         here', row: 1, column: 4 });
  expect(await look({ id: 1, write: 'words\n' })).toMatchObject({ output: 'got words' });
});

test('Ctrl-C interrupts what runs in the terminal, and the shell stays', async () => {
  const { terminal, look } = openJobs();
  await terminal(shell);
  await look({ id: 1, write: 'sleep 1000\n' });
  await look({ id: 1, write: '\u0003' });
  await look({ id: 1, write: 'echo "status $?"\n' });
  expect(await screenWith(look, 'status 130')).toContain('\nstatus 130\n$');
});

test('rows that the terminal has wrapped are one line', async () => {
  const { terminal } = openJobs();
  const { output } = await terminal(`printf '%s' ${'x'.repeat(250)}; sleep 60`);
  expect(output).toBe('x'.repeat(250));
});

test('a program that asks its terminal where the cursor is gets an answer', async () => {
  const { terminal } = openJobs();
  const ask = String.raw`stty -echo -icanon min 6; printf 'ab\033[6n'; head -c 6 | od -c | head -1; sleep 60`;
  expect((await terminal(ask)).output).toContain('033   [   1   ;   3   R');
});

test('output without end is read, and its last lines are kept', async () => {
  const { terminal, look } = openJobs();
  const first = await terminal('seq 200000');
  const last = textIn('exit_code' in first ? first : await look({ action: 'wait', id: 1 })).split('\n');
  expect(last.at(-1)).toBe('200000');
  expect(last.length).toBeLessThan(1_100);
});

test('one that ends at once is not a job, and its result is its text', async () => {
  const { terminal, jobs } = openJobs();
  expect(await terminal('test -t 0 && echo "a terminal"; exit 3')).toEqual({ output: 'a terminal', exit_code: 3 });
  expect(jobs.list()).toEqual([]);
});

test('a job is ended with all that runs in its terminal', async () => {
  const { terminal, look, cwd } = openJobs();
  await terminal(shell);
  await look({ id: 1, write: 'trap "" HUP; (trap "" HUP TERM; sleep 1000) & echo $! >pid; sleep 1000\n' });
  expect(existsSync(join(cwd, 'pid'))).toBe(true);
  expect(await look({ action: 'kill', id: 1 })).toMatchObject({ killed: true });
  const left = await envelopeOf('bash', { command: 'ps -o stat= -p "$(cat pid)" | grep -v Z' }, context(cwd));
  expect(left).toMatchObject({ output: '', exit_code: 1 });
});

test('nothing is typed where there is no terminal, no job or no running command', async () => {
  const { terminal, look } = openJobs();
  expect(await look({ id: 4, write: 'x' })).toMatchObject({ code: 'not_found' });
  const { job } = await terminal(shell);
  await look({ id: job, write: 'exit\n' });
  expect(await look({ id: job, write: 'x' })).toMatchObject({
    code: 'execution_failed',
    error: expect.stringMatching(/^Job 1 has ended: exit 0 .*Nothing was typed\.$/) as string,
  });
  expect(await look({ id: job, screen: true })).toMatchObject({ exit_code: 0 });
});

test.each([
  [{ id: 1, write: '' }, 'write'],
  [{ id: 1, write: 'x'.repeat(4_001) }, 'write'],
  [{ id: 1, action: 'kill', write: 'x' }, 'action'],
  [{ write: 'x' }, 'id'],
  [{ screen: true }, 'id'],
])('%j is refused before anything is typed', async (args, argument) => {
  const { terminal, look } = openJobs();
  await terminal(shell);
  expect(await look(args)).toMatchObject({ code: 'invalid_args', details: { argument } });
});

test('a job of another session is not typed into', async () => {
  const { terminal, look } = openJobs();
  await terminal(shell);
  const other = { session: { id: 'other', events: () => [], recent: () => [] } };
  expect(await look({ id: 1, write: 'x' }, other)).toMatchObject({ code: 'not_found' });
});

test('job is another name of id', async () => {
  const { terminal, look } = openJobs();
  await terminal(shell);
  expect(await look({ job: 1, screen: true })).toMatchObject({ output: '$', job: 1 });
});

test('a terminal is for a command in the background', async () => {
  const { jobs } = openJobs();
  const tools = registryOf([bashTool(toolOptions({ background: jobs }))]);
  expect(await envelopeOf('bash', { command: 'cat', terminal: true }, context(tree()), tools)).toMatchObject({
    code: 'invalid_args',
    details: { argument: 'terminal' },
  });
});

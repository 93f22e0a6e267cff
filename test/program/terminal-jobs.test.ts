import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, atTerminal, lines, place, script } from './inside.js';

const shell = {
  calls: [
    { name: 'bash', arguments: { command: "PS1='$ ' bash --norc --noprofile -i", background: true, terminal: true } },
  ],
};
const reader = {
  calls: [{ name: 'bash', arguments: { command: 'sleep 1000', background: true, terminal: true } }],
};
const types = (write: string) => ({ calls: [{ name: 'jobs', arguments: { id: 1, write } }] });
const json = ['-p', '--tools', '+jobs', '--output-format', 'stream-json'];
const hasSandbox = existsSync('/usr/bin/bwrap');

type Result = Readonly<Record<string, unknown>>;

async function results(at: ReturnType<typeof place>, turns: readonly unknown[], ...options: readonly string[]) {
  const run = await agent(at, [...json, '-m', script(at, turns), ...options, 'go']);
  const found = lines(run.stdout).filter(({ type }) => type === 'tool_result');
  const envelopes = found.map(({ output }) => (typeof output === 'string' ? (JSON.parse(output) as Result) : {}));
  return { run, envelopes };
}

test('the model types in a terminal and reads its screen', async () => {
  const at = place();
  const { envelopes } = await results(
    at,
    [
      shell,
      types('echo $((6*7)) >answer; cat answer\n'),
      { calls: [{ name: 'jobs', arguments: { id: 1, screen: true } }] },
      { text: 'Done.' },
    ],
    '--approval',
    'never',
  );
  expect(envelopes).toMatchObject([
    { output: '$', job: 1, running: true },
    { output: '$ echo $((6*7)) >answer; cat answer\n42\n$', running: true },
    { row: 3, column: 3 },
  ]);
  expect(readFileSync(join(at.work, 'answer'), 'utf8')).toBe('42\n');
});

test('where nobody can be asked, text is not typed; the denial names it and the job', async () => {
  const at = place();
  const turns = [reader, types('touch made\n'), types('\u0003'), { text: 'Done.' }];
  const { run, envelopes } = await results(at, turns);
  expect(envelopes).toMatchObject([{ job: 1 }, { code: 'permission_denied' }, { exit_code: 130 }]);
  expect(lines(run.stdout).find(({ type }) => type === 'result')).toMatchObject({
    denials: [{ name: 'jobs', content: 'jobs(write 1 "touch made\\n")' }],
  });
  expect(existsSync(join(at.work, 'made'))).toBe(false);
});

test('a rule that denies a command denies typing it, whatever the approval mode', async () => {
  const at = place();
  const rule = JSON.stringify([{ tool: 'bash', argv: ['git', 'push'] }]);
  const { envelopes } = await results(
    at,
    [shell, types('git push origin main\n'), types('echo fine\n'), { text: 'Done.' }],
    ...['--approval', 'never', '--set', `rules.deny=${rule}`],
  );
  expect(envelopes[1]).toMatchObject({ code: 'permission_denied' });
  expect(envelopes[2]?.['output']).toContain('\nfine\n');
});

test('in the REPL each write is asked about, with the text and the job', async () => {
  const at = place();
  const model = script(at, [reader, types('one\n'), types('two\n'), { text: 'Done.' }]);
  const { stdout } = await atTerminal(
    at,
    ['-m', model, '--tools', '+jobs'],
    [
      ['❯ ', 'go\n'],
      [/types "one\\n" into job 1: sleep 1000[^]*and why\): /, 'yes\n'],
      [/types "two\\n" into job 1: sleep 1000[^]*and why\): /, 'no\n'],
      ['Done.', '/exit\n'],
    ],
    { mustEnd: false },
  );
  expect(stdout).toContain('jobs write 1');
});

test.skipIf(!hasSandbox)('in a sandbox the terminal is in it, with job control', async () => {
  const at = place();
  const { envelopes } = await results(
    at,
    [
      shell,
      types('touch ~/x ./y; ls ~ | wc -l; sleep 100\n'),
      types('\u0003'),
      types('echo "status $?"; cat /proc/net/dev | wc -l\n'),
      { text: 'Done.' },
    ],
    ...['--approval', 'never', '--sandbox', 'workspace'],
  );
  expect(envelopes[3]?.['output']).toContain('\nstatus 130\n');
  expect(existsSync(join(at.work, 'y'))).toBe(true);
  expect(existsSync(join(at.home, 'x'))).toBe(false);
});

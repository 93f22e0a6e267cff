import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { timerText } from '../../../src/features/scheduled-tasks/timer-files.js';

const place = {
  argv: ['/opt/my node/bin/node', `/home/o'neil/100%/"agent" $HOME.js`, 'tasks', 'run-due'],
  env: { PATH: '/usr/bin:/bin', AGENT_HOME: '/home/o\\x <y> & z' },
  keys: '/home/u/.config/agent/tasks.env',
};

test('the line for cron runs the very words, whatever is in them', () => {
  const line = timerText('cron', place);
  expect(line).toMatch(/^\* \* \* \* \* PATH=\/usr\/bin:\/bin AGENT_HOME='/);
  expect(line).not.toMatch(/[^\\]%/);
  // cron takes the backslashes from percent signs and hands the rest to sh.
  const command = line
    .slice('* * * * * '.length)
    .replaceAll('\\%', '%')
    .replace(' >/dev/null 2>&1\n', '')
    .replace("'/opt/my node/bin/node'", String.raw`printf '%s\n' "$AGENT_HOME"`);
  expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' }).split('\n')).toEqual([
    '',
    ...place.argv.slice(1),
    '',
  ]);
});

test.each(['cron', 'launchd'] as const)(
  'what %s starts has the keys of the file, and runs without the file',
  (kind) => {
    const folder = mkdtempSync(join(tmpdir(), 'agent timer '));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const keys = join(folder, "it's 100%.env");
    const text = timerText(kind, { argv: ['/usr/bin/env'], env: { PATH: '/usr/bin:/bin' }, keys });
    const words = [...text.matchAll(/^ {4}<string>(.*)<\/string>$/gm)].map(([, word = '']) =>
      word.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
    );
    const line = text.slice('* * * * * '.length).replaceAll('\\%', '%').replace(' >/dev/null 2>&1\n', '');
    const [file = '', ...args] = kind === 'cron' ? ['/bin/sh', '-c', line] : words;
    const run = (): string => execFileSync(file, args, { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } });
    expect(run()).not.toContain('OPENAI_API_KEY');
    writeFileSync(keys, "# mine\nOPENAI_API_KEY='a $key with blanks'\nOTHER_KEY=plain\n");
    expect(run()).toMatch(/^OPENAI_API_KEY=a \$key with blanks$/m);
    expect(run()).toMatch(/^OTHER_KEY=plain$/m);
  },
);

test('the units of systemd and the agent of launchd quote in their own ways', () => {
  const units = timerText('systemd', place);
  expect(units).toContain(
    String.raw`ExecStart="/opt/my node/bin/node" "/home/o'neil/100%%/\"agent\" $$HOME.js" "tasks" "run-due"`,
  );
  expect(units).toContain(String.raw`Environment="AGENT_HOME=/home/o\\x <y> & z"`);
  expect(units).toMatch(/OnCalendar=\*:0\/1\n[^]*Persistent=true\n/);
  const agent = timerText('launchd', place);
  expect(agent).toContain('<key>AGENT_HOME</key><string>/home/o\\x &lt;y&gt; &amp; z</string>');
  expect(agent).toMatch(/StartInterval<\/key><integer>60<[^]*RunAtLoad<\/key><true\/>/);
});

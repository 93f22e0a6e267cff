import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { timerText } from '../../../src/toolsets/tasks/timer-files.js';

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

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Sandbox } from '../../src/core/tool.js';
import { processesMarked } from '../../src/tools/process-group.js';
import { createProcessRunner } from '../../src/tools/process.js';
import { openSandbox } from '../../src/tools/sandbox/sandbox-opening.js';
import { call, context, registry, tree } from './workbench.js';

const home = tree({ 'work/README.md': 'read me\n', 'work/.git/HEAD': 'ref: refs/heads/main\n', 'work/.git/objects/': '', 'work/.git/refs/': '', 'work/.git/config': '[core]\n\trepositoryformatversion = 0\n' });
const workspace = `${home}/work`;
const opened = await openSandbox({ sandbox: 'workspace', workspace, home, env: process.env, isSecret: () => false });
const marker = { name: '_HANG_TEST', value: String(process.pid) };
const processes = createProcessRunner({ marker, ...(opened.ok ? { confine: opened.confine } : {}) });
const tools = registry({ processes, env: { PATH: process.env.PATH, HOME: home } });
const deadlineS = 2;

/** What waits for a person, a terminal, a peer or for ever. */
const commands: readonly string[] = [
  'cat', 'read -r line', 'head -n 1 < /dev/tty', 'python3 || true', 'node -i', 'perl', 'bash -i', 'less README.md', 'more README.md', 'man cat', 'git --paginate log', 'vi README.md', '$EDITOR README.md', 'ed README.md',
  'git commit', 'git rebase -i HEAD', 'git add -p', 'sudo -k true', 'su -c true nobody', 'ssh -o BatchMode=no -o ConnectTimeout=1 127.0.0.1 true', 'git -c core.askPass= clone http://127.0.0.1:9/x.git', 'npm init',
  'mkfifo pipe; cat pipe', 'mkfifo pipe2; echo x > pipe2', 'sleep infinity', 'tail -f /dev/null', 'tail -f README.md', 'top', 'watch date', 'yes > /dev/null', 'cat /dev/zero > /dev/null', 'dd if=/dev/random of=/dev/null',
  'trap "" TERM HUP INT; while :; do sleep 1; done', 'setsid sleep 300', '(setsid sleep 300 &)', 'nohup sleep 300 & disown', 'script -qc cat /dev/null', 'while :; do :; done', 'wait $$; exec 3<>/dev/tcp/127.0.0.1/9', 'select x in a b; do :; done', 'coproc cat; wait',
];

const fixture = fileURLToPath(new URL('../../../shared/fixtures/security/dangerous-commands.json', import.meta.url));
interface Row { readonly cmd: string; readonly must_not_hang?: boolean }
const rows = existsSync(fixture) ? (JSON.parse(readFileSync(fixture, 'utf8')) as { readonly cases: readonly Row[] }).cases.filter((row) => row.must_not_hang === true).map((row) => row.cmd) : [];
if (rows.length === 0) console.log('hanging commands: the samples are not here, all of them skipped');
if (!opened.ok) console.log(`hanging commands: no sandbox here, ${commands.length + rows.length} cases in it skipped`);

/** Whether the call came back in an expected way, and how much of what it started is left. */
async function outcome(command: string, sandbox: Sandbox): Promise<unknown> {
  const { envelope } = await call('bash', { command, timeout_seconds: deadlineS }, context(workspace, { sandbox }), tools);
  const ended = 'exit_code' in envelope || envelope['code'] === 'timeout' ? 'ended' : JSON.stringify(envelope);
  return { command, ended };
}

test.concurrent.each(commands)('`%s` ends by itself or at the deadline', async (command) => {
  expect(await outcome(command, 'off')).toEqual({ command, ended: 'ended' });
}, 60_000);

if (opened.ok) test.concurrent.each([...commands, ...rows])('in the sandbox `%s` ends by itself or at the deadline', async (command) => {
  expect(await outcome(command, 'workspace')).toEqual({ command, ended: 'ended' });
}, 60_000);

test('nothing of all that is left', async () => {
  await processes.killBackground();
  expect(processesMarked(`${marker.name}=${marker.value}`)).toEqual([]);
});

import { expect, test } from 'vitest';
import type { Sandbox } from '../../../../src/kernel/core/tool.js';
import { createProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { processesMarked } from '../../../../src/kernel/tools/process/watchdog.js';
import { openSandbox } from '../../../../src/kernel/tools/sandbox/open-sandbox.js';
import { call, context, registry, tree } from '../workbench.js';
import { hangingCommands as commands, hangingSamples } from './hanging-commands.js';

const home = tree({
  'work/README.md': 'read me\n',
  'work/.git/HEAD': 'ref: refs/heads/main\n',
  'work/.git/objects/': '',
  'work/.git/refs/': '',
  'work/.git/config': '[core]\n\trepositoryformatversion = 0\n',
});
const workspace = `${home}/work`;
const opened = await openSandbox({ sandbox: 'workspace', workspace, home, env: process.env, isSecret: () => false });
const marker = { name: '_HANG_TEST', value: String(process.pid) };
const processes = createProcessRunner({ marker, ...(opened.ok ? { confine: opened.confine } : {}) });
const tools = registry({ processes, env: { PATH: process.env.PATH, HOME: home } });
const deadlineS = 2;

const rows = hangingSamples();
if (rows.length === 0) console.log('hanging commands: the samples are not here, all of them skipped');
if (!opened.ok) console.log(`hanging commands: no sandbox here, ${commands.length + rows.length} cases in it skipped`);

/** Whether the call came back in an expected way, and how much of what it started is left. */
async function outcome(command: string, sandbox: Sandbox): Promise<unknown> {
  const { envelope } = await call(
    'bash',
    { command, timeout_seconds: deadlineS },
    context(workspace, { sandbox }),
    tools,
  );
  const ended = 'exit_code' in envelope || envelope['code'] === 'timeout' ? 'ended' : JSON.stringify(envelope);
  return { command, ended };
}

test.concurrent.each(commands)(
  '`%s` ends by itself or at the deadline',
  async (command) => {
    expect(await outcome(command, 'off')).toEqual({ command, ended: 'ended' });
  },
  60_000,
);

if (opened.ok)
  test.concurrent.each([...commands, ...rows])(
    'in the sandbox `%s` ends by itself or at the deadline',
    async (command) => {
      expect(await outcome(command, 'workspace')).toEqual({ command, ended: 'ended' });
    },
    60_000,
  );

test('nothing of all that is left', async () => {
  await processes.killBackground();
  expect(processesMarked(`${marker.name}=${marker.value}`)).toEqual([]);
});

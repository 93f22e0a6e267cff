import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { processesMarked } from '../../../../src/kernel/tools/process/watchdog.js';

async function waiting(env: Readonly<Record<string, string>>): Promise<number | undefined> {
  const child: ChildProcess = spawn('sh', ['-c', 'echo; read -r line'], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  if (child.stdout) await once(child.stdout, 'data');
  return child.pid;
}

test.runIf(process.platform === 'linux')(
  'a process is found by an entry of its environment, wherever it stands, and by nothing that looks like it',
  async () => {
    const name = `AGENT_TEST_${process.pid}`;
    const mark = `${name}=value`;
    const path = { PATH: process.env.PATH ?? '' };
    const marked = await Promise.all([
      waiting({ [name]: 'value', ...path }),
      waiting({ ...path, [name]: 'value' }),
      waiting({ OLD: mark, [name]: 'value', ...path }),
      waiting({ ...path, LONG: 'x'.repeat(100_000), [name]: 'value' }),
    ]);
    await Promise.all([
      waiting({ OLD: mark, ...path }),
      waiting({ ...path, [name]: 'value2' }),
      waiting({ ...path, [`X${name}`]: 'value' }),
    ]);
    expect([...processesMarked(mark)].toSorted((a, b) => a - b)).toEqual(
      marked.toSorted((a, b) => (a ?? 0) - (b ?? 0)),
    );
  },
);

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { agent, binary, place, script } from './program.js';

const codes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
/** What runs until it is ended, and the stream on which it says that it has begun. */
const lasting = [
  [['tasks', 'daemon'], 'stderr'],
  [['serve'], 'stdout'],
  [['watch'], 'stdout'],
  [['acp'], null],
  [['mcp', 'serve'], null],
] as const;
const cases = lasting.flatMap(([args, begins]) =>
  (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((signal) => [args.join(' '), signal, begins] as const),
);

/** The first request of both protocols: its answer tells that the program listens. */
const hello = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

test.each(cases)('%s ends by %s with its exit code', async (line, signal, begins) => {
  const at = place();
  if (line === 'watch') await agent(at, ['-p', '-m', script(at, [{ text: 'Done.' }]), 'go']);
  const child = spawn(process.execPath, [binary, ...line.split(' ')], { cwd: at.work, env: at.env });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise((resolve) => {
    child.on('close', (code, by) => {
      resolve([code, by]);
    });
  });
  if (begins === null) {
    const params = line === 'acp' ? { ...hello, protocolVersion: 1 } : hello;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  }
  const lines = createInterface({ input: child[begins ?? 'stdout'] });
  await new Promise((resolve) => lines.once('line', resolve));
  child.kill(signal);
  expect(await ended).toEqual([codes[signal], null]);
});

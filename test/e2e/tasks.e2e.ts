import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, binary, place } from './program.js';

test('a daemon gives a reminder at its time, is the only one of its store, and ends when it is told to', async () => {
  const at = place();
  const told = join(at.home, 'told');
  mkdirSync(join(at.home, '.agent'));
  const notify = ['sh', '-c', 'cat >>"$HOME/told"'];
  writeFileSync(join(at.home, '.agent/config.json'), JSON.stringify({ tasks: { notify_command: notify } }));
  const daemon = spawn(process.execPath, [binary, 'tasks', 'daemon'], {
    cwd: at.work,
    env: at.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void daemon.kill('SIGKILL'));
  const ended = new Promise((resolve) => {
    daemon.on('close', (code, signal) => {
      resolve([code, signal]);
    });
  });
  await new Promise((resolve) => daemon.stderr.once('data', resolve));
  expect(await agent(at, ['tasks', 'daemon'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`process ${daemon.pid} on `) as string,
  });
  const args = JSON.stringify({ delay: '10s', message: 'Take the pizza out' });
  expect((await agent(at, ['tools', 'call', 'add_reminder', args, '--set', 'toolsets=["tasks"]'])).code).toBe(0);
  await new Promise<void>((resolve) => {
    daemon.stderr.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('Reminder')) resolve();
    });
  });
  daemon.kill('SIGTERM');
  expect(await ended).toEqual([143, null]);
  expect(readFileSync(told, 'utf8')).toBe('Reminder\nTake the pizza out\n');
  expect((await agent(at, ['tasks', 'inbox'])).stdout).toMatch(/done .*Take the pizza out\n$/);
}, 90_000);

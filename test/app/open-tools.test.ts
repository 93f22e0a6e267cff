import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { RootOptions } from '../../src/kernel/console/options.js';
import { checkSandbox, openSandbox } from '../../src/app/open-tools.js';
import { settingFlags } from '../../src/app/settings.js';
import { loadConfig } from '../../src/kernel/config/load.js';

async function place(options: Partial<RootOptions>): Promise<Parameters<typeof openSandbox>[0]> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'agent-sandbox-cli-')));
  onTestFinished(() => {
    rmSync(home, { recursive: true, force: true });
  });
  const env = { PATH: process.env.PATH, HOME: home };
  const { config } = await loadConfig({
    env,
    cwd: home,
    home,
    flags: settingFlags(options, home),
    set: options.set ?? [],
  });
  return { cwd: home, env, home, config, log: () => undefined };
}

test.each([
  [{}, 'dangerous', 'off'],
  [{ safe: true }, 'mutating', 'workspace'],
  [{ sandbox: 'read-only' }, 'dangerous', 'read-only'],
  [{ safe: true, approval: 'never' }, 'never', 'workspace'],
  [{ safe: true, sandbox: 'off' }, 'mutating', 'off'],
  [{ safe: true, set: ['approval=always'] }, 'always', 'workspace'],
] as const)('%j sets approval %s and sandbox %s', async (options, approval, sandbox) => {
  const { policy } = (await place(options)).config;
  expect([policy.approval, policy.sandbox]).toEqual([approval, sandbox]);
});

test('no sandbox is opened where none is wanted', async () => {
  expect(await openSandbox(await place({}))).toBeUndefined();
});

test('a sandbox that cannot hold ends the program with exit code 2 and the fix, and fails in doctor; where none is wanted it is a warning', async () => {
  const wanted = await place({ safe: true }); // the working directory is the home directory, or there is no bubblewrap here at all
  await expect(openSandbox(wanted)).rejects.toMatchObject({
    name: 'CliError',
    exitCode: 2,
    hint: expect.stringMatching(/\S/),
  });
  expect(await checkSandbox(wanted)).toMatchObject({
    name: 'sandbox',
    status: 'fail',
    fix: expect.stringMatching(/\S/),
  });
  expect(await checkSandbox(await place({}))).toMatchObject({
    name: 'sandbox',
    status: 'warn',
    fix: expect.stringMatching(/\S/),
  });
});

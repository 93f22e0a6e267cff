import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';

const edit = { calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'made\n' } }] };
const command = { calls: [{ name: 'bash', arguments: { command: 'touch other.txt' } }] };
const turns = [edit, command, { text: 'Done.' }];

/** Runs an edit and a command. Returns which of them changed the folder. */
async function changes(more: readonly string[], files: Readonly<Record<string, string>> = {}, env = {}) {
  const at = place(files);
  const { stderr } = await agent(at, ['-p', '-m', script(at, turns), ...more, 'go'], { env });
  const made = ['new.txt', 'other.txt'].map((name) => existsSync(join(at.work, name)));
  return [...made, stderr.includes('plan mode')];
}

test.each([
  ['default', [false, false, false]],
  ['accept-edits', [true, false, false]],
  ['plan', [false, false, true]],
  ['bypass', [true, true, false]],
  ['yolo', [true, true, false]],
])('the approval mode %s means what it means in other agents, wherever it is written', async (name, expected) => {
  expect(await changes(['--approval', name])).toEqual(expected);
  expect(await changes(['--set', `approval_mode=${name}`])).toEqual(expected);
  expect(await changes([], {}, { AGENT_APPROVAL_MODE: name })).toEqual(expected);
});

test('approval_mode in the file is the setting approval, and a bad value is named', async () => {
  const at = place();
  await agent(at, ['config', 'set', 'approval_mode', 'accept-edits']);
  expect((await agent(at, ['config', 'get', 'approval'])).stdout).toBe('accept-edits\n');
  const { code, stderr } = await agent(at, ['config', 'set', 'approval_mode', 'acceptedits']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('accept-edits')]);
});

test('plan mode of the command line leaves the mode of the settings behind it', async () => {
  const at = place();
  await agent(at, ['config', 'set', 'approval', 'always']);
  await repl(
    at,
    ['-m', script(at, turns), '--approval', 'plan'],
    [
      ['/status', /Approval +plan, read-only; then always/],
      [
        '/approval accept-edits',
        /accept-edits: edits of files in this folder run, other changes ask\. Plan mode is off\./,
      ],
      ['/status', /Approval +accept-edits/],
      ['/approval plan', /Plan mode: read-only/],
      ['/approval yolo', /Approvals are off\.[^]*Plan mode is off\./],
      ['/approval bogus', /There is no approval mode bogus\.[^]*accept-edits, plan, bypass, yolo\./],
    ],
  );
});

test('an untrusted project cannot loosen a mode by another name of it', async () => {
  for (const mode of ['yolo', 'never', 'accept-edits', 'dangerous']) {
    const project = { '.agent/config.json': `{"approval_mode": "${mode}"}` };
    const at = place(project);
    await agent(at, ['config', 'set', 'approval', 'default']);
    const { stderr } = await agent(at, ['-p', '-m', script(at, turns), 'go']);
    expect(stderr).toMatch(/not trusted; ignored: approval/);
    expect(existsSync(join(at.work, 'new.txt'))).toBe(false);
  }
});

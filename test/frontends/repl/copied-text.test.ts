import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { copyProgram, copyWith, type CopyTarget } from '../../../src/frontends/repl/copied-text.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const processes = createProcessRunner({ marker: { name: '_TMUX_TEST', value: '1' } });

/** A directory with a `tmux` that keeps what it is given, as tmux does; `exitCode`: how it ends. */
function folderWithTmux(exitCode: number): string {
  const folder = mkdtempSync(join(tmpdir(), 'tmux-buffer-'));
  const script = `#!/bin/sh\nprintf '%s ' "$@" >'${folder}/args'\ncat >'${folder}/text'\nenv >'${folder}/env'\nexit ${exitCode}\n`;
  writeFileSync(join(folder, 'tmux'), script);
  chmodSync(join(folder, 'tmux'), 0o755);
  return folder;
}

const keep = async (
  folder: string,
  text: string,
  env: Readonly<Record<string, string>> = { TMUX: '/tmp/s,1,0' },
  platform: NodeJS.Platform = 'linux',
): Promise<CopyTarget | null> => {
  const all = { PATH: `${folder}:${process.env.PATH ?? ''}`, SOME_API_KEY: 'hidden', ...env };
  const program = copyProgram(all, platform);
  return program && (await copyWith(program, { processes }, { cwd: folder, env: all }, text));
};

test('a text goes to tmux as it is, with the option that also sets the clipboard; no key goes with it', async () => {
  const folder = folderWithTmux(0);
  const text = `é "quoted" $HOME\n-n\n${'long '.repeat(30_000)}`;
  expect(await keep(folder, text)).toBe('tmux');
  expect(readFileSync(join(folder, 'text'), 'utf8')).toBe(text);
  expect(readFileSync(join(folder, 'args'), 'utf8')).toBe('load-buffer -w - ');
  expect(readFileSync(join(folder, 'env'), 'utf8')).not.toContain('hidden');
});

test('a tmux that refuses it, or none, is not a tmux', async () => {
  expect(await keep(folderWithTmux(1), 'text')).toBeNull();
  const empty = mkdtempSync(join(tmpdir(), 'tmux-buffer-'));
  expect(existsSync(join(empty, 'tmux'))).toBe(false);
  expect(await keep(empty, 'text', { PATH: empty, TMUX: '/tmp/s,1,0' })).toBeNull();
});

test('on macOS and in WSL a text goes to the clipboard of the system, but not over SSH', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'copied-'));
  const program = (name: string, script: string): void => {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  };
  program('pbcopy', `[ "$LC_CTYPE" = UTF-8 ] && cat >'${folder}/mac'`);
  // PowerShell decodes what it reads.
  program(
    'powershell.exe',
    `case "$4" in *FromBase64String*ReadToEnd*) base64 -d >'${folder}/windows';; *) exit 1;; esac`,
  );
  const text = 'é 1 └── 🌸\n';
  expect(await keep(folder, text, {}, 'darwin')).toBe('system');
  expect(readFileSync(join(folder, 'mac'), 'utf8')).toBe(text);
  expect(await keep(folder, text, { WSL_DISTRO_NAME: 'Ubuntu' })).toBe('system');
  expect(readFileSync(join(folder, 'windows'), 'utf8')).toBe(text);
  expect(await keep(folder, text, { SSH_CONNECTION: '1' }, 'darwin')).toBeNull();
  expect(await keep(folder, text, {})).toBeNull();
});

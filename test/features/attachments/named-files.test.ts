import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { clipboardPicture } from '../../../src/features/attachments/clipboard.js';
import { mentioned, pastedPaths, readPicture } from '../../../src/features/attachments/named-files.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { png } from './samples.js';

const cwd = mkdtempSync(join(tmpdir(), 'agent-named-'));
afterAll(() => {
  rmSync(cwd, { recursive: true, force: true });
});
for (const name of ['a.png', 'b c.png', "d'e.png"]) writeFileSync(join(cwd, name), png(8, 4));
writeFileSync(join(cwd, 'text.png'), 'text');
writeFileSync(join(cwd, 'notes.md'), '@a.png');

test.each([
  ['/tmp/a.png', ['/tmp/a.png']],
  [' /tmp/a.png\n', ['/tmp/a.png']],
  ['/tmp/a\\ b.png', ['/tmp/a b.png']],
  ["'/tmp/a b.png' '/tmp/c.jpg'", ['/tmp/a b.png', '/tmp/c.jpg']],
  ["'/tmp/d'\\''e.png'", ["/tmp/d'e.png"]],
  ['"/tmp/a b.png"', ['/tmp/a b.png']],
  ['file:///tmp/a%20b.png', ['/tmp/a b.png']],
  ['/tmp/Screen Shot 1.PNG', ['/tmp/Screen Shot 1.PNG']],
  ['a.png b.pdf', ['a.png', 'b.pdf']],
  ['look at a.png', null],
  ['/tmp/a.txt', null],
  ['file://%zz.png', null],
  ["it's a.png", null],
  ['', null],
])('what a terminal pastes for a dragged file: %s', (text, paths) => {
  expect(pastedPaths(text)).toEqual(paths);
});

test('a message names pictures with @, quoted where there are blanks; other files are left alone', () => {
  const text = 'See @a.png, (@"b c.png") and @notes.md, @a.png again, mail me@a.png, @text.png, @gone.png.';
  expect(mentioned(text, cwd).map((read) => (read.ok ? read.file.name : read.problem))).toEqual([
    'a.png',
    'b c.png',
    'text.png is not attached: it is not a PNG, JPEG, GIF, WebP or PDF.',
    null,
  ]);
});

test('a pipe or a folder is refused and never waited for', () => {
  expect(readPicture('.', cwd)).toEqual({
    ok: false,
    problem: expect.stringContaining('not a regular file') as string,
  });
  expect(readPicture('/dev/zero', cwd)).toMatchObject({ ok: false });
  expect(readPicture('~/no such.png', cwd)).toEqual({ ok: false, problem: null });
  expect(homedir()).not.toBe('');
});

const processes = createProcessRunner({ marker: { name: '_AGENT_TEST', value: 'clipboard' } });
const place = (env: Readonly<Record<string, string>>, platform = 'linux') => ({
  processes,
  cwd,
  platform,
  env: { PATH: `${cwd}:/usr/bin:/bin`, ...env },
});

test('the clipboard is read by the program of the screen that is there', async () => {
  const program = (name: string, body: string): void => {
    writeFileSync(join(cwd, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  };
  program('wl-paste', 'echo "Nothing is copied" >&2; exit 1');
  program('xclip', `[ "$5" = -out ] && [ -z "$SECRET_KEY" ] && cat '${join(cwd, 'a.png')}'`);
  // What osascript of macOS prints, also where there is no image.
  program(
    'osascript',
    `[ "$2" = 'the clipboard as «class PNGf»' ] && [ -e '${join(cwd, 'mac')}' ] || ` +
      `{ echo '0:29: execution error: Can’t make some data into the expected type. (-1700)' >&2; exit 1; }\n` +
      `printf '«data PNGf%s»\\n' "$(od -An -v -tx1 '${join(cwd, 'a.png')}' | tr -d ' \\n' | tr a-f A-F)"`,
  );
  program('powershell.exe', `[ "$4" = -Command ] && printf '%s\\r\\n' "$(base64 -w0 '${join(cwd, 'a.png')}')"`);
  const found = { name: 'pasted.png', bytes: png(8, 4) };
  expect(await clipboardPicture(place({ WAYLAND_DISPLAY: 'w', DISPLAY: ':0', SECRET_KEY: 'x' }))).toEqual(found);
  expect(await clipboardPicture(place({ WAYLAND_DISPLAY: 'w' }))).toBeNull();
  expect(await clipboardPicture(place({}))).toBeNull();
  expect(await clipboardPicture(place({}, 'darwin'))).toBeNull();
  writeFileSync(join(cwd, 'mac'), '');
  expect(await clipboardPicture(place({}, 'darwin'))).toEqual(found);
  expect(await clipboardPicture(place({ WSL_DISTRO_NAME: 'Ubuntu', WAYLAND_DISPLAY: 'w' }))).toEqual(found);
  expect(await clipboardPicture({ ...place({ DISPLAY: ':0' }), env: { PATH: '/nowhere', DISPLAY: ':0' } })).toBeNull();
});

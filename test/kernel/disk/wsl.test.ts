import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fromWindowsPath, pastedWindowsPaths, wslPlaces } from '../../../src/kernel/disk/windows-paths.js';
import { isWsl } from '../../../src/kernel/disk/wsl.js';

const places = { distribution: 'Ubuntu', drives: '/mnt/' };

// What `wslpath -u` prints for each.
test.each([
  ['C:\\Users\\me\\a b.txt', '/mnt/c/Users/me/a b.txt'],
  ['d:/x', '/mnt/d/x'],
  ['C:\\', '/mnt/c/'],
  ['\\\\wsl$\\Ubuntu\\home\\me', '/home/me'],
  ['\\\\wsl.localhost\\ubuntu\\', '/'],
  ['//wsl$/Ubuntu/etc', '/etc'],
  ['\\\\wsl$\\Debian\\home', null],
  ['\\\\server\\share\\a', null],
  ['C:relative', null],
  ['/home/me', null],
])('a path of Windows: %s', (path, expected) => {
  expect(fromWindowsPath(path, places)).toBe(expected);
});

test.each([
  ['C:\\Users\\me\\notes.txt', '/mnt/c/Users/me/notes.txt'],
  ['C:\\My Files\\a.txt', "'/mnt/c/My Files/a.txt'"],
  ['"C:\\My Files\\it\'s.txt" "D:\\b"\n', "'/mnt/c/My Files/it'\\''s.txt' /mnt/d/b"],
  ['look at C:\\a.txt', null],
  ['C:\\a.txt\nC:\\b.txt', null],
  ['"C:\\a" and b', null],
  ['http://example.com', null],
])('a paste of paths of Windows: %s', (text, expected) => {
  expect(pastedWindowsPaths(text, places)).toBe(expected);
});

test('the distribution names itself, and its settings say where drives are', () => {
  const file = join(mkdtempSync(join(tmpdir(), 'wsl-')), 'wsl.conf');
  expect(wslPlaces({ WSL_DISTRO_NAME: 'Ubuntu' }, file)).toEqual(places);
  writeFileSync(file, '[boot]\nroot = /no\n[automount]\nenabled = true\nroot = /win\n[network]\n');
  expect(wslPlaces({}, file)).toEqual({ distribution: undefined, drives: '/win/' });
  expect([
    isWsl({}, '5.15.90.1-microsoft-standard-WSL2'),
    isWsl({}, '6.1.0-13-amd64'),
    isWsl({ WSL_DISTRO_NAME: 'x' }, ''),
  ]).toEqual([true, false, true]);
});

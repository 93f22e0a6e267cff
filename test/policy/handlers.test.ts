import { expect, test } from 'vitest';
import { archiveHandlers } from '../../src/policy/shell/shell-archives.js';
import { awkHandlers } from '../../src/policy/shell/shell-awk.js';
import { builtinHandlers } from '../../src/policy/shell/shell-builtins.js';
import { commandHandlers } from '../../src/policy/shell/shell-commands.js';
import { fileHandlers } from '../../src/policy/shell/shell-files.js';
import { findHandlers } from '../../src/policy/shell/shell-find.js';
import { gitHandlers } from '../../src/policy/shell/shell-git.js';
import { interpreterHandlers } from '../../src/policy/shell/shell-interpreters.js';
import { networkHandlers } from '../../src/policy/shell/shell-network.js';
import { packageHandlers } from '../../src/policy/shell/shell-packages.js';
import { sedHandlers } from '../../src/policy/shell/shell-sed.js';
import { serviceHandlers } from '../../src/policy/shell/shell-services.js';
import { systemHandlers } from '../../src/policy/shell/shell-system.js';
import { wrapperHandlers } from '../../src/policy/shell/shell-wrappers.js';

const tables = [archiveHandlers, awkHandlers, builtinHandlers, fileHandlers, findHandlers, gitHandlers, interpreterHandlers, networkHandlers, packageHandlers, sedHandlers, serviceHandlers, systemHandlers, wrapperHandlers];

test('no two tables claim the same program, so that none hides the rules of another', () => {
  const names = tables.flatMap((table) => [...table.keys()]);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  expect(commandHandlers.size).toBe(names.length);
  expect(names.length).toBeGreaterThan(500);
});

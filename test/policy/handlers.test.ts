import { expect, test } from 'vitest';
import { builtinHandlers } from '../../src/policy/shell/builtins.js';
import { cloudHandlers, clusterHandlers, containerHandlers } from '../../src/policy/shell/clouds.js';
import { archiveHandlers, fileHandlers } from '../../src/policy/shell/file-programs.js';
import { findHandlers } from '../../src/policy/shell/finders.js';
import { gitHandlers } from '../../src/policy/shell/git.js';
import { interpreterHandlers } from '../../src/policy/shell/interpreters.js';
import { networkHandlers } from '../../src/policy/shell/network-programs.js';
import { npmHandlers, packageHandlers, systemPackageHandlers } from '../../src/policy/shell/packages.js';
import { awkHandlers, sedHandlers } from '../../src/policy/shell/sed-and-awk.js';
import { forgeHandlers, serviceHandlers } from '../../src/policy/shell/services.js';
import { commandHandlers } from '../../src/policy/shell/simple-command.js';
import { compilerHandlers, mediaHandlers, systemHandlers } from '../../src/policy/shell/system.js';
import { wrapperHandlers } from '../../src/policy/shell/wrappers.js';

const tables = [
  archiveHandlers,
  awkHandlers,
  builtinHandlers,
  cloudHandlers,
  clusterHandlers,
  compilerHandlers,
  containerHandlers,
  fileHandlers,
  forgeHandlers,
  mediaHandlers,
  findHandlers,
  gitHandlers,
  interpreterHandlers,
  networkHandlers,
  npmHandlers,
  packageHandlers,
  sedHandlers,
  serviceHandlers,
  systemHandlers,
  systemPackageHandlers,
  wrapperHandlers,
];

test('no two tables claim the same program, so that none hides the rules of another', () => {
  const names = tables.flatMap((table) => [...table.keys()]);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  expect(commandHandlers.size).toBe(names.length);
  expect(names.length).toBeGreaterThan(500);
});

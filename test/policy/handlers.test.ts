import { expect, test } from 'vitest';
import { archiveHandlers } from '../../src/policy/shell/shell-archives.js';
import { awkHandlers } from '../../src/policy/shell/shell-awk.js';
import { builtinHandlers } from '../../src/policy/shell/shell-builtins.js';
import { cloudHandlers } from '../../src/policy/shell/shell-clouds.js';
import { clusterHandlers } from '../../src/policy/shell/shell-clusters.js';
import { commandHandlers } from '../../src/policy/shell/shell-commands.js';
import { compilerHandlers } from '../../src/policy/shell/shell-compilers.js';
import { containerHandlers } from '../../src/policy/shell/shell-containers.js';
import { fileHandlers } from '../../src/policy/shell/shell-files.js';
import { findHandlers } from '../../src/policy/shell/shell-find.js';
import { forgeHandlers } from '../../src/policy/shell/shell-forges.js';
import { gitHandlers } from '../../src/policy/shell/shell-git.js';
import { interpreterHandlers } from '../../src/policy/shell/shell-interpreters.js';
import { mediaHandlers } from '../../src/policy/shell/shell-media.js';
import { networkHandlers } from '../../src/policy/shell/shell-network.js';
import { npmHandlers } from '../../src/policy/shell/shell-npm.js';
import { packageHandlers } from '../../src/policy/shell/shell-packages.js';
import { sedHandlers } from '../../src/policy/shell/shell-sed.js';
import { serviceHandlers } from '../../src/policy/shell/shell-services.js';
import { systemPackageHandlers } from '../../src/policy/shell/shell-system-packages.js';
import { systemHandlers } from '../../src/policy/shell/shell-system.js';
import { wrapperHandlers } from '../../src/policy/shell/shell-wrappers.js';

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

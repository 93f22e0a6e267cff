import { awkHandlers } from './shell-awk.js';
import { builtinHandlers } from './shell-builtins.js';
import { cloudHandlers } from './shell-clouds.js';
import { clusterHandlers } from './shell-clusters.js';
import { compilerHandlers } from './shell-compilers.js';
import { containerHandlers } from './shell-containers.js';
import { fileHandlers } from './shell-files.js';
import { archiveHandlers } from './shell-archives.js';
import { findHandlers } from './shell-find.js';
import { forgeHandlers } from './shell-forges.js';
import { gitHandlers } from './shell-git.js';
import { interpreterHandlers } from './shell-interpreters.js';
import { mediaHandlers } from './shell-media.js';
import { networkHandlers } from './shell-network.js';
import { npmHandlers } from './shell-npm.js';
import { packageHandlers } from './shell-packages.js';
import { sedHandlers } from './shell-sed.js';
import { serviceHandlers } from './shell-services.js';
import { systemPackageHandlers } from './shell-system-packages.js';
import { systemHandlers } from './shell-system.js';
import { wrapperHandlers } from './shell-wrappers.js';
import type { Handler } from './shell-types.js';

/** Every program that has rules of its own, by name. */
export const commandHandlers: ReadonlyMap<string, Handler> = new Map([
  ...systemHandlers,
  ...serviceHandlers,
  ...cloudHandlers,
  ...clusterHandlers,
  ...containerHandlers,
  ...forgeHandlers,
  ...npmHandlers,
  ...packageHandlers,
  ...systemPackageHandlers,
  ...compilerHandlers,
  ...mediaHandlers,
  ...networkHandlers,
  ...interpreterHandlers,
  ...archiveHandlers,
  ...fileHandlers,
  ...sedHandlers,
  ...awkHandlers,
  ...gitHandlers,
  ...findHandlers,
  ...builtinHandlers,
  ...wrapperHandlers,
]);

import { awkHandlers } from './shell-awk.js';
import { builtinHandlers } from './shell-builtins.js';
import { fileHandlers } from './shell-files.js';
import { archiveHandlers } from './shell-archives.js';
import { findHandlers } from './shell-find.js';
import { gitHandlers } from './shell-git.js';
import { interpreterHandlers } from './shell-interpreters.js';
import { networkHandlers } from './shell-network.js';
import { packageHandlers } from './shell-packages.js';
import { sedHandlers } from './shell-sed.js';
import { serviceHandlers } from './shell-services.js';
import { systemHandlers } from './shell-system.js';
import { wrapperHandlers } from './shell-wrappers.js';
import type { Handler } from './shell-types.js';

/** Every program that has rules of its own, by name. */
export const commandHandlers: ReadonlyMap<string, Handler> = new Map([
  ...systemHandlers, ...serviceHandlers, ...packageHandlers, ...networkHandlers, ...interpreterHandlers, ...archiveHandlers,
  ...fileHandlers, ...sedHandlers, ...awkHandlers, ...gitHandlers, ...findHandlers, ...builtinHandlers, ...wrapperHandlers,
]);

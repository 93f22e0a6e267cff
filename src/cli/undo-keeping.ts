import type { ChangeKeeping, ChangeWatch } from '../core/file-changes.js';
import { sha256Of } from '../tools/file-writer.js';
import type { Setup } from './setup.js';

const maxBlobBytes = 8 * 1024 * 1024;

/** How the sessions of this run keep what calls do to files. Contents of secret files (`fs.deny`) are not read for it.
 *  What watches is loaded with the first call that may change something. */
export function openKeeping(setup: Setup): ChangeKeeping {
  let loaded: Promise<ChangeWatch> | null = null;
  return { hash: sha256Of, maxBlobBytes, watch: { begin: async (look) => (await (loaded ??= loadWatch(setup))).begin(look) } };
}

async function loadWatch({ config, env, home }: Setup): Promise<ChangeWatch> {
  const [{ createChangeWatch }, { createSecretPaths }] = await Promise.all([import('../tools/change-watch.js'), import('../policy/secret-paths.js')]);
  const secrets = createSecretPaths(config.fs.deny, home);
  return createChangeWatch({ env, isSecret: (path) => secrets.matches(path) });
}

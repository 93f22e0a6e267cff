import type { ChangeKeeping, ChangeWatch } from '../../core/file-changes.js';
import { loadOnce } from '../../core/load-once.js';
import { sha256Of } from '../../tools/files/file-writer.js';
import type { Setup } from '../setup.js';
import { secretFiles } from '../open/toolbox.js';

const maxBlobBytes = 8 * 1024 * 1024;

/** How the sessions of this run keep what calls do to files. Contents of secret files (`fs.deny`) are not read for it,
 * and none that hold a key are kept. What watches is loaded with the first call that may change something. */
export function openKeeping(setup: Setup): ChangeKeeping {
  const watch = loadOnce(() => loadWatch(setup));
  const values = setup.secrets.map(({ value }) => Buffer.from(value));
  return {
    hash: sha256Of,
    maxBlobBytes,
    holdsSecret: (bytes) =>
      values.some((value) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(value)),
    watch: { begin: async (look) => (await watch.get()).begin(look) },
  };
}

async function loadWatch(setup: Setup): Promise<ChangeWatch> {
  const [{ createChangeWatch }, isSecret] = await Promise.all([
    import('../../tools/changes/change-watch.js'),
    secretFiles(setup),
  ]);
  return createChangeWatch({ env: setup.env, isSecret });
}

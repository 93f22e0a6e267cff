import { createHash } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agentPaths, ensurePrivateDirectory } from '../../config/locations.js';
import { readBoundedText } from '../../disk/bounded-file.js';
import type { Endpoint } from '../../providers/catalog.js';
import type { TextModels } from '../../providers/text/tool-support.js';
import type { Setup } from '../setup.js';

const maxKept = 200;

/** The models of an endpoint that were found to take no tool calls, by provider and address: kept in the cache
 * directory as digests, so that the next run does not ask in vain. Where that file cannot be read or written, this run
 * alone remembers. */
export function textModelsOf(
  setup: Pick<Setup, 'env' | 'home' | 'ephemeral'>,
  { provider, baseUrl }: Pick<Endpoint, 'provider' | 'baseUrl'>,
): TextModels {
  const file = join(agentPaths(setup.env, setup.home).cache, 'text-models.json');
  const own = new Set<string>();
  let stored: readonly string[] | null = null;
  const digest = (model: string): string =>
    createHash('sha256').update([provider, baseUrl, model].join('\0')).digest('hex').slice(0, 24);
  return {
    has: (model) => own.has(digest(model)) || (stored ??= read(file)).includes(digest(model)),
    add(model) {
      own.add(digest(model));
      if (setup.ephemeral !== true)
        write(file, [digest(model), ...read(file).filter((known) => known !== digest(model))].slice(0, maxKept));
    },
  };
}

function read(file: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(
      readBoundedText(file, { maxBytes: 65_536, longer: 'refuse', links: 'follow' }) ?? '[]',
    );
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}

/** Renamed into place, so that two runs at once leave a whole file. */
function write(file: string, digests: readonly string[]): void {
  const draft = `${file}.${process.pid}`;
  try {
    ensurePrivateDirectory(dirname(file));
    writeFileSync(draft, JSON.stringify(digests), { mode: 0o600 });
    renameSync(draft, file);
  } catch {
    rmSync(draft, { force: true });
  }
}

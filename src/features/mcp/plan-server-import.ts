import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { upToRoot } from '../../kernel/config/load.js';
import { ownFolder } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  planSource,
  skipItem,
  unreadableSource,
} from '../../kernel/console/importer.js';
import { foreignTarget, projectRoots } from '../../kernel/console/program-folders.js';
import { parseJson } from '../../kernel/core/json.js';
import { readServerFile } from './configured-servers.js';
import { saveEntries } from './listed-servers.js';
import { type FoundEntry, otherClients, sourcesOfClient } from './other-clients.js';

/** Imports servers of other programs into `mcp.json` of the user. */
export const serverImporter: Importer = { kind: 'mcp', plan: (host) => Promise.resolve(planServers(host)) };

function planServers({ settings, programs }: ImportHost): readonly ImportPlan[] {
  const { env, home, cwd } = settings;
  const place = { env, home, cwd, root: upToRoot(cwd).at(-1) ?? cwd };
  const file = join(ownFolder(settings), 'mcp.json');
  const target = createEntryImport(file, foreignTarget(file, settings));
  // In the home of the user, the files of a project are those of the user.
  const isProject = projectRoots(settings).includes(place.root);
  return programs.flatMap((program) => {
    const client = otherClients[program];
    if (!client) return [];
    return sourcesOfClient(client, place).flatMap(({ path, scope, inPlace, found }): readonly ImportPlan[] => {
      if (scope === 'project' && !isProject && client.projectFiles?.(place).includes(path)) return [];
      const where = { program, kind: 'mcp', path, scope } as const;
      if (found instanceof Error) return [unreadableSource(where, 'file', found)];
      const items = inPlace ? found.map(({ name }): ImportItem => ({ name, state: 'exists' })) : found.map(target.item);
      return items.length === 0 ? [] : [planSource(where, items)];
    });
  });
}

interface EntryImport {
  readonly item: (found: FoundEntry) => ImportItem;
}

/** Adds entries to a file of servers. `foreign`: why it must not be written to. */
function createEntryImport(file: string, foreign: string | null): EntryImport {
  const taken = readServerFile(file);
  const known = new Map<string, unknown>(taken.kind === 'read' ? Object.entries(taken.entries) : []);
  const problem = taken.kind === 'broken' ? `${file} cannot be changed: ${taken.problem}` : foreign;
  return {
    item: (found) => {
      const { name, given } = found;
      if ('problem' in found) return skipItem(given, found.problem);
      if (isDeepStrictEqual(known.get(name), plainEntry(found.entry))) return { name: given, state: 'exists' };
      if (known.has(name)) return skipItem(given, `mcp.json has another server ${name}`);
      if (problem !== null) return skipItem(given, problem);
      known.set(name, plainEntry(found.entry));
      return {
        name: given,
        state: 'take',
        notes: found.notes,
        take: () => {
          addEntry(file, name, found.entry);
        },
      };
    },
  };
}

/** Returns an entry as it comes back from the file. */
function plainEntry(entry: unknown): unknown {
  return parseJson(JSON.stringify(entry));
}

function addEntry(file: string, name: string, entry: unknown): void {
  const now = readServerFile(file);
  if (now.kind === 'broken') throw new Error(`${file} cannot be changed: ${now.problem}`);
  const entries = now.kind === 'read' ? now.entries : {};
  if (!Object.hasOwn(entries, name)) saveEntries(file, { ...entries, [name]: entry });
}

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Here, type ProjectPart, projectRoot } from '../../kernel/config/project.js';
import type * as code from './start-servers.js';

/** Loads the code of servers, which a run without any does not need. */
export type LoadServers = () => Promise<typeof code>;

/** Returns the path of the user's file of servers, and of the project's. */
export function serverFiles({ config, cwd }: Here): { readonly own: string; readonly ofProject: string } {
  return { own: join(dirname(config.files.config), 'mcp.json'), ofProject: join(projectRoot({ cwd }), '.mcp.json') };
}

/** Returns the servers that a project brings along. */
export async function serverParts(here: Here, load: LoadServers): Promise<readonly ProjectPart[]> {
  const { own, ofProject: file } = serverFiles(here);
  if (!existsSync(file)) return [];
  const { serverPart } = await load();
  const part = serverPart(file, own);
  return part === null ? [] : [part];
}

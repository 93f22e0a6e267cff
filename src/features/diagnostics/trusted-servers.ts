import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { type Here, type ProjectPart, projectRoot } from '../../kernel/config/project.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { languageServers, projectServer } from './language-servers.js';

const maxBytes = 64 * 1024 * 1024;

/** Lists the language servers in `node_modules/.bin` of the project: they run only once the user trusts them. */
export function serverParts(here: Here): readonly ProjectPart[] {
  const roots = [...new Set([here.cwd, projectRoot(here)])];
  return roots.flatMap((root) =>
    languageServers.flatMap((server): readonly ProjectPart[] => {
      const path = projectServer(server, [root]);
      if (path === null) return [];
      const found = readBounded(realpathSync(path), { maxBytes, longer: 'refuse', links: 'follow' });
      const bytes = found.kind === 'read' ? found.bytes : Buffer.alloc(0);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const ends = Object.keys(server.languages).join(', ');
      return [
        {
          kind: 'servers',
          path,
          sha256,
          bytes: bytes.length,
          lines: [`language server ${server.name}: runs when ${ends} files are edited, to find errors`],
        },
      ];
    }),
  );
}

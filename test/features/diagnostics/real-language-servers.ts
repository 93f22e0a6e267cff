import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const programs = ['typescript-language-server', 'pyright-langserver'] as const;

/** Real language servers, and where they are: in `AGENT_LANGUAGE_SERVERS`, or in a folder among the temporary files. */
export function realLanguageServers() {
  const folder = process.env['AGENT_LANGUAGE_SERVERS'] ?? join(tmpdir(), 'agent-language-servers');
  const path = join(folder, 'node_modules', '.bin');
  return {
    folder,
    path,
    packages: ['typescript-language-server@5', 'typescript@5', 'pyright@1'],
    found: () => programs.every((name) => existsSync(join(path, name))),
  };
}

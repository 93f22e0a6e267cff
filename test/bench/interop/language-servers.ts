// Installs language servers from the npm registry where test/features/diagnostics/checked-by-real-servers.system.ts looks for
// them. `npm run t:language-servers` does that and runs the test.
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { realLanguageServers } from '../../features/diagnostics/real-language-servers.js';

const { folder, packages, found } = realLanguageServers();
if (!found()) {
  mkdirSync(folder, { recursive: true });
  spawnSync('npm', ['i', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
if (!found()) console.log('The servers could not be installed from the npm registry: the test will skip them.');

import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { acpxIn, drive, scripts } from './acpx-scripts.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const installed = acpxIn(root).found();
if (!installed) console.warn(`acpx is not installed (npm run t:acpx installs it): ${scripts.length} cases skipped`);

test.skipIf(!installed).each(scripts)('acpx drives the program: $name', (script) => {
  const { output, ...seen } = drive(root, script);
  expect(seen, output).toMatchObject({ made: script.made, said: script.said, ended: true });
});

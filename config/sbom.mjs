// The software bill of materials: what is bundled, and what npm installs beside it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';

const inDevelopment = 'cdx:npm:package:development';

/** Writes the CycloneDX document of the package: of all that package-lock.json names, the dependencies and what is
 * bundled. `bundled`: `name@version` of each package in the bundle. Two builds of the same sources write the same bytes.
 * Throws where package-lock.json does not name a bundled package. */
export function writeSbom({ root, bundled, file }) {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  // On Windows npm is a script of the shell.
  const text = execFileSync('npm', args, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' });
  const { serialNumber: _random, metadata, components, dependencies, ...all } = JSON.parse(text);
  const { timestamp: _now, component, ...made } = metadata;
  const isBundled = ({ name, version }) => bundled.includes(`${name}@${version}`);
  const kept = components.filter((one) => isBundled(one) || !one.properties.some(({ name }) => name === inDevelopment));
  const missing = bundled.find((id) => !kept.some(({ name, version }) => id === `${name}@${version}`));
  if (missing !== undefined) throw new Error(`package-lock.json does not name ${missing}, which is bundled`);
  const refs = new Set([component, ...kept].map((one) => one['bom-ref']));
  const content = {
    metadata: { ...made, component: { ...component, name: 'agent-shell' } },
    components: kept.map((one) => (isBundled(one) ? asBundled(one) : one)),
    dependencies: dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) })),
  };
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(content))}`;
  writeFileSync(file, `${JSON.stringify({ ...all, serialNumber, ...content }, null, 1)}\n`);
}

function asBundled(component) {
  const others = component.properties.filter(({ name }) => name !== inDevelopment);
  return {
    ...component,
    scope: 'required',
    properties: [...others, { name: 'cdx:npm:package:bundled', value: 'true' }],
  };
}

/** A UUID of version 8, whose bits are those of a hash. Source: RFC 9562, 5.8. */
function uuidOf(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return parts.join('-');
}

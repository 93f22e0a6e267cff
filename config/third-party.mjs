// The licences of what is bundled: MIT, ISC, BSD and Apache-2.0 ask that their text goes with every copy.
import { readFileSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';

/** Returns the packages of which `metafile` (esbuild's, its paths relative to `root`) holds a file, with their folders.
 * `copied`: the folders of packages that go along unbundled. */
export function bundledPackages({ root, metafile, copied }) {
  const packaged = /^((?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+)\//;
  const folders = new Set(
    Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([input]) => packaged.exec(input)?.[1])
      .filter((folder) => folder !== undefined),
  );
  return [...folders, ...copied].map((path) => {
    const folder = `${root}${path}`;
    return { folder, ...JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) };
  });
}

/** Writes the licence text of packages. Throws for one that names no licence. */
export async function writeThirdPartyLicenses(packages, file) {
  const texts = packages.map(noticeOf).sort();
  await writeFile(
    file,
    `agent contains the following software, each under its own licence.\n\n${[...new Set(texts)].join('\n\n')}`,
  );
}

function noticeOf({ folder, name, version, license }) {
  const files = readdirSync(folder)
    .filter((entry) => /^(licen[cs]e|notice|copying)/i.test(entry))
    .sort();
  if (files.length === 0 && !license) throw new Error(`${name} ${version} names no licence; it cannot be bundled`);
  const rule = '-'.repeat(100);
  return [
    rule,
    `${name} ${version} (${license ?? 'see below'})`,
    rule,
    '',
    ...files.map((entry) => readFileSync(`${folder}/${entry}`, 'utf8').trim()),
    '',
  ].join('\n');
}

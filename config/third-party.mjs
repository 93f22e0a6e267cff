// The licences of what is bundled: MIT, ISC, BSD and Apache-2.0 ask that their text goes with every copy.
import { readFileSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';

/** Writes the licence text of every package of which `metafile` (esbuild's, its paths relative to `root`) holds a file.
 * `copied`: the folders of packages that go along unbundled.
 * Throws for one that names no licence. */
export async function writeThirdPartyLicenses({ root, metafile, copied, file }) {
  const packaged = /^((?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+)\//;
  const folders = new Set(
    Object.values(metafile.outputs)
      .flatMap(({ inputs }) => Object.entries(inputs))
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([input]) => packaged.exec(input)?.[1])
      .filter((folder) => folder !== undefined),
  );
  const texts = [...folders, ...copied].map((folder) => noticeOf(`${root}${folder}`)).sort();
  await writeFile(
    file,
    `agent contains the following software, each under its own licence.\n\n${[...new Set(texts)].join('\n\n')}`,
  );
}

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
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

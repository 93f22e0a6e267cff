import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { type Projects, type ProjectFiles, type ProjectPart, projectRoot } from '../kernel/config/project.js';
import { openTrustFile } from '../kernel/config/trust-file.js';
import { features } from './features.js';

/** Lists, hashes and asks about the files of a project together. */
export const projects: Projects = {
  files: async (here, read) => {
    const parts = features.map(async (feature) =>
      read?.feature === feature.name ? read.parts : ((await feature.projectParts?.(here)) ?? []),
    );
    return setOf(projectRoot(here), (await Promise.all(parts)).flat());
  },
  userFiles: async (here) => {
    const parts = features.map(async (feature) => (await feature.userParts?.(here)) ?? []);
    return setOf(join(here.home, '.claude'), (await Promise.all(parts)).flat());
  },
  answerFor: ({ config }, files) =>
    files === null ? null : (openTrustFile(config.files.trust).files.answerFor(files)?.trusted ?? null),
  sources: async (here) =>
    (await Promise.all(features.map(async (feature) => (await feature.sources?.(here)) ?? []))).flat(),
};

function setOf(directory: string, parts: readonly ProjectPart[]): ProjectFiles | null {
  if (parts.length === 0) return null;
  // The order of the features has no say in the hash.
  const files = parts.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const hash = createHash('sha256');
  for (const { path, sha256 } of files) hash.update(`${relative(directory, path)}\0${sha256}\n`);
  return { directory, sha256: hash.digest('hex'), files };
}

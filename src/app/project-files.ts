import { createHash } from 'node:crypto';
import { join, relative } from 'node:path';
import { type Projects, type ProjectFiles, type ProjectPart, projectRoot } from '../kernel/config/project.js';
import { openTrustFile } from '../kernel/config/trust-file.js';
import { claudeRuleParts } from './claude-permissions.js';
import { features } from './features.js';

/** Lists, hashes and asks about the files of a project together. */
export const projects: Projects = {
  files: async (here, read) => {
    const parts = features.map(async (feature) =>
      read?.feature === feature.name ? read.parts : ((await feature.projectParts?.(here)) ?? []),
    );
    const rules = await claudeRuleParts(here, 'project');
    return setOf(projectRoot(here), [...(await Promise.all(parts)).flat(), ...rules]);
  },
  userFiles: async (here) => {
    const parts = features.map(async (feature) => (await feature.userParts?.(here)) ?? []);
    const rules = await claudeRuleParts(here, 'claude-code');
    return setOf(join(here.home, '.claude'), [...(await Promise.all(parts)).flat(), ...rules]);
  },
  answerFor: ({ config }, files) =>
    files === null ? null : (openTrustFile(config.files.trust).files.answerFor(files)?.trusted ?? null),
  sources: async (here) =>
    (await Promise.all(features.map(async (feature) => (await feature.sources?.(here)) ?? []))).flat(),
};

function setOf(directory: string, parts: readonly ProjectPart[]): ProjectFiles | null {
  if (parts.length === 0) return null;
  // The order of the features has no say in the hash.
  const files = onePerPath(parts).toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const hash = createHash('sha256');
  for (const { path, sha256 } of files) hash.update(`${relative(directory, path)}\0${sha256}\n`);
  return { directory, sha256: hash.digest('hex'), files };
}

/** Joins what several parts of the program take from one file. */
function onePerPath(parts: readonly ProjectPart[]): readonly ProjectPart[] {
  const byPath = new Map<string, ProjectPart>();
  for (const part of parts) {
    const before = byPath.get(part.path);
    const sha256 = before && createHash('sha256').update(`${before.sha256}\n${part.sha256}`).digest('hex');
    byPath.set(part.path, before && sha256 ? { ...before, sha256, lines: [...before.lines, ...part.lines] } : part);
  }
  return [...byPath.values()];
}

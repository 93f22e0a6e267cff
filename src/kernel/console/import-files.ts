import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Kind, userFolders } from '../config/project.js';
import { readBounded } from '../disk/bounded-file.js';
import { isAlive } from '../store/lease.js';
import { type ImportItem, skipItem } from './importer.js';
import { foreignTarget } from './program-folders.js';
import type { Settings } from './run-settings.js';

type Here = Pick<Settings, 'config' | 'cwd' | 'env' | 'home'>;

/** A file that would be made. */
export interface NewFile {
  /** The name in listings. */
  readonly name: string;
  /** Below the folder of its kind. */
  readonly file: string;
  readonly text: string;
}

/** Returns the folder of the user that files are copied to. */
export function ownFolder({ config }: Pick<Here, 'config'>): string {
  return dirname(config.files.config);
}

/** Makes files of one kind in the user's folder, none of them twice and none in the place of another. */
export function createFileImport(here: Here, kind: Kind): { item(file: NewFile): ImportItem } {
  const [target = '', ...others] = userFolders(here, kind).map(({ folder }) => folder);
  const foreign = foreignTarget(target, here);
  const planned = new Map<string, string>();
  return {
    item: ({ name, file, text }) => {
      const used = [target, ...others].map((folder) => join(folder, file));
      for (const path of used) {
        const there = textAt(path) ?? (path === used[0] ? planned.get(path) : undefined);
        if (there === text) return { name, state: 'exists' };
        if (there !== undefined) return skipItem(name, `${path} has another text`);
      }
      if (foreign !== null) return skipItem(name, foreign);
      const path = join(target, file);
      planned.set(path, text);
      return {
        name,
        state: 'take',
        take: () => {
          writeNewFile(path, text);
        },
      };
    },
  };
}

const maxComparedBytes = 1024 * 1024;

function textAt(path: string): string | undefined {
  const found = readBounded(path, { maxBytes: maxComparedBytes, longer: 'refuse', links: 'follow' });
  if (found.kind === 'missing') return undefined;
  return found.kind === 'read' ? found.bytes.toString('utf8') : '';
}

/** Makes a file. Whoever kills the program finds all of it or nothing. */
function writeNewFile(path: string, text: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeLeftovers(folder);
  const draft = join(folder, draftName());
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
  renameSync(draft, path);
}

/** Makes a folder that `fill` fills. Whoever kills the program finds all of it or nothing. */
export function makeWholeFolder(path: string, fill: (draft: string) => void): void {
  const folder = dirname(path);
  // A draft beside the others of its kind would be taken for one of them.
  const above = dirname(folder);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeLeftovers(above);
  const draft = join(above, draftName());
  try {
    mkdirSync(draft, { mode: 0o700 });
    fill(draft);
    renameSync(draft, path);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function draftName(): string {
  return `.import-${process.pid}-${randomBytes(4).toString('hex')}.tmp`;
}

/** Removes drafts of imports that were killed. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^\.import-(\d+)-[0-9a-f]{8}\.tmp$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true });
  }
}

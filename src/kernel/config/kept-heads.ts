import { mkdirSync, type Stats } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord, parseJson } from '../core/json.js';
import { readBoundedText } from '../disk/bounded-file.js';
import { replaceFile } from './settings-file.js';

/** The fields of a Markdown file, or why it cannot be used. */
export interface FileHead {
  readonly fields: ReadonlyMap<string, string>;
  /** The beginning of the text below its fields, in one line; '' where there is none. */
  readonly opening: string;
  readonly problem: string | null;
}

/** Fields of Markdown files that were read before, by path. A file that has changed in any way is read again. */
export interface KeptHeads {
  /** Returns the head of a file; reads it with `read` where its state is new. */
  of(path: string, stats: Stats, read: () => FileHead): FileHead;
  /** Keeps what is new for later runs. A failure is ignored: the files are read again then. */
  save(): void;
}

/** Changes when the same file gives other fields. */
const form = 2;
const maxBytes = 8 * 1024 * 1024;
const maxEntries = 5000;

type Kept = Readonly<{
  version: string;
  fields: Readonly<Record<string, string>>;
  opening: string;
  problem: string | null;
}>;

/** Opens the heads that are kept in the folder of caches; null keeps them in memory alone. */
export function openKeptHeads(cache: string | null): KeptHeads {
  const file = cache === null ? null : join(cache, 'file-heads.json');
  const before = file === null ? undefined : opened.get(file);
  if (before) return before;
  const heads = readKept(file);
  let isNew = false;
  const kept: KeptHeads = {
    of: (path, { mtimeMs, ctimeMs, size, ino }, read) => {
      const version = [form, mtimeMs, ctimeMs, size, ino].join(' ');
      const known = heads.get(path);
      if (known?.version === version) return { ...known, fields: new Map(Object.entries(known.fields)) };
      const head = read();
      heads.delete(path);
      heads.set(path, { ...head, version, fields: Object.fromEntries(head.fields) });
      isNew = true;
      return head;
    },
    save: () => {
      if (!isNew || file === null) return;
      isNew = false;
      try {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        replaceFile(file, JSON.stringify(Object.fromEntries([...heads].slice(-maxEntries))));
      } catch {
        /* A full or read-only disk costs time, nothing else. */
      }
    },
  };
  if (file !== null) opened.set(file, kept);
  return kept;
}

const opened = new Map<string, KeptHeads>();

function readKept(file: string | null): Map<string, Kept> {
  const text = file === null ? null : readBoundedText(file, { maxBytes, longer: 'refuse', links: 'follow' });
  if (text === null) return new Map();
  try {
    const value: unknown = parseJson(text);
    return new Map(
      isRecord(value) ? Object.entries(value).filter((entry): entry is [string, Kept] => isKept(entry[1])) : [],
    );
  } catch {
    return new Map();
  }
}

function isKept(value: unknown): value is Kept {
  return (
    isRecord(value) &&
    typeof value['version'] === 'string' &&
    isRecord(value['fields']) &&
    typeof value['opening'] === 'string'
  );
}

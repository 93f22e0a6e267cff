import { type BigIntStats, lstatSync, readdirSync } from 'node:fs';

/** A path below a layer. Names of files are bytes: here each character is one byte (latin1). '' is the folder itself. */
export type RawName = string;

/** Returns the bytes of a path, as Node's functions take them. */
export function bytesOf(folder: string, name: RawName): Buffer {
  return name === '' ? Buffer.from(folder) : joinPath(Buffer.from(folder), name);
}

/** Returns the path of an entry of a folder. */
export function joinPath(folder: Buffer, name: RawName): Buffer {
  return Buffer.concat([folder, Buffer.from('/'), Buffer.from(name, 'latin1')]);
}

/** Returns the name of an entry of a folder of a layer. */
export function below(folder: RawName, entry: RawName): RawName {
  return folder === '' ? entry : `${folder}/${entry}`;
}

/** Returns a path with one character for each byte as a text to show. */
export function decodePath(path: RawName): string {
  return Buffer.from(path, 'latin1').toString('utf8');
}

/** Returns the facts of a path, not of what a link points to; null where they cannot be read. */
export function statOf(path: Buffer): BigIntStats | null {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

/** Returns the names in a folder; none where it cannot be read. */
export function namesIn(folder: Buffer): readonly RawName[] {
  try {
    return readdirSync(folder, { encoding: 'buffer' }).map((name) => name.toString('latin1'));
  } catch {
    return [];
  }
}

/** Returns true if this marks a deleted file in a layer. Source: Linux, Documentation/filesystems/overlayfs.rst. */
export function isWhiteout(stat: BigIntStats): boolean {
  return stat.isCharacterDevice() && stat.rdev === 0n;
}

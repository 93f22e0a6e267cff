import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePrivateDirectory } from '../../../kernel/config/settings-file.js';
import { Refusal } from '../http-guard.js';
import type { ApiValue } from './api-schemas.js';

/** Files that came with messages, in a folder that only this user can enter. A message names them by path, as one that is
 * typed does: images and PDFs become part of the message, others are read by the model's tools. */
export interface AttachedFiles {
  /** Stores the files and returns the message that names them. */
  withFiles(text: string, attachments: NonNullable<ApiValue<'NewMessage'>['attachments']>): string;
}

/** Files that are older are removed. The log has its own copies of images and PDFs. */
const keptMs = 30 * 24 * 3600 * 1000;
const mostBytes = 16 * 1024 * 1024;

/** Opens the folder of attached files, and removes old ones. */
export function openAttachedFiles({ data }: { readonly data: string }, now: () => number): AttachedFiles {
  const folder = join(data, 'attached');
  removeOld(folder, now() - keptMs);
  return {
    withFiles: (text, attachments) => {
      const files = attachments.map(({ name, base64 }) => ({ name, bytes: Buffer.from(base64, 'base64') }));
      const large = files.find(({ bytes }) => bytes.length > mostBytes);
      if (large) throw new Refusal(413, `${large.name} is larger than ${mostBytes} bytes.`);
      if (files.length === 0) return text;
      const own = join(folder, randomBytes(9).toString('base64url'));
      ensurePrivateDirectory(own);
      const paths = files.map(({ name, bytes }, index) => {
        const path = join(own, `${index + 1}-${safeName(name)}`);
        writeFileSync(path, bytes, { mode: 0o600, flag: 'wx' });
        return path;
      });
      return `${text}\n\n${paths.map((path) => `@${/[\s@"]/.test(path) ? `"${path}"` : path}`).join('\n')}`;
    },
  };
}

/** Returns the name with only characters that mean nothing in a message, a path or a shell. */
function safeName(name: string): string {
  const plain = name.normalize('NFC').replace(/[^\p{L}\p{N}._-]+/gu, '-');
  return plain.replace(/^[.-]+/, '').slice(-100) || 'file';
}

function removeOld(folder: string, beforeMs: number): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const path = join(folder, name);
    if ((statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) < beforeMs)
      rmSync(path, { recursive: true, force: true });
  }
}

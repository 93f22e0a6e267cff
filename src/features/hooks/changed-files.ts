import { createHash } from 'node:crypto';
import type { ChangedFile, HookEvent } from '../../kernel/core/hooks.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { statsAt } from '../../kernel/disk/path-stats.js';

/** A file of settings, as Claude Code names its kind. */
export type SettingsSource = Pick<Extract<ChangedFile, { readonly event: 'ConfigChange' }>, 'source' | 'path'>;

/** Longer files are compared by what the file system says of them. */
const maxBytes = 4 * 1024 * 1024;
/** Most files of a session that are looked at, the newest. */
const maxFiles = 500;

/** Makes what looks at the files that hooks listen to. Each content is reported once. Files of settings are compared
 * with what they were when the session began. */
export function createChangeWatch(
  settings: readonly SettingsSource[],
  listens: (event: HookEvent) => boolean,
): (known: ReadonlyMap<string, string | null>) => readonly ChangedFile[] {
  const look = createLook();
  const reported = new Map<string, string>();
  const configured = listens('ConfigChange')
    ? new Map(settings.map((file) => [file.path, { ...file, sha256: look(file.path) }]))
    : new Map<string, SettingsSource & { readonly sha256: string }>();
  const changedSettings = (): readonly ChangedFile[] =>
    [...configured.values()].flatMap(({ source, path, sha256: before }): readonly ChangedFile[] => {
      const sha256 = look(path);
      if (sha256 === before) return [];
      configured.set(path, { source, path, sha256 });
      return [{ event: 'ConfigChange', source, path }];
    });
  const changedFiles = (known: ReadonlyMap<string, string | null>): readonly ChangedFile[] =>
    [...known].slice(-maxFiles).flatMap(([path, read]): readonly ChangedFile[] => {
      const sha256 = look(path);
      if (sha256 === (read ?? gone) || sha256.startsWith(unread)) {
        reported.delete(path);
        return [];
      }
      if (reported.get(path) === sha256) return [];
      reported.set(path, sha256);
      return [{ event: 'FileChanged', path, change: sha256 === gone ? 'unlink' : 'change' }];
    });
  return (known) => [...changedSettings(), ...(listens('FileChanged') ? changedFiles(known) : [])];
}

const gone = 'gone';
const unread = 'unread ';

/** Returns what reads the hash of a file (hex). A file with the facts that it had is not read again. */
function createLook(): (path: string) => string {
  const seen = new Map<string, { readonly facts: string; readonly sha256: string }>();
  return (path) => {
    const stats = statsAt(path);
    if (stats === null) return gone;
    const facts = [stats.dev, stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs].join(' ');
    const last = seen.get(path);
    if (last?.facts === facts) return last.sha256;
    const file = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
    if (file.kind === 'missing') return gone;
    const sha256 = file.kind === 'read' ? createHash('sha256').update(file.bytes).digest('hex') : `${unread}${facts}`;
    seen.set(path, { facts, sha256 });
    return sha256;
  };
}

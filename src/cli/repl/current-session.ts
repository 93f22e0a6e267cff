import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { SessionPort } from '../../core/session-port.js';
import { readBoundedText } from '../../disk/bounded-file.js';
import { findModel } from '../../providers/models.js';
import type { StatusFacts } from '../../ui/components/status-line.js';
import { assemble, type Assembly, type Workbench } from '../session/assemble.js';
import { repositoryRoot } from '../session/context-files.js';
import type { SessionWish } from '../session/find-session.js';

/** The session on the desk of a REPL, and how it is put away for another one. */
export interface SessionDesk {
  current(): Assembly;
  /** The title the present session was given, or null. */
  title(): string | null;
  rename(title: string): Promise<void>;
  /** Opens another session first, then closes the present one; where the other cannot be opened the present one stays
   * and the error is thrown. */
  open(wish: SessionWish): Promise<SessionPort>;
  close(): Promise<void>;
}

/** A session has its row from the first event on. */
function afterFirstEvent(session: SessionPort, callback: () => void): void {
  const stop = session.subscribe((event) => {
    if (event.type !== 'event') return;
    stop();
    callback();
  });
}

export async function openDesk(bench: Workbench, wish: SessionWish): Promise<SessionDesk> {
  let current = await assemble(bench, wish, true);
  let { title } = current.row;
  return {
    current: () => current,
    title: () => title,
    rename: async (given) => {
      const next = current.secrets.text(given);
      const { session } = current;
      const save = (): Promise<void> => bench.store.update(session.id, { title: next });
      if (session.events().length > 0) await save();
      else
        afterFirstEvent(session, () => {
          if (title === next) void save().catch(() => null);
        });
      title = next;
    },
    open: async (next) => {
      const opened = await assemble(bench, { ...next, after: current.session.ref() }, true);
      const old = current;
      current = opened;
      ({ title } = opened.row);
      old.session.interrupt();
      await old.close();
      return opened.session;
    },
    close: () => current.close(),
  };
}

const branchMs = 2000;

/** The facts of the status line. Asked at each frame: only the branch is read from disk, and that at most every two
 * seconds. */
export function createStatus(bench: Workbench, desk: SessionDesk): () => StatusFacts {
  const { setup } = bench;
  const root = repositoryRoot(setup.cwd);
  let branch: string | undefined;
  let readAt = -Infinity;
  const windows = new Map<string, number | null>();
  return () => {
    const now = performance.now();
    if (root !== null && now - readAt > branchMs) {
      branch = readBranch(root);
      readAt = now;
    }
    const { provider, model } = desk.current().session.ref();
    const name = `${provider}/${model}`;
    const known = windows.get(name);
    const contextWindow =
      known === undefined ? (findModel(provider, model, setup.config.provider.models)?.contextWindow ?? null) : known;
    windows.set(name, contextWindow);
    return {
      model: name,
      approval: bench.policy.mode(),
      sandbox: setup.config.policy.sandbox,
      branch,
      contextWindow,
      directory:
        setup.cwd === setup.home || setup.cwd.startsWith(`${setup.home}/`)
          ? `~${setup.cwd.slice(setup.home.length)}`
          : setup.cwd,
    };
  };
}

/** The branch that is checked out, or the first digits of a detached commit; undefined where that cannot be read. */
function readBranch(root: string): string | undefined {
  try {
    const git = join(root, '.git');
    const folder = statSync(git).isDirectory()
      ? git
      : resolve(
          root,
          small(git)
            .replace(/^gitdir: /, '')
            .trim(),
        );
    const head = small(join(folder, 'HEAD')).trim();
    if (head === '') return undefined;
    return head.startsWith('ref: refs/heads/') ? head.slice('ref: refs/heads/'.length) : head.slice(0, 8);
  } catch {
    return undefined;
  }
}

function small(path: string): string {
  return readBoundedText(path, { maxBytes: 65_536, longer: 'refuse', links: 'follow' }) ?? '';
}

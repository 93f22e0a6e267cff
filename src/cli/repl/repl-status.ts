import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { StatusFacts } from '../../ui/components/status-line.js';
import { readBoundedText } from '../../disk/bounded-file.js';
import { findModel } from '../../providers/models.js';
import { repositoryRoot } from '../open/context-files.js';
import type { SessionDesk } from './session-desk.js';
import type { Workbench } from '../open/workbench.js';

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

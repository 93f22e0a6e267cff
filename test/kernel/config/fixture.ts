import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadConfig, type LoadedConfig, type LoadOptions } from '../../../src/kernel/config/load.js';

/** A home with a repository in it; files are given by their path below the root, texts as they are, objects as JSON. */
export interface Place {
  readonly root: string;
  readonly userFile: string;
  readonly projectFile: string;
  load(options?: Partial<LoadOptions>): Promise<LoadedConfig>;
  write(path: string, content: unknown): string;
}

export function makePlace(): Place {
  const root = mkdtempSync(join(tmpdir(), 'agent-config-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  mkdirSync(join(root, 'repo', '.git'), { recursive: true });
  mkdirSync(join(root, 'repo', 'src', 'deep'), { recursive: true });
  const write = (path: string, content: unknown): string => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2));
    return file;
  };
  return {
    root,
    write,
    userFile: join(root, 'home', '.config', 'agent', 'config.json'),
    projectFile: join(root, 'repo', '.agent', 'config.json'),
    load: (options = {}) =>
      loadConfig({ env: {}, cwd: join(root, 'repo', 'src', 'deep'), home: join(root, 'home'), ...options }),
  };
}

export const userPath = 'home/.config/agent/config.json';
export const projectPath = 'repo/.agent/config.json';

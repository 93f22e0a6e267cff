import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { EditChecks, type EditFinding, type ProjectTrust } from '../../../src/features/diagnostics/check-edits.js';
import type { OpenCommand } from '../../../src/kernel/tools/process/lasting-process.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { openSandbox } from '../../../src/kernel/tools/sandbox/open-sandbox.js';
import { call, context, processes, registry, tree } from '../../kernel/tools/workbench.js';

const double = fileURLToPath(new URL('../../../fixtures/language-servers/scripted-server.mjs', import.meta.url));

/** How the double behaves; fixtures/language-servers/scripted-server.mjs describes it. */
export interface Behaviour {
  readonly ask?: 'typescript' | 'pull' | 'push';
  readonly log?: string | undefined;
  readonly logsSaves?: boolean;
  readonly holdUntil?: string;
  readonly ignores?: readonly string[];
  readonly exitOn?: string;
  readonly complains?: string;
  readonly writeOn?: string;
  readonly writes?: string;
  readonly times?: number;
  readonly joinsMs?: number;
  readonly asksFor?: readonly object[];
}

/** Installs the double below a folder as npm would, under the names of real servers, and returns the folder for PATH. */
export function installDouble(folder: string, ...names: readonly string[]): string {
  const modules = join(folder, 'node_modules');
  for (const inside of ['.bin', 'double', 'typescript/lib']) mkdirSync(join(modules, inside), { recursive: true });
  copyFileSync(double, join(modules, 'double', 'scripted-server.mjs'));
  writeFileSync(join(modules, 'typescript', 'lib', 'tsserver.js'), '');
  for (const name of names)
    writeFileSync(join(modules, '.bin', name), `#!/bin/sh\nexec node "\${0%/*}/../double/scripted-server.mjs" "$@"\n`, {
      mode: 0o755,
    });
  return join(modules, '.bin');
}

export interface ProjectOptions {
  readonly behaviour?: Behaviour;
  /** Folders for PATH, before one that has Node alone; relative ones are in the project. */
  readonly path?: readonly string[];
  readonly trust?: ProjectTrust;
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** The servers run in the sandbox. */
  readonly isConfined?: boolean;
}

/** A folder with files whose edits are checked. */
export function editedProject(files: Readonly<Record<string, string>>, options: ProjectOptions = {}) {
  const cwd = tree(files);
  const changed = {
    ...(options.signal ? { signal: options.signal } : {}),
    ...(options.isConfined ? { sandbox: 'workspace' as const } : {}),
  };
  const tools = registry();
  const notes: string[] = [];
  let onNote = (_note: string): void => undefined;
  const folders = (options.path ?? []).map((folder) => resolve(cwd, folder));
  const path = [...folders, withNodeAlone()].join(':');
  const checks = new EditChecks({
    open: options.isConfined ? confined(cwd) : processes.open,
    root: cwd,
    projectRoot: cwd,
    env: { PATH: path, HOME: cwd, SCRIPTED_SERVER: JSON.stringify(options.behaviour ?? {}) },
    registry: tools,
    trust: () => Promise.resolve(options.trust ?? 'nothing to trust'),
    waitMs: options.waitMs ?? 60_000,
    onLate: (_session, note) => {
      notes.push(note);
      onNote(note);
    },
  });
  onTestFinished(async () => {
    await checks.close();
  });
  return {
    cwd,
    checks,
    notes,
    /** Resolves with the next note. */
    note: () =>
      new Promise<string>((resolve) => {
        onNote = resolve;
      }),
    /** Edits a file by the tool, and returns what its check has found. */
    edit: async (file: string, before: string, after: string): Promise<EditFinding | null> => {
      const ctx = context(cwd, changed);
      const args = { path: file, old_string: before, new_string: after };
      const { changes, envelope } = await call('file_edit', args, context(cwd), tools);
      if (changes === undefined) throw new Error(JSON.stringify(envelope));
      return await checks.after(changes, ctx);
    },
    write: async (file: string, content: string): Promise<EditFinding | null> => {
      const { changes = [] } = await call('file_write', { path: file, content }, context(cwd), tools);
      return await checks.after(changes, context(cwd));
    },
    state: (name: string) => checks.states().find((state) => state.name === name),
  };
}

/** Returns a folder that has no program but Node: servers that this machine has are not found there. */
export function withNodeAlone(): string {
  const folder = tree();
  symlinkSync(process.execPath, join(folder, 'node'));
  return folder;
}

/** Starts processes in the sandbox of a workspace. */
function confined(workspace: string): OpenCommand {
  return async (request) => {
    const env = process.env;
    const opened = await openSandbox({ sandbox: 'workspace', workspace, home: tree(), env, isSecret: () => false });
    if (!opened.ok) throw new Error(opened.problem);
    const marker = { name: '_CONFINED_TEST', value: workspace };
    return await createProcessRunner({ watched: true, marker, confine: opened.confine }).open(request);
  };
}

/** The lines that the double has logged. */
export function logged(path: string): readonly Record<string, unknown>[] {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
}

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const binary = fileURLToPath(new URL('../../bin/agent.js', import.meta.url));

/** Where nothing listens. */
const nobody = '127.0.0.1:9';

/** A fresh home and a fresh workspace; removed when the test ends. */
export interface Place {
  readonly home: string;
  readonly work: string;
  readonly env: Record<string, string>;
  file(path: string, text: string): string;
}

export function place(files: Readonly<Record<string, string>> = {}): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-e2e-')));
  onTestFinished(() => {
    // A process that the test ended may still write its last file there.
    rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  });
  const home = join(root, 'home');
  const work = join(root, 'work');
  for (const folder of [home, work]) mkdirSync(folder);
  const file = (path: string, text: string): string => {
    const full = join(work, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  };
  for (const [path, text] of Object.entries(files)) file(path, text);
  return {
    home,
    work,
    file,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: home,
      AGENT_HOME: join(home, '.agent'),
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      // What listens at the usual ports of this machine is not asked.
      OLLAMA_HOST: nobody,
      LMSTUDIO_BASE_URL: `http://${nobody}/v1`,
    },
  };
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}
export interface RunOptions {
  /** Another build of the program. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly onStart?: (child: ChildProcess) => void;
  readonly onStdout?: (text: string, child: ChildProcess) => void;
}

/** Runs the built program to its end. Standard input is empty unless given. */
export async function agent(at: Place, args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = spawn(process.execPath, [options.program ?? binary, ...args], {
    cwd: at.work,
    env: { ...at.env, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  options.onStart?.(child);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    options.onStdout?.(stdout, child);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.stdin ?? '');
  return await new Promise((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** The objects of JSON lines. */
export function lines(text: string): readonly Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A scripted conversation for `--model offline/<path>`. */
export function script(at: Place, turns: readonly unknown[], more: Readonly<Record<string, unknown>> = {}): string {
  const path = join(dirname(at.work), `script-${Math.random().toString(36).slice(2)}.json`);
  writeFileSync(path, JSON.stringify({ turns, ...more }));
  return `offline/${path}`;
}

import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll } from 'vitest';

const root = fileURLToPath(new URL('../../../..', import.meta.url));

/** Opens the sandbox as the program does and runs commands in it, one after the other; prints one line of JSON for each
 * as it ends. */
const program = `
import { readFileSync } from 'node:fs';
import { createProcessRunner } from './src/kernel/tools/process/runner.js';
import { openSandbox } from './src/kernel/tools/sandbox/open-sandbox.js';
const { workspace, home, commands } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const opened = await openSandbox({ sandbox: 'workspace', workspace, home, env: process.env, isSecret: () => false });
if (!opened.ok) { console.log(JSON.stringify({ refused: opened.problem })); process.exit(1); }
const runner = createProcessRunner({ watched: true, confine: opened.confine, marker: { name: '_SANDBOX_TEST', value: process.env._SANDBOX_TEST ?? '' } });
for (const { command, sandbox = 'workspace', timeoutMs = 20_000 } of commands) {
  let text = '';
  const result = await runner.run({
    file: 'bash', args: ['-c', command], cwd: workspace, env: process.env as Record<string, string>, sandbox, signal: new AbortController().signal, timeoutMs,
    maxTotalBytes: 16_777_216, joined: true, onOutput: (chunk) => { text += chunk.toString('utf8'); if (command.startsWith('# live')) process.stderr.write(chunk); },
  });
  console.log(JSON.stringify({ command, text, result }));
}
runner.killNow();
`;

export interface Step {
  readonly command: string;
  readonly sandbox?: 'off' | 'workspace' | 'read-only';
  readonly timeoutMs?: number;
}
export interface StepResult {
  readonly command: string;
  readonly text: string;
  readonly result: {
    readonly ended: string;
    readonly exitCode: number;
    readonly signal: string | null;
    readonly background: number;
  };
}
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}
export interface Request {
  readonly workspace: string;
  readonly home: string;
  readonly commands: readonly Step[];
  readonly env?: Readonly<Record<string, string>>;
}

const bubblewrap: string = 'bwrap';
/** Whether there is a bubblewrap here that can be tried. */
export const bubblewrapWorks =
  spawnSync(bubblewrap, ['--ro-bind', '/', '/', '--unshare-user', '--unshare-net', 'true']).status === 0;

/** Who the probes are run as: ourselves, and as root also somebody ordinary. */
export const accounts: readonly Account[] =
  process.getuid?.() === 0
    ? [
        { name: 'root', uid: 0, gid: 0 },
        { name: 'an ordinary user', uid: 65_534, gid: 65_534 },
      ]
    : [{ name: 'an ordinary user', uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }];

/** Called at the top of a test file: compiles the program before its tests and removes it after them. The result starts
 * it on a request, as an account. */
export function sandboxProcesses(): {
  start(request: Request, account: Account): ChildProcess;
  run(request: Request, account: Account): Promise<readonly StepResult[]>;
} {
  let folder = '';
  let count = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'agent-sandbox-'));
    chmodSync(folder, 0o755);
    await build({
      stdin: { contents: program, resolveDir: root, loader: 'ts', sourcefile: 'child.ts' },
      absWorkingDir: root,
      outfile: join(folder, 'child.mjs'),
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      logLevel: 'error',
      banner: {
        js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
      },
    });
  });
  afterAll(() => {
    if (folder !== '') rmSync(folder, { recursive: true, force: true });
  });
  const start = (request: Request, account: Account): ChildProcess => {
    const file = join(folder, `request-${count++}.json`);
    writeFileSync(file, JSON.stringify(request), { mode: 0o644 });
    const own = process.getuid?.() === account.uid ? {} : { uid: account.uid, gid: account.gid };
    return spawn(process.execPath, [join(folder, 'child.mjs'), file], {
      cwd: folder,
      ...own,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: request.home, ...request.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  };
  return {
    start,
    async run(request, account) {
      const child = start(request, account);
      let text = '';
      let complaint = '';
      child.stdout?.on('data', (chunk: Buffer) => {
        text += chunk.toString('utf8');
      });
      child.stderr?.on('data', (chunk: Buffer) => {
        complaint += chunk.toString('utf8');
      });
      await new Promise((resolve) => {
        child.once('close', resolve);
      });
      const lines = text.split('\n').filter((line) => line !== '');
      if (lines.length !== request.commands.length)
        throw new Error(`${lines.length} of ${request.commands.length} commands ran: ${text}${complaint}`);
      return lines.map((line) => JSON.parse(line) as StepResult);
    },
  };
}

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';
import { type Envelope, isError } from '../../kernel/core/envelope.js';
import { isRecord, type Json } from '../../kernel/core/json.js';
import { type TerminalPrograms, terminalPrograms } from '../../kernel/console/terminal-programs-port.js';
import { headBytes } from '../../kernel/core/text.js';
import { runInteractive } from '../../kernel/tools/process/runner.js';
import type { RunShell, ShellRun } from '../../ui/repl-options.js';
import type { Run } from '../../app/create-session.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import type { ReplSessions } from './current-session.js';

const maxTold = 32_768;

type ShellRunOptions = Parameters<RunShell>[1] & {
  /** Runs a command that needs the terminal there; null: on the terminal of this process. */
  readonly runsProgram?: TerminalPrograms['run'] | null;
};

/** The user's own commands that still run: they are recorded before the session is closed. */
export interface OwnRuns {
  follow(run: Promise<ShellRun>): Promise<ShellRun>;
  ended(): Promise<void>;
}

export function createOwnRuns(): OwnRuns {
  const open = new Set<Promise<unknown>>();
  return {
    follow: (run) => {
      open.add(run);
      const done = (): void => {
        open.delete(run);
      };
      run.then(done, done);
      return run;
    },
    ended: async () => {
      await Promise.allSettled(open);
    },
  };
}

/** Returns what a command had printed before it was ended. */
function printedBefore(details: Json | undefined): string {
  const output = isRecord(details) && typeof details.output === 'string' ? details.output : '';
  return output === '' || output.endsWith('\n') ? output : `${output}\n`;
}

/** Returns the end of a command. A command that ended has an exit code; one that continues in the background has only
 * the number of its job. */
function endOf(envelope: Envelope): ShellRun {
  if (isError(envelope)) return { exitCode: null };
  const { exit_code: exitCode, job } = envelope;
  if (typeof exitCode === 'number') return { exitCode };
  return { exitCode: null, ...(typeof job === 'number' ? { job } : {}) };
}

/** Runs `!command` of the user, without a permission prompt. It is recorded, and the model gets it unless it was typed
 * with `!!`. */
export async function runUserShell(
  run: Run,
  sessions: ReplSessions,
  command: string,
  options: ShellRunOptions,
): Promise<ShellRun> {
  const tool = run.toolbox.registry.get('bash');
  if (!tool) {
    options.onOutput('Commands are disabled in this session (tools.exec, --tools).\n');
    return { exitCode: null };
  }
  const programs = run.toolbox.parts.find(terminalPrograms);
  const need = options.onTerminal ? 'screen' : ((await programs?.needs(command)) ?? null);
  if (programs && need !== null) {
    const ended = await options.lend(
      async () => await (options.runsProgram ?? programs.run.bind(programs))(command, need, options.signal),
    );
    await recordRun(sessions, command, { ...ended, ending: 'not started' }, options);
    return ended;
  }
  const { session } = sessions.current();
  const { config } = run.settings;
  const outcome = await tool.run(
    { command, timeout_seconds: config.exec.maxTimeoutS },
    {
      cwd: session.cwd,
      session,
      signal: options.signal,
      sandbox: run.policy.sandbox(),
      knownFiles: new Map(),
      eventOutput: () => null,
      limits: { timeoutMs: null, maxOutputBytes: config.limits.maxOutputBytes },
      progress: options.onOutput,
      outputMask: sessions.current().secrets.stream(),
    },
  );
  const { envelope } = outcome;
  const output = isError(envelope) ? `${printedBefore(envelope.details)}${envelope.error}` : envelope.output;
  const ended = endOf(envelope);
  const { exitCode } = ended;
  const stopped = options.signal.aborted ? 'stopped by the user' : 'failed';
  const ending = ended.job === undefined ? stopped : `moved to the background as job ${ended.job}`;
  await recordRun(sessions, command, { exitCode, output, ending }, options);
  return ended;
}

interface RecordedRun {
  readonly exitCode: number | null;
  /** Null: it was not recorded. */
  readonly output: string | null;
  /** The end of a command without an exit code. */
  readonly ending: string;
}

/** Records a command of the user; the model gets it unless it was typed with `!!`. */
async function recordRun(
  sessions: ReplSessions,
  command: string,
  { exitCode, output, ending }: RecordedRun,
  { sendToModel }: Pick<ShellRunOptions, 'sendToModel'>,
): Promise<void> {
  const { session } = sessions.current();
  if (!sendToModel) {
    await session.append({ kind: 'shell', content: output ?? '', data: { command, exit_code: exitCode } });
    return;
  }
  const told = [
    '[The user ran a command]',
    `$ ${command}`,
    output === null ? '(in the terminal; its output is not recorded)' : headBytes(output, maxTold),
    `[${exitCode === null ? ending : `exit code ${exitCode}`}]`,
  ].join('\n');
  if (session.busy()) session.enqueue({ text: told, when: 'steer' });
  else await session.append({ kind: 'user', content: told, data: { note: true } });
}

/** Runs an editor on a terminal. Resolves to its exit code. */
export type RunsEditor = (command: readonly [string, ...string[]], cwd: string) => Promise<number | null>;

/** Runs it on the terminal of this process. */
export const runsEditorHere: RunsEditor = async ([file, ...args], cwd) => await runInteractive(file, args, cwd);

/** Opens a file in `$VISUAL` or `$EDITOR` (else vi). Returns the exit code of the editor. */
export async function runEditor(
  { env, cwd }: Pick<Settings, 'env' | 'cwd'>,
  path: string,
  runs: RunsEditor,
): Promise<number | null> {
  const [file = 'vi', ...args] = (env.VISUAL || env.EDITOR || 'vi').split(/\s+/).filter((word) => word !== '');
  return await runs([file, ...args, path], cwd);
}

/** Edits `text` in `$VISUAL` or `$EDITOR` (else vi), in a private file. Returns null where the editor failed or changed
 * nothing. */
export async function editExternally(
  settings: Pick<Settings, 'config' | 'env' | 'cwd'>,
  text: string,
  runs: RunsEditor,
): Promise<string | null> {
  ensurePrivateDirectory(settings.config.files.data);
  const folder = await mkdtemp(join(settings.config.files.data, 'edit-'));
  try {
    const path = join(folder, 'message.md');
    await writeFile(path, text, { mode: 0o600 });
    if ((await runEditor(settings, path, runs)) !== 0) return null;
    const edited = (await readFile(path, 'utf8')).replace(/\n$/, '');
    return edited === text ? null : edited;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

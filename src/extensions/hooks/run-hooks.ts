import { isError } from '../../core/envelope.js';
import type { HookData } from '../../core/event.js';
import type { HookAnswer, Hooks, HookScene, Occasion, SessionSource } from '../../core/hooks.js';
import { spelledLine } from '../../core/text.js';
import { shellEnvironment } from '../../tools/bash.js';
import type { ProcessResult, ProcessRunner } from '../../tools/process/runner.js';
import { hookInput, subjectsOf } from './claude-dialect.js';
import { type HookResult, type OneAnswer, readAnswer, together } from './given-answer.js';
import { type Hook, matches, type NamedFiles, namedFiles, withProject } from './listed-hooks.js';

export interface HookHost {
  readonly processes: Pick<ProcessRunner, 'run'>;
  /** Our own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names of variables that no child process gets (provider keys). */
  readonly protectedEnv: readonly string[];
  /** The folder of the project. */
  readonly projectDir: string;
  /** The approval mode, as Claude Code names it. */
  readonly mode: () => string;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

const maxOutputBytes = 4 * 1024 * 1024;

/** Makes the hooks of a session from those of the user. Their processes are started when something happens. */
export function createHooks(hooks: readonly Hook[], host: HookHost, source: SessionSource): Hooks {
  const events = new Set(hooks.map(({ event }) => event));
  return {
    source,
    listens: (event) => events.has(event),
    ask: async (occasion, scene, signal) => {
      const names = subjectsOf(occasion);
      const meant = hooks.filter(
        ({ event, matcher }) => event === occasion.event && (names.length === 0 || matches(matcher, names)),
      );
      const asked = await Promise.all(distinct(meant).map((hook) => askOne(hook, host, { occasion, scene }, signal)));
      return {
        ...together(asked.map(({ answer }) => answer)),
        runs: asked.map(({ run }) => run),
        messages: toldOf(asked),
      };
    },
  };
}

/** A command that two matchers name runs once. */
function distinct(hooks: readonly Hook[]): readonly Hook[] {
  const keys = hooks.map(({ command, args }) => JSON.stringify([command, args]));
  return hooks.filter((_hook, index) => keys.indexOf(keys[index] ?? '') === index);
}

interface Happening {
  readonly occasion: Occasion;
  readonly scene: HookScene;
}

interface Asked {
  readonly hook: Hook;
  readonly answer: OneAnswer;
  readonly run: HookData;
}

async function askOne(hook: Hook, host: HookHost, { occasion, scene }: Happening, signal: AbortSignal): Promise<Asked> {
  const files = namedFiles(hook, host.projectDir);
  const input = hookInput(occasion, scene, { mode: host.mode(), transcript: '' });
  const startedAt = host.now();
  const result = await runOne(hook, host, { input: JSON.stringify(input), cwd: scene.cwd }, signal);
  const durationMs = Math.max(0, Math.round(host.now() - startedAt));
  const answer = strict(hook, readAnswer(occasion, unlessMissing(result, files)));
  return { hook, answer, run: runData(hook, { occasion, result, answer, durationMs, files }) };
}

/** Exit code 2 of an interpreter that does not find its script is no denial. Source: anthropics/claude-code#80697. */
function unlessMissing(result: HookResult, { missing }: NamedFiles): HookResult {
  const gone = result.exit === 0 ? undefined : missing.find((word) => result.stderr.includes(word));
  return gone === undefined ? result : { ...result, failure: `its script ${gone} is missing` };
}

/** What is required and fails denies. */
function strict(hook: Hook, answer: OneAnswer): OneAnswer {
  if (answer.failed === null || !hook.required) return answer;
  return { ...answer, decision: 'deny', reason: `the required hook ${hook.command} failed: ${answer.failed}` };
}

interface Ran {
  readonly occasion: Occasion;
  readonly result: HookResult;
  readonly answer: OneAnswer;
  readonly durationMs: number;
  readonly files: NamedFiles;
}

function runData(hook: Hook, { occasion, result, answer, durationMs, files }: Ran): HookData {
  const reason = answer.failed ?? (answer.stop || answer.reason);
  return {
    event: hook.event,
    command: [hook.command, ...(hook.args ?? [])].join(' '),
    sha256: files.sha256,
    exit: result.exit,
    duration_ms: durationMs,
    decision: recordedDecision(hook, answer),
    ...(reason === '' ? {} : { reason }),
    ...('call' in occasion ? { tool_call_id: occasion.call.id } : {}),
    ...(answer.args === null ? {} : { updated_input: answer.args }),
    ...('envelope' in occasion && answer.output !== null && !isError(occasion.envelope)
      ? { original_output: occasion.envelope.output }
      : {}),
  };
}

function recordedDecision(hook: Hook, answer: OneAnswer): HookData['decision'] {
  if (answer.failed !== null && !hook.required) return 'failed';
  return answer.stop === null ? answer.decision : 'stop';
}

function toldOf(asked: readonly Asked[]): HookAnswer['messages'] {
  return asked.flatMap(({ hook, answer }) => [
    ...(answer.failed === null
      ? []
      : [
          {
            level: 'warn' as const,
            message: `The hook ${spelledLine(hook.command)} (${hook.event}) failed: ${spelledLine(answer.failed)}`,
          },
        ]),
    ...(answer.message === null ? [] : [{ level: 'info' as const, message: answer.message }]),
  ]);
}

interface HookRun {
  readonly input: string;
  readonly cwd: string;
}

/** Runs a hook with its input on standard input. Standard input of a command is empty, so it comes through descriptor
 * 3. */
async function runOne(hook: Hook, host: HookHost, { input, cwd }: HookRun, signal: AbortSignal): Promise<HookResult> {
  const printed: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = { stdout: [], stderr: [] };
  const words = hook.args
    ? [hook.command, ...hook.args].map((word) => withProject(word, host.projectDir))
    : ['sh', '-c', hook.command];
  const result = await host.processes.run({
    file: 'sh',
    args: ['-c', 'exec "$@" <&3 3<&-', 'sh', ...words],
    cwd,
    env: { ...shellEnvironment(host.env, host.protectedEnv), CLAUDE_PROJECT_DIR: host.projectDir },
    sandbox: 'off',
    signal,
    timeoutMs: hook.timeoutMs,
    maxTotalBytes: maxOutputBytes,
    input: Buffer.from(input),
    onOutput: (chunk, stream) => {
      printed[stream].push(Buffer.from(chunk));
    },
  });
  return {
    exit: result.ended === 'exit' ? result.exitCode : null,
    failure: failureOf(result, hook.timeoutMs),
    stdout: Buffer.concat(printed.stdout).toString('utf8'),
    stderr: Buffer.concat(printed.stderr).toString('utf8'),
  };
}

function failureOf(result: ProcessResult, timeoutMs: number): string | null {
  switch (result.ended) {
    case 'exit':
      return result.signal === null ? null : `it was ended by ${result.signal}`;
    case 'timeout':
      return `it took longer than ${timeoutMs / 1000} s`;
    case 'cancelled':
      return 'it was cancelled';
    case 'output_limit':
      return 'it printed more than 4 MiB';
    case 'not_started':
      return `it could not be started: ${result.error}`;
    default:
      return result satisfies never;
  }
}

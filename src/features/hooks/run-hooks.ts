import { isDeepStrictEqual } from 'node:util';
import { isError } from '../../kernel/core/envelope.js';
import type { HookData } from '../../kernel/core/event.js';
import type { HookAnswer, HookedAgent, Hooks, HookScene, Occasion, SessionSource } from '../../kernel/core/hooks.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { spelledLine } from '../../kernel/core/text.js';
import { shellEnvironment } from '../../kernel/tools/bash.js';
import type { ProcessResult, ProcessRunner } from '../../kernel/tools/process/runner.js';
import { hookInput, subjectsOf } from '../../kernel/tools/claude-dialect.js';
import { type HookResult, type OneAnswer, readAnswer } from './hook-answers.js';
import { parseCondition } from './hook-condition.js';
import { createChangeWatch, type SettingsSource } from './changed-files.js';
import type { PostHook } from './http-hooks.js';
import { askModelHook } from './model-hooks.js';
import { folderVariables, type Hook, matches, type NamedFiles, namedFiles, withFolders } from './listed-hooks.js';
import type { Transcripts } from '../../kernel/tools/transcripts.js';

export interface HookHost {
  readonly processes: Pick<ProcessRunner, 'run'>;
  /** Our own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names of variables that no child process gets (provider keys). */
  readonly protectedEnv: readonly string[];
  readonly transcripts: Pick<Transcripts, 'write'>;
  readonly post: PostHook;
  /** Files whose changes are reported. */
  readonly settingsFiles: readonly SettingsSource[];
  /** The approval mode, as Claude Code names it. */
  readonly mode: () => string;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

const maxOutputBytes = 4 * 1024 * 1024;

/** A hook that may run as long as it and the files that it names are what they were. */
export interface AllowedHook extends Hook {
  /** Of both, as they were when they were allowed (hex). Null: they need trust and have none. */
  readonly allowed: string | null;
}

/** Takes these hooks as they are now; `mayRun` is false for one that needs trust and has none. */
export function allowedAsTheyAre(hooks: readonly Hook[], mayRun: (hook: Hook) => boolean): readonly AllowedHook[] {
  return hooks.map((hook) => ({ ...hook, allowed: mayRun(hook) ? namedFiles(hook).sha256 : null }));
}

/** The start of a session, and the sub-agent whose session it is. */
interface Beginning {
  readonly source: SessionSource;
  readonly agent?: HookedAgent | undefined;
}

/** Makes the hooks of a session. Their processes are started when something happens. */
export function createHooks(
  hooks: readonly AllowedHook[],
  host: HookHost,
  { source, agent }: Beginning = { source: 'startup' },
): Hooks {
  const events = new Set(hooks.map(({ event }) => event));
  const skippedOnce = new Set<string>();
  const inBackground = new Set<Promise<void>>();
  const keep = (work: Promise<void>): void => {
    const kept = work.finally(() => inBackground.delete(kept));
    inBackground.add(kept);
  };
  return {
    source,
    ...(agent ? { agent } : {}),
    listens: (event) => events.has(event),
    changes: createChangeWatch(host.settingsFiles, (event) => events.has(event)),
    ask: async (occasion, scene, signal) => {
      const names = subjectsOf(occasion, agent);
      const meant = hooks.filter(
        (hook) =>
          hook.event === occasion.event &&
          (names.length === 0 || matches(hook.matcher, names)) &&
          fitsCondition(hook, occasion, scene.cwd),
      );
      const each = await Promise.all(
        distinct(meant).map((hook) => askOne(hook, host, { occasion, scene, agent, keep }, signal)),
      );
      const asked = each.filter((one) => one !== null);
      return {
        ...together(asked.map(({ answer }) => answer)),
        runs: asked.map(({ run }) => run),
        messages: [
          ...toldOf(asked.filter((one) => !one.isSkipped || isFirst(skippedOnce, one.run.sha256))),
          ...overruled(asked, 'input', ({ args }) => args),
          ...overruled(asked, 'output', ({ output }) => output),
        ],
      };
    },
    finish: async (signal) => {
      if (inBackground.size === 0 || signal.aborted) return;
      const isLate = new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      await Promise.race([Promise.all(inBackground), isLate]);
    },
  };
}

function fitsCondition({ condition, from }: Hook, occasion: Occasion, cwd: string): boolean {
  if (condition === undefined) return true;
  return 'call' in occasion && parseCondition(condition)?.({ call: occasion.call, cwd, from }) === true;
}

/** Names the hooks whose new input or output of a call another hook replaced with a different one. */
function overruled(
  asked: readonly Asked[],
  what: 'input' | 'output',
  given: (answer: OneAnswer) => unknown,
): HookAnswer['messages'] {
  const changing = asked.filter(({ answer }) => given(answer) !== null);
  const last = changing.at(-1);
  const lost = changing.filter(({ answer }) => last && !isDeepStrictEqual(given(answer), given(last.answer)));
  if (!last || lost.length === 0) return [];
  const names = lost.map(({ hook }) => spelledLine(hook.command)).join(', ');
  const message =
    `${changing.length} hooks changed the ${what} of one call (${last.hook.event}). ` +
    `The last one applies, ${spelledLine(last.hook.command)}; dropped: ${names}.`;
  return [{ level: 'warn', message }];
}

function isFirst(seen: Set<string>, key: string): boolean {
  const before = seen.size;
  return seen.add(key).size > before;
}

/** A command or an address that two matchers name runs once. */
function distinct(hooks: readonly AllowedHook[]): readonly AllowedHook[] {
  const keys = hooks.map(({ type, command, args, headers, from }) =>
    JSON.stringify([type, command, args, headers, from.directory]),
  );
  return hooks.filter((_hook, index) => keys.indexOf(keys[index] ?? '') === index);
}

interface Happening {
  readonly occasion: Occasion;
  readonly scene: HookScene;
  readonly agent: HookedAgent | undefined;
  /** Takes charge of a hook that continues in the background. */
  readonly keep: (work: Promise<void>) => void;
}

interface Asked {
  readonly hook: Hook;
  /** It was not started. That is said once. */
  readonly isSkipped: boolean;
  readonly answer: OneAnswer;
  readonly run: HookData;
}

/** Returns null for a hook that continues in the background; its answer goes to `scene.later`. */
async function askOne(
  hook: AllowedHook,
  host: HookHost,
  { occasion, scene, agent, keep }: Happening,
  signal: AbortSignal,
): Promise<Asked | null> {
  const files = namedFiles(hook);
  const { transcripts } = host;
  const startedAt = host.now();
  const input = (): string =>
    JSON.stringify(
      hookInput(occasion, scene, {
        mode: host.mode(),
        agent,
        transcript: (...of) => transcripts.write(...of),
      }),
    );
  const finished = (result: HookResult, isLate: boolean): Asked => {
    const durationMs = Math.max(0, Math.round(host.now() - startedAt));
    const read = readAnswer(occasion, unlessMissing(result, files));
    const answer = isLate ? lateAnswer(hook, read, result) : strict(hook, read);
    const run = runData(hook, { occasion, result, answer, durationMs, files });
    return { hook, isSkipped: result === skip, answer, run };
  };
  const skip = skipped(hook, files);
  if (skip) return finished(skip, false);
  if (hook.type === 'prompt' || hook.type === 'agent')
    return finished(await askModelHook(hook, input(), scene, signal), false);
  const { ended, detached } = startOne(hook, host, input(), signal);
  const result = await Promise.race([ended, detached]);
  if (result !== null) return finished(result, false);
  keep(
    ended.then((late) => {
      const asked = finished(late, true);
      scene.later?.({ ...together([asked.answer]), runs: [asked.run], messages: toldOf([asked]) });
    }),
  );
  return null;
}

/** Returns the answer of a hook that ran in the background. It can no longer decide anything: only the model and the
 * user read it. */
function lateAnswer({ background, event }: Hook, answer: OneAnswer, { exit, stdout, stderr }: HookResult): OneAnswer {
  const report = exit === 2 ? stderr.trim() || stdout.trim() : '';
  const nothing = { decision: 'none', args: null, output: null, headers: {}, form: null, stop: null } as const;
  const undecided = { ...answer, ...nothing };
  if (background === 'rewake' && report !== '') {
    const context = [`[A hook that ran in the background (${event}) reports:]\n${report.slice(0, maxReport)}`];
    return { ...undecided, failed: null, context };
  }
  const decided = answer.decision !== 'none' || answer.stop !== null || answer.args !== null || answer.output !== null;
  const note = 'returned a decision without effect, because it ran in the background';
  return decided ? { ...undecided, notes: [...answer.notes, note] } : undecided;
}

const maxReport = 10_000;

/** A program that is not what was allowed is not started. */
function skipped({ allowed }: AllowedHook, { sha256 }: NamedFiles): HookResult | null {
  if (allowed === sha256) return null;
  const failure =
    allowed === null
      ? 'it starts a file of this project, which is not trusted (review it with agent config trust)'
      : 'a file that it names has changed since the session started';
  return { exit: null, failure, stdout: '', stderr: '' };
}

/** Exit code 2 of an interpreter that does not find its script is no denial. Source: anthropics/claude-code#80697. */
function unlessMissing(result: HookResult, { missing }: NamedFiles): HookResult {
  const gone = result.exit === 0 ? undefined : missing.find((word) => result.stderr.includes(word));
  return gone === undefined ? result : { ...result, failure: `its script ${gone} is missing` };
}

/** Denies if a required hook has failed. */
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
    ...endOf(result),
    duration_ms: durationMs,
    decision: recordedDecision(hook, answer),
    ...(reason === '' ? {} : { reason }),
    ...('call' in occasion ? { tool_call_id: occasion.call.id } : {}),
    ...(answer.args === null ? {} : { updated_input: answer.args }),
    ...(Object.keys(answer.headers).length === 0 ? {} : { added_headers: Object.keys(answer.headers) }),
    ...('envelope' in occasion && answer.output !== null && !isError(occasion.envelope)
      ? { original_output: occasion.envelope.output }
      : {}),
  };
}

function endOf({ exit, status }: HookResult): Pick<HookData, 'exit' | 'status'> {
  return status === undefined ? { exit } : { exit: null, status };
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
    ...answer.notes.map((note) => ({
      level: 'warn' as const,
      message: `The hook ${spelledLine(hook.command)} (${hook.event}) ${spelledLine(note)}`,
    })),
    ...(answer.message === null ? [] : [{ level: 'info' as const, message: answer.message }]),
  ]);
}

interface Started {
  readonly ended: Promise<HookResult>;
  /** Resolves when nothing has to wait for it any more. */
  readonly detached: Promise<null>;
}

/** In the background a hook has no time limit but the end of the program. */
const noLimitMs = 30 * 24 * 3600 * 1000;

/** Starts a hook. It runs in the background if its entry says so, or the first line that it prints:
 * `{"async": true}`. */
function startOne(hook: Hook, host: HookHost, input: string, signal: AbortSignal): Started {
  const running = new AbortController();
  const onAbort = (): void => {
    running.abort();
  };
  const isDetached = hook.background !== undefined;
  if (!isDetached) signal.addEventListener('abort', onAbort, { once: true });
  if (!isDetached && signal.aborted) onAbort();
  const release = (): void => {
    signal.removeEventListener('abort', onAbort);
  };
  let detach = (): void => {};
  const detached = new Promise<null>((resolve) => {
    detach = () => {
      release();
      resolve(null);
    };
  });
  if (isDetached) detach();
  const ended =
    hook.type === 'http'
      ? host.post(hook, input, running.signal)
      : runOne(hook, host, { input, signal: running.signal, detach, isDetached });
  void ended.then(release, release);
  return { ended, detached };
}

/** Runs a command line in bash, which those of Claude Code may expect, or in sh where there is none. Bash reads the
 * .bashrc of the user where standard input is a socket, unless `--norc` is given. */
const inBash = 'if command -v bash >/dev/null; then exec bash --norc -c "$0" bash; fi; exec sh -c "$0" sh';

interface Run {
  readonly input: string;
  readonly signal: AbortSignal;
  readonly detach: () => void;
  readonly isDetached: boolean;
}

/** Runs a hook with its input on standard input. Standard input of a command is empty, so it comes through descriptor
 * 3. */
async function runOne(hook: Hook, host: HookHost, run: Run): Promise<HookResult> {
  const { directory } = hook.from;
  const printed: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = { stdout: [], stderr: [] };
  const words = hook.args
    ? [hook.command, ...hook.args].map((word) => withFolders(word, hook.from))
    : ['sh', '-c', inBash, hook.command];
  let isOpen = true;
  const result = await host.processes.run({
    file: 'sh',
    args: ['-c', 'exec "$@" <&3 3<&-', 'sh', ...words],
    cwd: directory,
    env: { ...shellEnvironment(host.env, host.protectedEnv), ...folderVariables(hook.from) },
    sandbox: 'off',
    signal: run.signal,
    timeoutMs: run.isDetached ? noLimitMs : hook.timeoutMs,
    maxTotalBytes: maxOutputBytes,
    input: Buffer.from(run.input),
    onOutput: (chunk, stream) => {
      printed[stream].push(Buffer.from(chunk));
      if (!isOpen || stream !== 'stdout') return;
      const start = decodeOutput(Buffer.concat(printed.stdout));
      isOpen = start.length < maxFirstLine && !start.includes('\n');
      if (goesAsync(start)) run.detach();
    },
  });
  const stdout = decodeOutput(Buffer.concat(printed.stdout));
  return {
    exit: result.ended === 'exit' ? result.exitCode : null,
    failure: failureOf(result, hook.timeoutMs),
    stdout: goesAsync(stdout) ? stdout.replace(/^.*\n?/, '') : stdout,
    stderr: Buffer.concat(printed.stderr).toString('utf8'),
  };
}

const maxFirstLine = 4096;

/** Returns true if the first line is an object with `"async": true`. */
function goesAsync(text: string): boolean {
  const line = text.slice(0, maxFirstLine).split('\n', 1)[0]?.trim() ?? '';
  if (!line.startsWith('{') || !line.endsWith('}')) return false;
  try {
    const value: unknown = parseJson(line);
    return isRecord(value) && value['async'] === true;
  } catch {
    return false;
  }
}

/** Windows programs write UTF-16, with a mark that says so. */
function decodeOutput(bytes: Buffer): string {
  return bytes.toString(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf16le' : 'utf8');
}

function failureOf(result: ProcessResult, timeoutMs: number): string | null {
  switch (result.ended) {
    case 'exit':
      return result.signal === null ? null : `it was killed by ${result.signal}`;
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

const strictness = ['none', 'allow', 'ask', 'deny'] as const;

/** Puts the answers of one occasion together: the strictest decision counts, with the reasons of those that made it. */
function together(answers: readonly OneAnswer[]): Omit<HookAnswer, 'runs' | 'messages'> {
  const decision = strictness.findLast((level) => answers.some((answer) => answer.decision === level)) ?? 'none';
  const reasons = answers.flatMap((answer) => (answer.decision === decision && answer.reason ? [answer.reason] : []));
  const firstOf = <T>(given: (answer: OneAnswer) => T | null): T | null =>
    answers.map(given).find((value) => value !== null) ?? null;
  const lastOf = <T>(given: (answer: OneAnswer) => T | null): T | null =>
    answers.map(given).findLast((value) => value !== null) ?? null;
  return {
    decision,
    reason: decision === 'none' ? '' : reasons.join('\n'),
    args: lastOf(({ args }) => args),
    headers: Object.fromEntries(answers.flatMap(({ headers }) => Object.entries(headers))),
    form: firstOf(({ form }) => form),
    output: lastOf(({ output }) => output),
    worktree: firstOf(({ worktree }) => worktree),
    context: answers.flatMap(({ context }) => context),
    stop: firstOf(({ stop }) => stop),
  };
}

import { parseJson } from '../../kernel/core/json.js';
import { dirname } from 'node:path';
import { isRecord, type Json } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { ToolArgs, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { shellEnvironment } from '../../kernel/tools/bash.js';
import { type DefinedTool, failed } from '../../kernel/tools/define-tool.js';
import { createOutputCollector, createProgressStream } from '../../kernel/tools/process/output-collector.js';
import type { ProcessResult, ProcessRunner } from '../../kernel/tools/process/runner.js';
import type { CompileSchema } from '../../kernel/tools/registry.js';
import { callIdOf, facts, outcomeOf, type ReturnsCheck, returnsCheck } from '../../kernel/tools/authored-tool.js';
import { readToolFile, type ToolFile } from './tool-files.js';

type Program = Extract<ToolFile, { readonly kind: 'program' }>;

export interface ProgramHost {
  readonly processes: ProcessRunner;
  /** Our own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Names of variables that no child process gets (provider keys). */
  readonly protectedEnv: readonly string[];
  /** For a tool without a limit of its own. */
  readonly timeoutMs: number;
}

const maxTotalBytes = 256 * 1024 * 1024;
/** JSON has to be read whole before anything can be cut from it. */
const maxJsonBytes = 8 * 1024 * 1024;
const maxErrorBytes = 64 * 1024;
const maxShownErrorBytes = 4096;

/** Makes a tool of a program: it gets the arguments as JSON on standard input, prints its result on standard output,
 * and what it prints on standard error is shown while it runs. It runs while its files are as allowed.
 * Throws where a schema cannot be used. */
export function programTool(file: Program, host: ProgramHost, compile: CompileSchema): DefinedTool {
  const { made, check } = programFacts(file, compile);
  return { ...made, run: (args, ctx) => runProgram(file, host, { args, ctx, check }) };
}

/** Throws where a schema cannot be used. */
export function programFacts({ descriptor }: Program, compile: CompileSchema) {
  const made = facts(descriptor, descriptor.input_schema);
  compile(made.input_schema);
  return { made, check: returnsCheck(descriptor.returns, compile) };
}

interface Call {
  readonly args: ToolArgs;
  readonly ctx: ToolContext;
  readonly check: ReturnsCheck;
}

async function runProgram(file: Program, host: ProgramHost, { args, ctx, check }: Call): Promise<ToolOutcome> {
  const { name, command, returns } = file.descriptor;
  const folder = dirname(file.path);
  const now = readToolFile(file.path);
  if (now.kind !== 'program' || now.sha256 !== file.sha256)
    return failed(
      'permission_denied',
      `The files of ${name} have changed since they were allowed. ` +
        `The user can allow them again: agent tools add ${folder}`,
    );
  const isText = returns === 'string';
  const printed = createOutputCollector(isText ? ctx.limits.maxOutputBytes : maxJsonBytes);
  const said = createOutputCollector(maxErrorBytes);
  const progress = createProgressStream(
    said,
    (chunk) => {
      ctx.progress(chunk);
    },
    ctx.outputMask,
  );
  const timeoutMs = ctx.limits.timeoutMs ?? host.timeoutMs;
  const result = await host.processes.run({
    // Standard input of a command is empty; the arguments come through descriptor 3.
    file: 'sh',
    args: ['-c', 'exec "$@" <&3 3<&-', 'sh', ...command],
    cwd: ctx.cwd,
    env: { ...shellEnvironment(host.env, host.protectedEnv), AGENT_CALL_ID: callIdOf(ctx) },
    shows: [folder],
    sandbox: ctx.sandbox,
    signal: ctx.signal,
    timeoutMs,
    maxTotalBytes,
    input: Buffer.from(JSON.stringify(args)),
    onOutput(chunk, stream) {
      (stream === 'stdout' ? printed : said).add(chunk);
      if (stream === 'stderr') progress.moved();
    },
  });
  progress.end();
  const errors = said.tail(maxShownErrorBytes).toString('utf8').toWellFormed();
  const failure = failureOf(name, result, { errors, timeoutMs });
  const { parts, ...size } = printed.collected();
  return isText
    ? (failure ?? textOutcome(name, parts.join(''), size))
    : jsonOutcome(name, size.truncated ? '' : parts.join(''), { check, failure, isWhole: result.ended === 'exit' });
}

function textOutcome(
  name: string,
  text: string,
  { truncated, totalBytes }: { readonly truncated: boolean; readonly totalBytes: number },
): ToolOutcome {
  const output = text.replace(/\n$/, '');
  return outcomeOf(name, truncated ? { output, truncated, total_bytes: totalBytes } : output, () => null);
}

interface Ended {
  readonly check: ReturnsCheck;
  readonly failure: ToolOutcome | null;
  /** The program came to its end by itself. */
  readonly isWhole: boolean;
}

function jsonOutcome(name: string, text: string, { check, failure, isWhole }: Ended): ToolOutcome {
  const value = valueOf(text);
  // A program that fails may say why as `{"error": …}`.
  const tellsWhy = isWhole && isRecord(value) && typeof value.error === 'string';
  if (failure && !tellsWhy) return failure;
  return value === undefined
    ? failed('execution_failed', `${name} did not print one JSON value of at most 8 MiB.`, {
        output: firstLine(text.trimEnd(), 400),
      })
    : outcomeOf(name, value, check);
}

/** Returns the failure of a program that did not come to its end, or that says it failed. */
function failureOf(
  name: string,
  result: ProcessResult,
  { errors, timeoutMs }: { readonly errors: string; readonly timeoutMs: number },
): ToolOutcome | null {
  const details = (more: Readonly<Record<string, Json>> = {}): Json => ({ ...more, output: errors });
  switch (result.ended) {
    case 'not_started':
      return failed('execution_failed', `${name} could not be started: ${result.error}.`);
    case 'timeout':
      return failed('timeout', `Stopped after ${timeoutMs} ms, the limit for this tool.`, details());
    case 'cancelled':
      return failed('cancelled', `${name} was cancelled. It and its child processes were stopped.`, details());
    case 'output_limit':
      return failed('execution_failed', `${name} printed more than 256 MiB and was stopped.`, details());
    case 'exit': {
      const { exitCode } = result;
      if (exitCode === 0) return null;
      const last = firstLine(errors.trimEnd().split('\n').at(-1) ?? '', 200);
      const why = last === '' ? '.' : `: ${last}`;
      return failed(
        'execution_failed',
        `${name} ended with exit code ${exitCode}${why}`,
        details({ exit_code: exitCode }),
      );
    }
    default:
      return result satisfies never;
  }
}

/** Returns undefined for what is no JSON. */
function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

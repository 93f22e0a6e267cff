import { parseJson } from '../core/json.js';
import { knownEvent, type ToolSpec } from '../core/event.js';
import { errorCodes, type ErrorCode, type OutputEnvelope } from '../core/envelope.js';
import { isRecord, type Json, type JsonSchema } from '../core/json.js';
import { firstLine, replaceUnseen } from '../core/text.js';
import type { Effect, Judged, ToolArgs, ToolContext, ToolLimits, ToolOutcome } from '../core/tool.js';
import { type DefinedTool, describeCall, failed, type FromSchema, succeeded } from './define-tool.js';
import type { CompileSchema } from './registry.js';

/** The result of a tool: text, any JSON value, or a value that fits a schema. */
export type Returns = NonNullable<ToolSpec['returns']>;

/** The facts about a call that a custom tool receives. */
export interface CustomToolContext {
  /** Absolute; relative paths start here. */
  readonly cwd: string;
  /** Aborted when the call is cancelled or its time is over. What the tool returns after that is dropped. */
  readonly signal: AbortSignal;
  readonly callId: string;
  /** Live output for the screen. */
  progress(text: string): void;
}

/** A tool as its author writes it. */
export interface CustomToolDefinition<S extends JsonSchema> {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
  readonly description: string;
  /** Describes an object. Nothing is coerced and no default is filled in. */
  readonly parameters: S;
  /** A value of another kind is the error `execution_failed`. Without it, any value will do. */
  readonly returns?: Returns;
  /** All that policy knows of the tool. */
  readonly effect: Effect;
  readonly limits?: ToolLimits;
  /** Returns a text, an object with a string `output`, or any other JSON value. Throws a `ToolError` for failures that
   * the model can act on; any other error reaches the model as `internal`. */
  execute(args: FromSchema<S>, ctx: CustomToolContext): unknown;
}

/** A tool whose arguments are whatever its schema lets through. */
export interface CustomTool extends Omit<CustomToolDefinition<JsonSchema>, 'execute'> {
  execute(args: ToolArgs, ctx: CustomToolContext): unknown;
}

/** Gives the arguments of `execute` the type that the schema describes. */
export function defineTool<const S extends JsonSchema>(definition: CustomToolDefinition<S>): CustomTool {
  return {
    ...definition,
    // The registry has checked them against the schema.
    execute: (args, ctx) => definition.execute(args as FromSchema<S>, ctx),
  };
}

/** A failure that the model receives: one sentence that says what is wrong and what to try. */
export class ToolError extends Error {
  readonly code: ErrorCode;
  readonly details: Json | undefined;

  constructor(code: ErrorCode, message: string, details?: Json) {
    super(message);
    this.name = 'ToolError';
    this.code = code;
    this.details = details;
  }
}

const risks: Readonly<Record<Effect, readonly [risk: Judged['risk'], does: string]>> = {
  read: ['read-only', 'only reads'],
  write: ['mutating', 'writes'],
  execute: ['mutating', 'runs a program'],
  network: ['mutating', 'uses the network'],
};

/** The parts of a tool that its calls do not touch. Arguments named `command` are no shell commands here. */
export function facts(
  tool: Pick<CustomTool, 'name' | 'description' | 'effect' | 'returns' | 'limits'>,
  parameters: JsonSchema,
): Omit<DefinedTool, 'run'> {
  const { name, effect, returns, limits } = tool;
  const [risk, does] = risks[effect];
  const type = parameters['type'] ?? 'object';
  if (type !== 'object')
    throw new Error(`${name}: the schema of its arguments needs "type": "object", not ${JSON.stringify(type)}`);
  return {
    name,
    description: replaceUnseen(tool.description, (char) => (char === '\n' ? char : '')),
    effect,
    input_schema: Object.hasOwn(parameters, 'type') ? parameters : { type: 'object', properties: {}, ...parameters },
    ...(returns ? { returns } : {}),
    ...(limits ? { limits } : {}),
    describe: (args) => describeCall(name, args),
    judge: () => ({ risk, reasons: risk === 'read-only' ? [] : [`${name} ${does}`] }),
  };
}

const limitNames = ['timeout_ms', 'rate_per_min', 'max_output_bytes'];

/** Returns what is wrong with the parts of a tool that was written without types; null where nothing is. */
export function problemIn({ effect, returns, limits }: Readonly<Record<string, unknown>>): string | null {
  if (typeof effect !== 'string' || !Object.hasOwn(risks, effect))
    return `\`effect\` needs one of ${Object.keys(risks).join(', ')}`;
  if (returns !== undefined && returns !== 'string' && returns !== 'json' && !isRecord(returns))
    return '`returns` needs "string", "json" or a JSON Schema';
  const isSound =
    limits === undefined ||
    (isRecord(limits) &&
      Object.entries(limits).every(
        ([name, value]) => limitNames.includes(name) && Number.isInteger(value) && Number(value) > 0,
      ));
  return isSound ? null : `\`limits\` takes ${limitNames.join(', ')}, each a whole number from 1`;
}

/** Makes the program's tool of it. Throws where it was not written right or a schema cannot be used. */
export function toTool(tool: CustomTool, compile: CompileSchema): DefinedTool {
  const problem = problemIn({ ...tool });
  if (problem !== null) throw new Error(`${tool.name}: ${problem}`);
  const made = facts(tool, tool.parameters);
  compile(made.input_schema);
  const check = returnsCheck(tool.returns, compile);
  return {
    ...made,
    run: async (args, ctx) => {
      const ended = await untilStopped(tool, args, ctx);
      if (ended.kind === 'stopped') return failed('cancelled', `${tool.name} was cancelled before it finished.`);
      return ended.kind === 'failed'
        ? failed(ended.error.code, ended.error.message, ended.error.details)
        : outcomeOf(tool.name, ended.value, check);
    },
  };
}

type Ended =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly error: ToolError }
  | { readonly kind: 'stopped' };

/** Waits for the tool, but not longer than the call may last: the author may have forgotten the signal. */
async function untilStopped(tool: CustomTool, args: ToolArgs, ctx: ToolContext): Promise<Ended> {
  const over = new AbortController();
  const stopped = new Promise<Ended>((resolve) => {
    const stop = (): void => {
      resolve({ kind: 'stopped' });
    };
    if (ctx.signal.aborted) stop();
    else ctx.signal.addEventListener('abort', stop, { once: true, signal: over.signal });
  });
  try {
    return await Promise.race([executed(tool, args, ctx), stopped]);
  } finally {
    over.abort();
  }
}

/** Returns the id of the call that runs: the one that the session started last. Empty where there is no session. */
export function callIdOf({ session }: Pick<ToolContext, 'session'>): string {
  const started = session.recent().findLast(({ kind }) => kind === 'tool_started');
  const event = started && knownEvent(started);
  return event?.kind === 'tool_started' ? event.data.tool_call_id : '';
}

async function executed(tool: CustomTool, args: ToolArgs, ctx: ToolContext): Promise<Ended> {
  const { cwd, signal } = ctx;
  const mask = ctx.outputMask;
  const progress = (text: string): void => {
    ctx.progress(mask ? mask.add(text) : text);
  };
  try {
    return { kind: 'value', value: await tool.execute(args, { cwd, signal, callId: callIdOf(ctx), progress }) };
  } catch (error) {
    // A module has a class of its own: it cannot import ours.
    if (!(error instanceof Error) || error.name !== 'ToolError') throw error;
    const { code, details } = error as Partial<ToolError>;
    return { kind: 'failed', error: new ToolError(codeOf(code), error.message, jsonOf(details)) };
  } finally {
    const held = mask?.end() ?? '';
    if (held !== '') ctx.progress(held);
  }
}

/** Returns what is wrong with a value that a tool gave back, or null. */
export type ReturnsCheck = (value: unknown) => string | null;

export function returnsCheck(returns: Returns | undefined, compile: CompileSchema): ReturnsCheck {
  if (returns === undefined) return () => null;
  if (returns === 'string')
    return (value) => (typeof value === 'string' ? null : `${kindOf(value)} instead of a string`);
  if (returns === 'json') return (value) => (jsonOf(value) === undefined ? `${kindOf(value)} instead of JSON` : null);
  const validate = compile(returns);
  return (value) => {
    const problem = validate(value);
    return problem === null ? null : `${problem.argument || 'the value'}: ${problem.problem}, not ${problem.expected}`;
  };
}

/** Turns what a tool gave back into its outcome. An object with `error` is a failure, one with a string `output` the
 * envelope itself. */
export function outcomeOf(name: string, value: unknown, check: ReturnsCheck): ToolOutcome {
  const json = jsonOf(value);
  if (isRecord(json) && typeof json.error === 'string') return failed(codeOf(json.code), json.error, json.details);
  const problem =
    check(value) ?? (json === undefined && value !== undefined ? `${kindOf(value)}, which is not JSON` : null);
  if (problem !== null) return failed('execution_failed', `${name} returned ${firstLine(problem, 200)}.`);
  const envelope = envelopeOf(json);
  return succeeded(firstLine(envelope.output, 120), envelope);
}

function envelopeOf(json: Json | undefined): OutputEnvelope {
  if (json === undefined) return { output: '' };
  if (typeof json === 'string') return { output: json };
  return isRecord(json) && typeof json.output === 'string'
    ? (json as OutputEnvelope)
    : { output: JSON.stringify(json) };
}

/** Returns the value as JSON has it, or undefined where JSON has none. */
function jsonOf(value: unknown): Json | undefined {
  try {
    const text = JSON.stringify(value) as string | undefined;
    return text === undefined ? undefined : (parseJson(text) as Json);
  } catch {
    return undefined;
  }
}

function codeOf(code: unknown): ErrorCode {
  return errorCodes.find((known) => known === code) ?? 'execution_failed';
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

import { parseJson } from '../core/json.js';
import { errorEnvelope, type ErrorEnvelope } from '../core/envelope.js';
import type { CallTarget } from '../core/event.js';
import { isRecord, jsonDepth, type JsonSchema } from '../core/json.js';
import { counted } from './define-tool.js';
import { type LoadedOnce, loadOnce } from '../core/runtime.js';
import { loadAjv } from './load-ajv.js';
import { wellFormed } from '../core/text.js';
import type { ArgumentProblem, Binding, Registry, Tool, ToolArgs, ToolLimits } from '../core/tool.js';
import type { CompiledCheck, SchemaError } from './argument-checks.js';

/** Loads the checks that the build has compiled. */
export const loadArgumentChecks = () => import('./argument-checks.js');

export interface RegistryOptions {
  /** The most bytes of one result's `output`; `max_output_bytes` of a tool can only lower it. */
  readonly maxOutputBytes: number;
  /** The time of a tool that has no `timeout_ms`. */
  readonly timeoutMs?: number | null;
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

interface Entry {
  readonly tool: Tool;
  readonly limits: ToolLimits;
  readonly rate: RateLimit | null;
  validate: Validate | null;
}

const namePattern = /^[A-Za-z0-9_-]{1,64}$/;

/** Creates the catalogue of one session: a map by exact name, in the order of registration. */
export function createRegistry(options: RegistryOptions): Registry {
  const entries = new Map<string, Entry>();
  const compiler = loadOnce(loadSchemaCompiler);
  return {
    register(tool, limits = {}) {
      if (!namePattern.test(tool.name))
        throw new Error(`bad tool name ${quoteName(tool.name)}: use letters, digits, _ and -, at most 64`);
      if (entries.has(tool.name)) throw new Error(`a tool called ${tool.name} already exists`);
      const own = { ...tool.limits, ...limits };
      const rate = own.rate_per_min === undefined ? null : createRateLimit(own.rate_per_min, options.now);
      entries.set(tool.name, { tool, limits: own, rate, validate: null });
    },
    unregister: (name) => entries.delete(name),
    list: () => [...entries.values()].map((entry) => entry.tool),
    get: (name) => entries.get(name)?.tool,
    async bind(call) {
      const entry = entries.get(call.name);
      if (!entry)
        return {
          ok: false,
          error: unknownTool(
            call.name,
            [...entries.values()].map(({ tool }) => tool),
          ),
        };
      return bindTo(entry, call.arguments, options, compiler);
    },
    bindOwn: (tool, args) =>
      bindTo({ tool, limits: tool.limits ?? {}, rate: null, validate: null }, args, options, compiler),
    admit(name) {
      const waitMs = entries.get(name)?.rate?.take() ?? 0;
      if (waitMs === 0) return null;
      const seconds = Math.ceil(waitMs / 1000);
      return errorEnvelope('rate_limited', `${name} reached its calls per minute; wait ${seconds} s.`, {
        wait_ms: waitMs,
      });
    },
  };
}

/** Returns the part of a catalogue that `offers` names, with its limits. `reaches` says which tools may be called
 * through another one. */
export function createSubsetRegistry(
  whole: Registry,
  part: { readonly offers: (name: string) => boolean; readonly reaches: (target: CallTarget) => boolean },
): Registry {
  const list = (): readonly Tool[] => whole.list().filter(({ name }) => part.offers(name));
  return {
    ...whole,
    register: () => {
      throw new Error('a part of a catalogue takes no more tools');
    },
    unregister: () => false,
    list,
    get: (name) => (part.offers(name) ? whole.get(name) : undefined),
    async bind(call) {
      if (!part.offers(call.name)) return { ok: false, error: unknownTool(call.name, list()) };
      const binding = await whole.bind(call);
      const target = binding.ok ? binding.bound.target : undefined;
      if (!target || part.reaches(target)) return binding;
      return { ok: false, error: errorEnvelope('permission_denied', `${target.name} is not offered here.`) };
    },
  };
}

/** Returns a catalogue in which some tools are replaced by others of the same name, which keep the limits of the first.
 * `limits`: those of the settings. */
export function createReplacedRegistry(
  whole: Registry,
  replaced: readonly Tool[],
  { limits, ...options }: RegistryOptions & { readonly limits: Readonly<Record<string, ToolLimits>> },
): Registry {
  const own = createRegistry(options);
  for (const tool of replaced) if (whole.get(tool.name)) own.register(tool, limits[tool.name]);
  const now = (tool: Tool): Tool => own.get(tool.name) ?? tool;
  const pick = (name: string): Registry => (whole.get(name) && own.get(name) ? own : whole);
  return {
    ...whole,
    register: () => {
      throw new Error('a catalogue with replaced tools takes no more tools');
    },
    unregister: () => false,
    list: () => whole.list().map(now),
    get: (name) => {
      const tool = whole.get(name);
      return tool && now(tool);
    },
    bind: (call) => pick(call.name).bind(call),
    bindOwn: (tool, args) => whole.bindOwn(tool, args),
    admit: (name) => whole.admit(name),
  };
}

async function bindTo(
  entry: Entry,
  text: string,
  options: RegistryOptions,
  compiler: LoadedOnce<CompileSchema>,
): Promise<Binding> {
  const { tool } = entry;
  const parsed = parseArguments(text);
  if (!parsed.ok) return { ok: false, error: invalidArguments(tool.name, parsed.problem) };
  try {
    const validate = entry.validate ?? (await checkFor(tool.input_schema, compiler));
    entry.validate = validate;
    const problem = validate(parsed.args) ?? tool.check?.(parsed.args) ?? null;
    if (problem) return { ok: false, error: invalidArguments(tool.name, problem) };
  } catch {
    return { ok: false, error: errorEnvelope('internal', `The schema of ${tool.name} cannot be used.`) };
  }
  return await boundTo(entry, parsed.args, options);
}

/** Makes the bound call of arguments that fit, and finds the tool that they reach through this one. */
async function boundTo({ tool, limits }: Entry, args: ToolArgs, options: RegistryOptions): Promise<Binding> {
  const resolved = await tool.resolve?.(args);
  if (resolved?.ok === false) return resolved;
  const maxOutputBytes = Math.min(limits.max_output_bytes ?? options.maxOutputBytes, options.maxOutputBytes);
  return {
    ok: true,
    bound: {
      ...(resolved ?? { tool, args }),
      limits: { timeoutMs: limits.timeout_ms ?? options.timeoutMs ?? null, maxOutputBytes },
    },
  };
}

/** Returns the `invalid_args` envelope of every tool. No part repeats more than 200 characters of the call. */
export function invalidArguments(name: string, problem: ArgumentProblem): ErrorEnvelope {
  const details = {
    argument: cut(problem.argument, 60),
    problem: cut(problem.problem, 120),
    expected: cut(problem.expected, 200),
  };
  const subject = details.argument === '' ? 'the arguments' : JSON.stringify(details.argument);
  return errorEnvelope(
    'invalid_args',
    `${name}: ${subject}: ${details.problem}; expected ${details.expected}.`,
    details,
  );
}

function unknownTool(name: unknown, tools: readonly Tool[]): ErrorEnvelope {
  const available = tools.map((tool) => tool.name);
  const meant = tools.filter((tool) => tool.otherNames?.some((other) => other === name)).map((tool) => tool.name);
  const list = available.length > 0 ? `available: ${available.join(', ')}` : 'no tools are available';
  if (meant.length > 0)
    return errorEnvelope('unknown_tool', `There is no tool called ${quoteName(name)}; use ${meant.join(' or ')}.`, {
      available,
    });
  return errorEnvelope('unknown_tool', `There is no tool called ${quoteName(name)}; ${list}.`, { available });
}

function quoteName(name: unknown): string {
  return JSON.stringify(cut(typeof name === 'string' ? name : String(name), 64));
}

function cut(text: string, max: number): string {
  return text.length > max ? `${wellFormed(text.slice(0, max - 1))}…` : wellFormed(text);
}

const maxArgumentBytes = 8 * 1024 * 1024;
const maxDepth = 64;

type ParsedArguments =
  | { readonly ok: true; readonly args: ToolArgs }
  | { readonly ok: false; readonly problem: ArgumentProblem };

/** Reads the arguments of a call strictly. Size and depth are checked on the raw text before anything is built from it.
 * Only the empty string means `{}`. A key that is given twice is refused, because the screen could show one value and
 * the tool use the other. Nothing is repaired or coerced. */
function parseArguments(text: string): ParsedArguments {
  if (text === '') return { ok: true, args: {} };
  if (text.length > maxArgumentBytes || Buffer.byteLength(text) > maxArgumentBytes) {
    return refused(
      `${Buffer.byteLength(text)} bytes of arguments`,
      `at most ${maxArgumentBytes} bytes; split the work over several calls`,
    );
  }
  if (jsonDepth(text, maxDepth) > maxDepth) return refused('nested too deeply', `at most ${maxDepth} levels`);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return refused(`not JSON: ${error instanceof Error ? error.message : 'unreadable'}`, 'one JSON object');
  }
  if (!isRecord(value))
    return refused(
      `${value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`} at the top`,
      'one JSON object',
    );
  const twice = repeatedKey(text);
  if (twice !== null)
    return { ok: false, problem: { argument: twice, problem: 'given twice', expected: 'each argument once' } };
  return { ok: true, args: value };
}

function refused(problem: string, expected: string): ParsedArguments {
  return { ok: false, problem: { argument: '', problem, expected } };
}

/** Returns the first key that occurs twice in one object of a valid JSON text, or null. */
function repeatedKey(text: string): string | null {
  const seen: (Set<string> | null)[] = [];
  let i = 0;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === 0x7b) seen.push(new Set());
    else if (code === 0x5b) seen.push(null);
    else if (code === 0x7d || code === 0x5d) seen.pop();
    if (code !== 0x22) {
      i++;
      continue;
    }
    const end = stringEnd(text, i);
    const keys = seen.at(-1);
    if (keys && followedByColon(text, end)) {
      const key: unknown = parseJson(text.slice(i, end));
      if (typeof key === 'string') {
        if (keys.has(key)) return key;
        keys.add(key);
      }
    }
    i = end;
  }
  return null;
}

function followedByColon(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === 0x3a;
}

/** Returns the index just after the string that starts at `start`. */
function stringEnd(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at > 0) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++;
    if (slashes % 2 === 0) return at + 1;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}

/** Returns what is wrong with the arguments, or null. */
type Validate = (value: unknown) => ArgumentProblem | null;
/** Throws on a schema that is not valid. */
export type CompileSchema = (schema: JsonSchema) => Validate;

/** Returns the check that the build has compiled for a schema, or compiles one. */
async function checkFor(schema: JsonSchema, compiler: LoadedOnce<CompileSchema>): Promise<Validate> {
  const { argumentChecks } = await loadArgumentChecks();
  const check = argumentChecks.get(checkedText(schema));
  return check ? explaining(check) : (await compiler.get())(schema);
}

/** Returns what a schema checks, as text: without its descriptions. */
export function checkedText(schema: JsonSchema): string {
  return JSON.stringify(schema, (key, value: unknown) =>
    key === 'description' && typeof value === 'string' ? undefined : value,
  );
}

/** Returns a compiler for draft 2020-12 without coercion and defaults. */
export async function loadSchemaCompiler(): Promise<CompileSchema> {
  const Ajv = await loadAjv();
  const ajv = new Ajv({
    strict: false,
    allErrors: false,
    coerceTypes: false,
    useDefaults: false,
    verbose: true, // errors carry the schema around them, so that a message can say what was expected
    logger: false,
    // To check a schema against the meta-schema takes longer than all the rest. The compiler refuses bad schemas too.
    meta: false,
    validateSchema: false,
    // Takes longer than the checks of all calls of a session.
    code: { optimize: false },
  });
  return (schema) => {
    try {
      return explaining(refusingEndless(() => ajv.compile(schema)));
    } finally {
      // A later schema may have the same `$id`.
      ajv.removeSchema(schema);
    }
  };
}

const endless = 'the schema refers to itself without end';

/** Runs ajv. Throws an error that says so for a schema that refers to nothing but itself, on which ajv calls itself
 * until the stack is full. */
export function refusingEndless<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new Error(endless, { cause: error });
  }
}

/** Makes a check that says what is wrong, of what ajv has compiled. */
export function explaining(check: CompiledCheck): Validate {
  return (value) => {
    try {
      return check(value) ? null : explained(check.errors?.[0]);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return { argument: '', problem: `not checked, because ${endless}`, expected: 'a call of another tool' };
    }
  };
}

/** Returns the argument, what is wrong with it and what is expected, from the first error of ajv. */
function explained(error: SchemaError | undefined): ArgumentProblem {
  if (!error)
    return { argument: '', problem: 'does not match the schema', expected: 'a value that matches the schema' };
  const at = error.instancePath.slice(1);
  const inside = (name: unknown): string => [at, String(name)].filter((part) => part !== '').join('/');
  const properties =
    isRecord(error.parentSchema) && isRecord(error.parentSchema.properties) ? error.parentSchema.properties : {};
  switch (error.keyword) {
    case 'required': {
      const name = String(error.params.missingProperty);
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      return {
        argument: inside(name),
        problem: 'missing',
        expected: isRecord(property) && property.type !== undefined ? described(property.type) : 'a value',
      };
    }
    case 'additionalProperties':
      return {
        argument: inside(error.params.additionalProperty),
        problem: 'unknown argument',
        expected: `only ${Object.keys(properties).join(', ')}`,
      };
    case 'type':
      return { argument: at, problem: 'wrong type', expected: described(error.params.type) };
    case 'minimum':
    case 'maximum':
      return {
        argument: at,
        problem: 'out of range',
        expected: `a value ${String(error.params.comparison)} ${String(error.params.limit)}`,
      };
    case 'minLength':
      return {
        argument: at,
        problem: 'too short',
        expected:
          error.params.limit === 1 ? 'at least 1 character' : `at least ${String(error.params.limit)} characters`,
      };
    case 'minItems':
    case 'maxItems': {
      const [problem, bound] = error.keyword === 'minItems' ? ['too few', 'at least'] : ['too many', 'at most'];
      return { argument: at, problem, expected: `${bound} ${counted(Number(error.params.limit), 'item')}` };
    }
    case 'enum':
      return {
        argument: at,
        problem: 'not one of the allowed values',
        expected: JSON.stringify(error.params.allowedValues),
      };
    default:
      return { argument: at, problem: 'does not match the schema', expected: error.message ?? error.keyword };
  }
}

function described(type: unknown): string {
  return Array.isArray(type) ? type.map(String).join(' or ') : String(type);
}

/** A sliding window of one minute. */
interface RateLimit {
  /** Takes one unit and returns 0, or takes none and returns the milliseconds until one is free. */
  take(): number;
}

const windowMs = 60_000;

function createRateLimit(perMinute: number, now: () => number): RateLimit {
  let taken: readonly number[] = [];
  return {
    take() {
      const time = now();
      taken = taken.filter((at) => time - at < windowMs);
      const oldest = taken[0];
      if (taken.length >= perMinute)
        return oldest === undefined ? windowMs : Math.max(1, Math.ceil(windowMs - (time - oldest)));
      taken = [...taken, time];
      return 0;
    },
  };
}

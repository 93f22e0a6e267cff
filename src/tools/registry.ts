import { errorEnvelope, type ErrorEnvelope } from '../core/envelope.js';
import { wellFormed } from '../core/text.js';
import type { ArgumentProblem, Binding, Registry, Tool, ToolLimits } from '../core/tool.js';
import { parseArguments } from './argument-json.js';
import { createRateLimit, type RateLimit } from './rate-limit.js';
import type { CompileSchema, Validate } from './schema-compiler.js';

export interface RegistryOptions {
  readonly compile: CompileSchema;
  /** `first_use` for schemas known to compile: a start-up then pays for none of them. */
  readonly compileAt: 'registration' | 'first_use';
  /** Most bytes of one result's `output`; a tool's `max_output_bytes` can only lower it. */
  readonly maxOutputBytes: number;
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

/** The catalogue of one session: a map by exact name, in order of registration. */
export function createRegistry(options: RegistryOptions): Registry {
  const entries = new Map<string, Entry>();
  return {
    register(tool, limits = {}) {
      if (!namePattern.test(tool.name))
        throw new Error(`bad tool name ${shown(tool.name)}: use letters, digits, _ and -, at most 64`);
      if (entries.has(tool.name)) throw new Error(`there is a tool called ${tool.name} already`);
      const validate = options.compileAt === 'registration' ? options.compile(tool.input_schema) : null;
      const rate = limits.rate_per_min === undefined ? null : createRateLimit(limits.rate_per_min, options.now);
      entries.set(tool.name, { tool, limits, rate, validate });
    },
    unregister: (name) => entries.delete(name),
    list: () => [...entries.values()].map((entry) => entry.tool),
    get: (name) => entries.get(name)?.tool,
    bind(call) {
      const entry = entries.get(call.name);
      return entry
        ? bindTo(entry, call.arguments, options)
        : { ok: false, error: unknownTool(call.name, [...entries.keys()]) };
    },
    admit(name) {
      const waitMs = entries.get(name)?.rate?.take() ?? 0;
      if (waitMs === 0) return null;
      const seconds = Math.ceil(waitMs / 1000);
      return errorEnvelope('rate_limited', `${name} has used its calls of this minute; wait ${seconds} s.`, {
        wait_ms: waitMs,
      });
    },
  };
}

function bindTo(entry: Entry, text: string, options: RegistryOptions): Binding {
  const { tool, limits } = entry;
  const parsed = parseArguments(text);
  if (!parsed.ok) return { ok: false, error: invalidArguments(tool.name, parsed.problem) };
  try {
    entry.validate ??= options.compile(tool.input_schema);
    const problem = entry.validate(parsed.args) ?? tool.check?.(parsed.args) ?? null;
    if (problem) return { ok: false, error: invalidArguments(tool.name, problem) };
  } catch {
    return { ok: false, error: errorEnvelope('internal', `The schema of ${tool.name} cannot be used.`) };
  }
  const maxOutputBytes = Math.min(limits.max_output_bytes ?? options.maxOutputBytes, options.maxOutputBytes);
  return {
    ok: true,
    bound: { tool, args: parsed.args, limits: { timeoutMs: limits.timeout_ms ?? null, maxOutputBytes } },
  };
}

/** `invalid_args` as every tool gives it; no part repeats more than 200 characters of what was sent. */
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

function unknownTool(name: unknown, available: readonly string[]): ErrorEnvelope {
  const list = available.length > 0 ? `available: ${available.join(', ')}` : 'no tools are available';
  return errorEnvelope('unknown_tool', `There is no tool called ${shown(name)}; ${list}.`, { available });
}

function shown(name: unknown): string {
  return JSON.stringify(cut(typeof name === 'string' ? name : String(name), 64));
}

function cut(text: string, max: number): string {
  return text.length > max ? `${wellFormed(text.slice(0, max - 1))}…` : wellFormed(text);
}

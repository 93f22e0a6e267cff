import { createHash } from 'node:crypto';
import { errorEnvelope, type ErrorEnvelope } from '../../kernel/core/envelope.js';
import { nearest } from '../../kernel/core/text.js';
import type { Judged, Resolved, Tool, Toolset } from '../../kernel/core/tool.js';
import { type DefinedTool, defineTool, describeCall, failed, succeeded } from '../../kernel/tools/define-tool.js';
import { type CompileSchema, invalidArguments, loadSchemaCompiler } from '../../kernel/tools/registry.js';
import { outcomeOf } from './call-result.js';
import { answersOf } from './elicitation.js';
import { checkedSchema, type ForeignTool } from './foreign-tools.js';
import type { RememberedTools } from './remembered-tools.js';
import { resourceTools } from './resource-tools.js';
import type { ServerFacts, Servers } from './servers.js';

export interface BridgeOptions {
  readonly servers: Servers;
  readonly remembered: RememberedTools;
  /** The set that the tools of servers are counted to. */
  readonly toolset: Toolset;
}

/** Makes the tools through which a model reaches those of servers. */
export interface Bridge {
  /** The two that reach all of them: they stay the same, whatever the servers do. */
  readonly fixed: readonly DefinedTool[];
  /** One tool of a server under its own name. `schema`: as the model is shown it. */
  direct(name: string, shown: Pick<ForeignTool, 'description' | 'schema'>): DefinedTool;
}

export function createBridge(options: BridgeOptions): Bridge {
  const compiled: Compiled = new Map();
  const { servers } = options;
  const own = (): readonly DefinedTool[] =>
    servers.texts().some(({ resources }) => resources.length > 0) ? resourceTools(servers) : [];
  return {
    fixed: [searchTool(servers, own), runTool(options, compiled)],
    direct: (name, { description, schema }) => ({
      name,
      description,
      input_schema: schema,
      effect: 'network',
      untrusted: true,
      describe: (args) => describeCall(name, args),
      run: () => Promise.resolve(failed('internal', `${name} was not found.`)),
      resolve: async (args) => await resolved(options, compiled, name, args),
    }),
  };
}

type Compiled = Map<string, ReturnType<CompileSchema>>;

function searchTool(servers: Servers, own: () => readonly DefinedTool[]): DefinedTool {
  return defineTool({
    name: 'tool_search',
    description: 'Finds tools of MCP servers by words or exact names, with their arguments. Without both, lists all.',
    effect: 'network',
    untrusted: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: {
        query: { type: 'string' },
        tools: { type: 'array', items: { type: 'string' } },
        limit: { type: 'integer', minimum: 1, maximum: 20, description: 'default 5' },
      },
    },
    // The user has configured the servers; to ask what they offer changes nothing.
    judge: () => ({ risk: 'read-only', reasons: [] }),
    run: async ({ query = '', tools: names = [], limit = 5 }, { signal }) => {
      await servers.discover(signal);
      if (signal.aborted) return failed('cancelled', 'tool_search was cancelled before it finished.');
      const all = [...servers.tools(), ...own().map(listedAs)];
      const exact = all.filter(({ name, ownName }) => names.includes(name) || names.includes(ownName));
      const isListing = query.trim() === '' && names.length === 0;
      const found = isListing ? [] : [...exact, ...ranked(all, query).filter((tool) => !exact.includes(tool))];
      const shown = found.slice(0, Math.max(limit, exact.length));
      const output = JSON.stringify({
        tools: isListing
          ? all.map(({ name }) => name)
          : shown.map(({ name, server, description, schema }) => ({ name, server, description, input_schema: schema })),
        ...(found.length > shown.length ? { more: found.length - shown.length } : {}),
        servers: servers.facts().flatMap(notReady),
      });
      const count = isListing ? all.length : found.length;
      return succeeded(`${count} tool${count === 1 ? '' : 's'} found`, { output, untrusted: true });
    },
  });
}

/** A tool of ours for what servers offer besides tools, among theirs. */
function listedAs({ name, description, input_schema: schema }: DefinedTool): ForeignTool {
  return {
    name,
    ownName: name,
    description,
    schema,
    server: '',
    sha256: name,
    destroys: false,
    project: null,
  };
}

function notReady({ name, state, problem }: ServerFacts): readonly object[] {
  return state === 'connecting' || state === 'failed' || state === 'unusable'
    ? [{ name, state, ...(problem === null ? {} : { reason: problem }) }]
    : [];
}

/** Returns the tools that fit the words, the best first. An exact name always comes first. */
function ranked(tools: readonly ForeignTool[], query: string): readonly ForeignTool[] {
  const whole = query.trim().toLowerCase();
  const words = wordsOf(query);
  const scored = tools.map((tool) => ({ tool, score: scoreOf(tool, whole, words) }));
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .map(({ tool }) => tool);
}

function scoreOf(tool: ForeignTool, whole: string, words: readonly string[]): number {
  if (whole !== '' && [tool.name, tool.ownName].some((name) => name.toLowerCase() === whole)) return 1e6;
  const fields: readonly (readonly [readonly string[], number])[] = [
    [wordsOf(tool.ownName), 8],
    [Object.keys(tool.schema['properties'] ?? {}).flatMap(wordsOf), 3],
    [wordsOf(tool.description), 2],
    [wordsOf(tool.server), 4],
  ];
  let score = 0;
  for (const word of words) {
    const best = fields.map(([field, weight]) => {
      if (field.includes(word)) return weight;
      const isPart = field.some((other) => other.startsWith(word) || (other.length > 3 && word.startsWith(other)));
      return isPart ? weight / 2 : 0;
    });
    score += best.reduce((sum, each) => sum + each, 0);
  }
  return score;
}

/** `createIssue`, `create_issue` and `create issue` have the same words. */
function wordsOf(text: string): readonly string[] {
  return (text.replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2').match(/[\p{L}\p{N}]+/gu) ?? []).map((word) =>
    word.toLowerCase(),
  );
}

function runTool(options: BridgeOptions, compiled: Compiled): DefinedTool {
  const tool = defineTool({
    name: 'tool_run',
    description: 'Calls a tool of an MCP server by its name from tool_search.',
    effect: 'network',
    untrusted: true,
    schema: {
      type: 'object',
      additionalProperties: false,
      properties: { tool: { type: 'string' }, arguments: { type: 'object' } },
      required: ['tool', 'arguments'],
    },
    run: ({ tool: name }) => Promise.resolve(failed('internal', `tool_run did not find ${name}.`)),
  });
  return {
    ...tool,
    resolve: async ({ tool: name, arguments: given }) => {
      const args = given as Readonly<Record<string, unknown>>; // as the schema says
      return await resolved(options, compiled, String(name), args);
    },
  };
}

async function resolved(
  options: BridgeOptions,
  compiled: Compiled,
  name: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Resolved> {
  const { servers, toolset } = options;
  const own = resourceTools(servers).find((tool) => tool.name === name);
  if (own) return await ownCall({ ...own, toolset }, args, compiled);
  const named = (): ForeignTool | undefined => servers.tools().find((tool) => tool.name === name);
  let found = named();
  if (!found) {
    await servers.discover(new AbortController().signal);
    found = named();
  }
  if (!found) return { ok: false, error: unknownName(servers, name) };
  const problem = await argumentProblem(found, args, compiled);
  return problem === null
    ? {
        ok: true,
        tool: foreignTool(found, options),
        args,
        target: { name: found.name, server: found.server, schema_sha256: found.sha256 },
      }
    : {
        ok: false,
        error: problem,
      };
}

/** A call of a tool of ours that asks a server for something else than one of its tools. */
async function ownCall(tool: Tool, args: Readonly<Record<string, unknown>>, compiled: Compiled): Promise<Resolved> {
  const { name, input_schema: schema } = tool;
  const sha256 = createHash('sha256').update(JSON.stringify(schema)).digest('hex');
  const error = await argumentProblem({ name, sha256, schema }, args, compiled);
  if (error !== null) return { ok: false, error };
  const { server } = args;
  const target = {
    name,
    server: typeof server === 'string' ? server : '',
    schema_sha256: sha256,
  };
  return {
    ok: true,
    tool,
    args,
    target,
  };
}

function unknownName(servers: Servers, name: string): ErrorEnvelope {
  const close = nearest(
    name,
    servers.tools().map((tool) => tool.name),
  ).slice(0, 5);
  const meant =
    close.length > 0
      ? close
      : ranked(servers.tools(), name)
          .slice(0, 5)
          .map((tool) => tool.name);
  const next = meant.length === 0 ? 'Ask tool_search.' : `Did you mean ${meant.join(' or ')}?`;
  return errorEnvelope('unknown_tool', `No server offers ${JSON.stringify(name.slice(0, 64))}. ${next}`, {
    available: meant,
    servers: servers.facts().flatMap((facts) => (facts.problem === null ? [] : [`${facts.name}: ${facts.problem}`])),
  });
}

/** Returns the error for arguments that do not fit, with the schema, so that a guess costs one round. */
async function argumentProblem(
  { name, sha256, schema }: Pick<ForeignTool, 'name' | 'sha256' | 'schema'>,
  args: Readonly<Record<string, unknown>>,
  compiled: Compiled,
): Promise<ErrorEnvelope | null> {
  try {
    const check = compiled.get(sha256) ?? (await loadSchemaCompiler())(checkedSchema(schema));
    compiled.set(sha256, check);
    const problem = check(args);
    if (problem === null) return null;
    const { error, details } = invalidArguments(name, problem);
    return errorEnvelope('invalid_args', error, { ...(details as object), input_schema: schema });
  } catch {
    return null; // A schema that does not compile is the server's business: it checks its arguments itself.
  }
}

/** A tool of a server as policy, hooks, limits and the screen see it. */
function foreignTool(found: ForeignTool, { servers, remembered, toolset }: BridgeOptions): Tool {
  const { name, server, description, schema } = found;
  return {
    name,
    description,
    input_schema: schema,
    effect: 'network',
    toolset,
    describe: (args) => describeCall(name, args),
    judge: () => judged(found, servers.allows(found), remembered.change(found)),
    run: async (args, ctx) => {
      remembered.see(found);
      const mask = ctx.outputMask;
      const onProgress = (text: string): void => {
        ctx.progress(mask ? mask.add(text) : text);
      };
      const called = await servers.call(found, args, {
        signal: ctx.signal,
        onProgress,
        putForm: answersOf(ctx.session),
      });
      if (ctx.signal.aborted) return failed('cancelled', `${name} was cancelled before it finished.`);
      switch (called.kind) {
        case 'answered':
          return outcomeOf(server, called.result);
        case 'changed':
          return failed('execution_failed', `Not run: ${name} has changed since it was listed; ask tool_search again.`);
        case 'failed':
          return failed('execution_failed', `The server ${server} failed: ${called.problem}`);
        default:
          return called satisfies never;
      }
    },
  };
}

/** Returns the risk of a tool. The server's own hints never lower it: only the user's `allow` does, for the tool that
 * they saw. */
function judged({ name, server, destroys }: ForeignTool, isAllowed: boolean, change: string | null): Judged {
  if (isAllowed && change === null)
    return {
      risk: 'mutating',
      reasons: [`${name} is a tool of the server ${server}`],
      allowed: true,
    };
  return {
    risk: 'dangerous',
    // A tool that has changed is another one: neither rules nor approval modes count for it until somebody says yes.
    ...(change === null ? {} : { everyMode: true, singular: true }),
    reasons: [
      ...(change === null ? [] : [`${name}: ${change}`]),
      ...(destroys ? [`the server marks ${name} as destructive`] : []),
      `${name} is a tool of the server ${server}: what it does cannot be analysed`,
    ],
  };
}

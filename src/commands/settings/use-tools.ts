import type { DispatchDeps } from '../../agent/dependencies.js';
import { dispatch } from '../../agent/dispatch.js';
import { createRecorder } from '../../agent/recorder.js';
import { isError } from '../../core/envelope.js';
import type { Answer, Approver } from '../../core/policy.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import type { Registry } from '../../core/tool.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { decisionText } from '../../terminal/sanitize.js';
import { CliError, type CommandLine, exit, type Printer, type Verb } from '../command.js';
import { columns, printJson, printListing } from '../line-output.js';

interface Options {
  readonly json?: boolean;
  readonly tools?: string | boolean;
}

/** `agent tools` holds other verbs; `/tools` shows the catalogue of the session. */
export const tools: Verb = {
  line: { example: 'agent tools call glob \'{"pattern":"**/*.md"}\'' },
  slash: async (_argument, { registry, screen }) => {
    const rows = registry
      .list()
      .map((tool) => `| \`${tool.name}\` | ${tool.effect} | ${tool.description.replaceAll('|', '\\|')} |`);
    screen.printMarkdown(
      rows.length === 0
        ? 'No tools in this session.'
        : ['| tool | effect | what it does |', '| --- | --- | --- |', ...rows].join('\n'),
    );
  },
};

export const listTools: Verb = {
  line: {
    example: 'agent tools list --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, tools: access }, _args, options: Options) => {
      const found = (await access.open(options.tools, false)).registry.list();
      printListing(
        out,
        options.json,
        found.map(({ name, description, input_schema, effect, toolset }) => ({
          name,
          description,
          input_schema,
          effect,
          toolset: toolset.name,
        })),
        () => columns(found.map((tool) => [tool.name, tool.toolset.name, tool.effect, tool.description])),
      );
      return exit.done;
    },
  },
};

export const showTool: Verb = {
  line: {
    example: 'agent tools show grep',
    options: (command) => command.option('--json', 'the schema as JSON'),
    run: (line, [name = ''], options: Options) => show(line, name, options),
  },
};

export const callTool: Verb = {
  line: {
    example: 'agent tools call bash \'{"command":"date"}\'',
    run: (line, [name = '', json = ''], options: Options) => run(line, { name, json }, options),
  },
};

export const checkTool: Verb = {
  line: {
    example: 'agent tools check bash \'{"command":"rm -rf /"}\'',
    run: (line, [name = '', json = ''], options: Options) => check(line, { name, json }, options),
  },
};

async function show({ out, tools: access }: CommandLine, name: string, { json }: Options): Promise<number> {
  const { registry } = await access.open(undefined, false);
  const tool = registry.get(name) ?? unknownTool(name, registry);
  const { description, input_schema, effect, toolset } = tool;
  if (json) printJson(out, { name, description, input_schema, effect, toolset: toolset.name }, 2);
  else
    out.print(
      `${tool.name} (${toolset.name}, ${effect})\n${description}\n\n${JSON.stringify(input_schema, null, 2)}\n`,
    );
  return exit.done;
}

function unknownTool(name: string, registry: Registry): never {
  const names = registry.list().map((tool) => tool.name);
  throw new CliError(
    exit.usage,
    `there is no tool \`${name}\``,
    `${didYouMean(name, names)} Known: ${names.join(', ')}`.trim(),
  );
}

interface Call {
  readonly name: string;
  /** The arguments as JSON text. */
  readonly json: string;
}

/** Prints the verdict of policy on a call. Runs nothing; `ask` stays `ask`. */
async function check(line: CommandLine, { name, json }: Call, options: Options): Promise<number> {
  const { cwd } = await line.settings();
  const { registry } = await line.tools.open(options.tools, false);
  if (!registry.get(name)) unknownTool(name, registry);
  const binding = await registry.bind({ name, arguments: json });
  if (!binding.ok) throw new CliError(exit.usage, binding.error.error, `agent tools show ${name} prints its schema.`);
  const policy = await line.tools.policy();
  const { risk, decision, reasons, sandbox, targets } = await policy.assess(binding.bound, cwd);
  printJson(line.out, { risk, decision, reasons, sandbox, ...(targets ? { targets } : {}) });
  return exit.done;
}

/** Sends one call through the whole path, without a session. */
async function run(line: CommandLine, { name, json }: Call, options: Options): Promise<number> {
  const { guard } = await line.settings();
  const { registry, processes } = await line.tools.open(options.tools, true);
  const binding = await registry.bind({ name, arguments: json });
  const stop = new AbortController();
  let endedWith: number | null = null;
  line.onEnd((exitCode) => {
    endedWith ??= exitCode;
    stop.abort();
  });
  const call = { id: 'call_1', type: 'function', function: { name, arguments: json }, response_id: 'r1' } as const;
  const { envelope } = (await dispatch(await standalone(line, registry), { call, binding }, stop.signal)).outcome;
  await processes.killBackground();
  line.out.data(`${escapedJson(guard.json(JSON.stringify(envelope)))}\n`);
  return endedWith ?? (isError(envelope) ? exit.failed : exit.done);
}

/** Returns the parts that `dispatch` needs without a session; it records to memory. */
async function standalone({ tools: access, settings, out }: CommandLine, registry: Registry): Promise<DispatchDeps> {
  const [{ cwd, config, guard }, policy, host] = await Promise.all([settings(), access.policy(), access.host()]);
  return {
    tools: { registry, policy },
    approval: { ...terminalApprover(out), canAsk: false, grants: new Set() },
    cwd,
    record: createRecorder({
      store: openMemoryStore({ now: host.now }),
      sessionId: 'call',
      now: host.now,
      emit: () => undefined,
      restored: [],
    }),
    emit: () => undefined,
    limits: config.limits,
    host,
    secrets: guard,
  };
}

/** Asks on the terminal where there is one on both sides; the default is No. */
function terminalApprover(out: Printer): Approver {
  if (!out.canAsk) return { ask: () => Promise.resolve({ answer: 'unavailable' }) };
  return {
    async ask(question, signal): Promise<Answer> {
      try {
        const text = [question.title, question.argumentsText, ...question.verdict.reasons]
          .map((line) => decisionText(line, { lines: false }))
          .join('\n');
        const reply = await out.ask(`${text}\nRun it? [y/N] `, signal);
        return /^y(es)?$/i.test(reply.trim()) ? { answer: 'once' } : { answer: 'deny' };
      } catch {
        return { answer: 'deny' };
      }
    },
  };
}

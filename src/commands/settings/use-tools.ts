import type { DispatchDeps } from '../../agent/dependencies.js';
import { dispatch } from '../../agent/dispatch.js';
import { createRecorder } from '../../agent/recorder.js';
import { isError } from '../../core/envelope.js';
import type { Answer, Approver } from '../../core/policy.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import type { Registry, Tool } from '../../core/tool.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { decisionText } from '../../terminal/sanitize.js';
import { CliError, type CommandLine, exit, type Printer, type Repl, type ReplTools, type Verb } from '../command.js';
import { columns, printJson, printListing } from '../line-output.js';

interface Options {
  readonly json?: boolean;
  readonly tools?: string | boolean;
}

/** `agent tools` holds other verbs; `/tools` shows the catalogue of the session, `/tools +web` changes it. */
export const tools: Verb = {
  line: { example: 'agent tools call glob \'{"pattern":"**/*.md"}\'' },
  slash: async (argument, repl) => {
    if (argument !== '') await change(argument, repl);
    else repl.screen.printMarkdown(catalogueText(repl.tools));
  },
};

function catalogueText({ registry, sets }: ReplTools): string {
  const offered = registry.list();
  const rows = offered.map(
    (tool) =>
      `| \`${tool.name}\` | ${tool.toolset.name} | ${tool.effect} | ${limitsText(tool)} | ` +
      `${tool.description.replaceAll('|', '\\|')} |`,
  );
  const off = sets.filter(({ name }) => !offered.some((tool) => tool.toolset.name === name));
  const more = off.map(({ name, tools }) => `\`+${name}\`${tools.length === 0 ? '' : ` (${tools.join(', ')})`}`);
  return [
    ...(rows.length === 0
      ? ['No tools in this session.']
      : ['| tool | set | effect | limits | what it does |', '| --- | --- | --- | --- | --- |', ...rows]),
    ...(more.length === 0 ? [] : ['', `Switched off; \`/tools +name\` offers them: ${more.join(', ')}`]),
  ].join('\n');
}

function limitsText({ limits = {} }: Tool): string {
  const { timeout_ms: timeoutMs, rate_per_min: rate } = limits;
  return [
    ...(timeoutMs === undefined ? [] : [`${timeoutMs / 1000} s`]),
    ...(rate === undefined ? [] : [`${rate} a minute`]),
  ].join(', ');
}

async function change(choice: string, { tools, sessions, screen }: Repl): Promise<void> {
  if (sessions.current().session.busy()) {
    screen.notice('error', 'The tools cannot change while an answer is written. Press Esc to end it, or wait.');
    return;
  }
  try {
    await tools.change(choice.replaceAll(/\s+/g, ','));
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    screen.notice('error', `${error.message.replace(/^--tools: /, '')}: ${error.hint}`);
    return;
  }
  const names = tools.registry.list().map(({ name }) => name);
  screen.notice('info', `Tools: ${names.join(', ') || 'none'}. The prompt cache starts anew.`);
}

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
  const tool = named(name, registry) ?? unknownTool(name, registry);
  const { description, input_schema, effect, toolset } = tool;
  if (json) printJson(out, { name, description, input_schema, effect, toolset: toolset.name }, 2);
  else
    out.print(
      `${tool.name} (${toolset.name}, ${effect})\n${description}\n\n${JSON.stringify(input_schema, null, 2)}\n`,
    );
  return exit.done;
}

/** Finds a tool by its name or by one that other programs give it. */
function named(name: string, registry: Registry): Tool | undefined {
  return registry.get(name) ?? registry.list().find((tool) => tool.otherNames?.includes(name));
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
  const tool = named(name, registry) ?? unknownTool(name, registry);
  const binding = await registry.bind({ name: tool.name, arguments: json });
  if (!binding.ok) throw new CliError(exit.usage, binding.error.error, `agent tools show ${name} prints its schema.`);
  const policy = await line.tools.policy();
  const { risk, decision, reasons, sandbox, targets } = await policy.assess(binding.bound, cwd);
  printJson(line.out, { risk, decision, reasons, sandbox, ...(targets ? { targets } : {}) });
  return exit.done;
}

/** Sends one call through the whole path, without a session. */
async function run(line: CommandLine, { name, json }: Call, options: Options): Promise<number> {
  const { guard } = await line.settings();
  const { registry, close } = await line.tools.open(options.tools, true);
  const tool = named(name, registry)?.name ?? name;
  const binding = await registry.bind({ name: tool, arguments: json });
  const stop = new AbortController();
  let endedWith: number | null = null;
  line.onEnd((exitCode) => {
    endedWith ??= exitCode;
    stop.abort();
  });
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: tool, arguments: json },
    response_id: 'r1',
  } as const;
  const { envelope } = (await dispatch(await standalone(line, registry), { call, binding }, stop.signal)).outcome;
  await close();
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

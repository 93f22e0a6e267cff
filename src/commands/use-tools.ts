import type { DispatchDeps } from '../kernel/agent/dependencies.js';
import { dispatch } from '../kernel/agent/dispatch.js';
import { createRecorder } from '../kernel/agent/recorder.js';
import { isError } from '../kernel/core/envelope.js';
import type { PermissionAnswer, Approver } from '../kernel/core/policy.js';
import { didYouMean, escapedJson } from '../kernel/core/text.js';
import { expandCall, type Registry, type Tool } from '../kernel/core/tool.js';
import { openMemoryStore } from '../kernel/store/memory-store.js';
import { decisionText } from '../kernel/core/sanitize.js';
import {
  CliError,
  type CommandLine,
  exit,
  type Printer,
  type Repl,
  type ReplTools,
  type CommandHandler,
} from '../kernel/console/command.js';
import { customToolFiles, type ToolFiles, toolFileText } from '../kernel/console/tool-files-port.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { provided } from '../app/features.js';
import { turnRuns } from '../kernel/console/slash-command.js';
import { columns, printJson, printListing } from '../kernel/console/line-output.js';

interface Options {
  readonly json?: boolean;
  readonly tools?: string | boolean;
}

/** `agent tools` holds other verbs; `/tools` shows the catalogue of the session, `/tools +web` changes it, `/tools add`
 * adds custom tools. */
export const tools: CommandHandler = {
  line: { example: 'agent tools call glob \'{"pattern":"**/*.md"}\'' },
  slash: async (argument, repl) => {
    const [word = '', ...rest] = argument.split(/\s+/);
    if (word === 'add' && rest.length > 0) await addInRepl(argument.slice(word.length).trim(), repl);
    else if (argument !== '') await change(argument, repl);
    else repl.screen.print(catalogueText(repl.tools), 'markdown');
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

async function change(choice: string, repl: Repl): Promise<void> {
  await changed(repl, () => repl.tools.change(choice.replaceAll(/\s+/g, ',')));
}

/** Changes the tools of the session, and says what they are then. */
async function changed({ tools, sessions, screen }: Repl, work: () => Promise<void>): Promise<void> {
  if (sessions.current().session.busy()) {
    screen.notice('error', turnRuns('the tools change', screen));
    return;
  }
  try {
    await work();
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    screen.notice('error', `${error.message.replace(/^--tools: /, '')}: ${error.hint}`);
    return;
  }
  const names = tools.registry.list().map(({ name }) => name);
  screen.notice('info', `Tools: ${names.join(', ') || 'none'}. This invalidates the prompt cache.`);
}

export const listTools: CommandHandler = {
  line: {
    example: 'agent tools list --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, settings, tools: access }, _args, options: Options) => {
      const { guard } = await settings();
      const found = (await access.open(options.tools, false)).registry.list().map((tool) => guard.deep(tool));
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

export const showTool: CommandHandler = {
  line: {
    example: 'agent tools show grep',
    options: (command) => command.option('--json', 'the schema as JSON'),
    run: (line, [name = ''], options: Options) => show(line, name, options),
  },
};

export const callTool: CommandHandler = {
  line: {
    example: 'agent tools call bash \'{"command":"date"}\'',
    run: (line, [name = '', json = ''], options: Options) => run(line, { name, json }, options),
  },
};

export const checkTool: CommandHandler = {
  line: {
    example: 'agent tools check bash \'{"command":"rm -rf /"}\'',
    run: (line, [name = '', json = ''], options: Options) => check(line, { name, json }, options),
  },
};

async function addInRepl(path: string, repl: Repl): Promise<void> {
  const { tools, screen, settings } = repl;
  await changed(repl, async () => {
    const files = await toolFilesOf(settings);
    const file = files.read(path);
    screen.print(settings.guard.text(toolFileText(file)));
    const items = [
      { label: 'No', value: false },
      { label: 'Yes', value: true },
    ];
    const title = 'Allow these tools until one of the files changes?';
    if (!file.isAllowed && (await screen.pick({ title, items })) !== true)
      throw new CliError(exit.failed, 'Not added', 'Nothing has changed.');
    await files.refuseUnusable(file);
    files.allow(file);
    await tools.reload();
  });
}

/** Throws a `CliError` where the program was built without custom tools. */
async function toolFilesOf(settings: Settings): Promise<ToolFiles> {
  const open = provided.find(customToolFiles);
  if (open) return await open(settings);
  throw new CliError(exit.usage, 'this program was built without custom tools', 'Nothing has changed.');
}

async function show({ out, settings, tools: access }: CommandLine, name: string, options: Options): Promise<number> {
  const { tool, isOffered } = await anyTool(access, name, options.tools);
  const { guard } = await settings();
  const { description, input_schema, returns, effect, toolset, limits } = guard.deep(tool);
  const facts = [toolset.name, effect, ...(isOffered ? [] : [`off: --tools +${toolset.name}`])].join(', ');
  if (options.json)
    printJson(
      out,
      {
        name: tool.name,
        description,
        input_schema,
        ...(returns ? { returns } : {}),
        effect,
        ...(limits ? { limits } : {}),
        toolset: toolset.name,
      },
      2,
    );
  else out.print(`${tool.name} (${facts})\n${description}\n\n${JSON.stringify(input_schema, null, 2)}\n`);
  return exit.done;
}

interface AnyTool {
  readonly tool: Tool;
  readonly isOffered: boolean;
}

/** Finds a tool for a user who asks about it, also in a set that is switched off. */
async function anyTool(access: CommandLine['tools'], name: string, chosen: Options['tools']): Promise<AnyTool> {
  const { registry } = await access.open(chosen, false);
  const offered = findTool(name, registry);
  if (offered) return { tool: offered, isOffered: true };
  return { tool: (await inSetThatIsOff(access, name)) ?? unknownTool(name, registry), isOffered: false };
}

async function inSetThatIsOff(access: CommandLine['tools'], name: string): Promise<Tool | undefined> {
  try {
    return (await access.open(`+${name}`, false)).registry.get(name);
  } catch (error) {
    if (error instanceof CliError) return undefined;
    throw error;
  }
}

/** Finds a tool by its name or by one that other programs give it, and it alone. */
function findTool(name: string, registry: Registry): Tool | undefined {
  const meant = registry.list().filter((tool) => tool.otherNames?.includes(name));
  return registry.get(name) ?? (meant.length === 1 ? meant[0] : undefined);
}

function unknownTool(name: string, registry: Registry): never {
  const names = registry.list().map((tool) => tool.name);
  throw new CliError(
    exit.usage,
    `there is no tool \`${name}\``,
    `${didYouMean(name, names)} Known: ${names.join(', ')}`.trim(),
  );
}

/** Says which set a tool is of that nobody has switched on, else that there is none of this name. */
async function unavailable(access: CommandLine['tools'], name: string, registry: Registry): Promise<never> {
  const off = await inSetThatIsOff(access, name);
  if (off) throw new CliError(exit.usage, `\`${name}\` is switched off`, `--tools +${off.toolset.name} offers it.`);
  return unknownTool(name, registry);
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
  const tool = findTool(name, registry) ?? (await unavailable(line.tools, name, registry));
  const binding = await registry.bind({ name: tool.name, arguments: json });
  if (!binding.ok) throw new CliError(exit.usage, binding.error.error, `agent tools show ${name} prints its schema.`);
  const policy = await line.tools.policy();
  const { risk, decision, reasons, sandbox, targets } = await policy.assess(
    await expandCall(binding.bound, new AbortController().signal),
    cwd,
  );
  printJson(line.out, { risk, decision, reasons, sandbox, ...(targets ? { targets } : {}) });
  return exit.done;
}

/** Sends one call through the whole path, without a session. */
async function run(line: CommandLine, { name, json }: Call, options: Options): Promise<number> {
  const { guard } = await line.settings();
  const { registry, close } = await line.tools.open(options.tools, true);
  const tool = findTool(name, registry)?.name ?? name;
  const off = registry.get(tool) ? undefined : await inSetThatIsOff(line.tools, name);
  if (off) line.out.error(`agent: \`${name}\` is switched off; --tools +${off.toolset.name} offers it.\n`);
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
  const { envelope } = (await dispatch(await standalone(line, registry), { call, content: tool, binding }, stop.signal))
    .outcome;
  await close();
  line.out.data(`${escapedJson(guard.json(JSON.stringify(envelope)))}\n`);
  return endedWith ?? (isError(envelope) ? exit.failed : exit.done);
}

/** Returns the parts that `dispatch` needs without a session; it records to memory. */
async function standalone({ tools: access, settings, out }: CommandLine, registry: Registry): Promise<DispatchDeps> {
  const [{ cwd, config, guard }, policy, host] = await Promise.all([settings(), access.policy(), access.host()]);
  return {
    tools: { registry, policy },
    approval: { ...terminalApprover(out), canAsk: false, grants: new Set(), rules: new Map(), asked: new Map() },
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
    async ask(question, signal): Promise<PermissionAnswer> {
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

import { parseJson } from '../../kernel/core/json.js';
import { dirname, join } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import { didYouMean, spelledLine } from '../../kernel/core/text.js';
import { type ConfiguredServer, configuredServer, isUnencrypted, readServerFile } from './configured-servers.js';
import { fittingNames, nameProblem, writtenName } from './server-names.js';
import { pastedAnswer } from './access/browser-return.js';
import type { ShowPage } from './access/login.js';
import { saveEntries } from './listed-servers.js';
import type { ServerFacts, Servers } from './servers.js';
import { CliError, type CommandLine, exit, type Repl, type CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { columns, oneLine, printJson, printListing } from '../../kernel/console/line-output.js';
import { writtenServers } from './mcp-start.js';
import { openedServers } from './mcp-parts.js';
import * as code from './start-servers.js';

const loaded = () => Promise.resolve(code);

interface Options {
  readonly json?: boolean;
  readonly url?: string;
  readonly env?: readonly string[];
  readonly header?: readonly string[];
}

/** `agent mcp` holds other verbs; `/mcp` shows the servers of the session, `/mcp name` one of them, `/mcp reconnect
 * name` reconnects it, and `/mcp login name` signs in first. */
export const mcp: CommandHandler = {
  line: { example: 'agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem .' },
  slash: async (argument, repl) => {
    const [word = '', name = ''] = argument.trim().split(/\s+/);
    if (word === 'reconnect' && name !== '') await reconnect(name, repl);
    else if (word === 'login' && name !== '') await reconnect(name, repl, signInPage(repl));
    else if ((word === 'enable' || word === 'disable') && name !== '') await switchTo(name, word === 'enable', repl);
    else await showServers(word, repl);
  },
};

const json: NonNullable<CommandHandler['line']>['options'] = (command) => command.option('--json', 'as JSON');

export const listServers: CommandHandler = {
  line: {
    example: 'agent mcp list --json',
    options: json,
    run: async ({ out, settings }, _args, options: Options) => {
      const known = await settings();
      const { servers, aside, problems } = await writtenServers(known, loaded);
      for (const problem of problems) out.error(`agent: ${problem}\n`);
      const rows = [...servers.map((server) => [server, stateOf(server)] as const), ...aside.map(notTrusted)].map(
        ([server, state]) => ({
          name: server.name,
          state,
          reached: known.guard.text(reachedBy(server)),
          file: server.file,
        }),
      );
      const { file } = serversOf(known);
      printListing(out, options.json, rows, () =>
        rows.length === 0
          ? [`No servers yet. Add one to ${file} with agent mcp add <name> -- <command…>.`]
          : [
              ...columns(rows.map(({ name, state, reached }) => [name, state, spelledLine(reached)])),
              ...(aside.length === 0 ? [] : ['Review those of this project with agent config trust.']),
            ],
      );
      return exit.done;
    },
  },
};

function notTrusted(server: ConfiguredServer): readonly [ConfiguredServer, string] {
  return [server, 'not trusted'];
}

export const showServer: CommandHandler = {
  line: {
    example: 'agent mcp get files',
    run: async ({ out, settings }, [name = '']) => {
      const { servers, aside } = await writtenServers(await settings(), loaded);
      const { entry } = serverNamed([...servers, ...aside], name);
      const { guard } = await settings();
      printJson(out, parseJson(guard.json(JSON.stringify({ [name]: entry }))), 2);
      return exit.done;
    },
  },
};

export const addServer: CommandHandler = {
  line: {
    example: 'agent mcp add issues --url https://example.com/mcp --header "Authorization: Bearer \\${TOKEN}"',
    options: (command) =>
      command
        .option('--url <url>', 'URL of an HTTP server')
        .option('--env <NAME=value...>', 'variables of its process; ${NAME} inserts one of yours')
        .option('--header <name:value...>', 'headers of its requests; ${NAME} inserts one of your variables'),
    run: async ({ out, settings }, [name = '', ...command], options: Options) => {
      const known = await settings();
      const { file, entries } = serversOf(known);
      const problem = known.guard.text(name) === name ? nameProblem(name) : 'a name must not be a secret';
      if (problem !== null)
        throw new CliError(exit.usage, `\`${name}\`: ${problem}`, 'For example: agent mcp add files');
      if (Object.hasOwn(entries, name))
        throw new CliError(
          exit.usage,
          `the server \`${name}\` already exists`,
          `Remove it first: agent mcp remove ${name}`,
        );
      const entry = newEntry(command, options);
      const { way } = configuredServer(name, entry, file, {
        env: known.env,
        cwd: known.cwd,
        home: known.home,
        allowInsecure: known.config.http.allowInsecure,
      });
      if (way.kind === 'unusable' && !way.problem.includes('is not set'))
        throw new CliError(exit.usage, `\`${name}\`: ${way.problem}`, 'Nothing was added.');
      saveEntries(file, { ...entries, [name]: entry });
      out.print(`Added to ${spelledLine(file)}. Test it with agent mcp test ${name}.\n`);
      return exit.done;
    },
  },
};

export const removeServer: CommandHandler = {
  line: {
    example: 'agent mcp remove files',
    run: async ({ out, settings }, [name = '']) => {
      const { file, entries } = serversOf(await settings());
      const removed = writtenName(Object.keys(entries), name);
      if (removed === null) throw noServer(name, Object.keys(entries));
      saveEntries(file, Object.fromEntries(Object.entries(entries).filter(([other]) => other !== removed)));
      out.print(`Removed from ${spelledLine(file)}.\n`);
      return exit.done;
    },
  },
};

export const testServer: CommandHandler = {
  line: {
    example: 'agent mcp test files',
    options: json,
    run: async (line, [name = ''], options: Options) => {
      const { servers: counting, aside } = await writtenServers(await line.settings(), loaded);
      if (!counting.some((server) => server.name === name) && aside.some((server) => server.name === name))
        throw new CliError(
          exit.usage,
          `\`${name}\` is in the .mcp.json of this project, which is not trusted`,
          'Review it with agent config trust.',
        );
      const server = serverNamed(counting, name);
      const { parts, close } = await line.tools.open('mcp', true);
      try {
        return await tested(line, await parts.get(openedServers)(), server.name, options);
      } finally {
        await close();
      }
    },
  },
};

/** The other way round: our tools for other programs. */
export const serveTools: CommandHandler = {
  line: {
    example: 'agent --tools fs mcp serve',
    run: async ({ doors }) => await doors.tools(),
  },
};

async function tested({ out }: CommandLine, servers: Servers | null, name: string, options: Options): Promise<number> {
  const begun = performance.now();
  const problem = servers === null ? 'it is disabled, or its entry is not valid' : await servers.reconnect(name);
  const tookMs = Math.round(performance.now() - begun);
  if (problem !== null)
    throw new CliError(exit.failed, `\`${name}\`: ${problem}`, `agent mcp get ${name} shows its entry.`);
  const facts = servers?.facts().find((server) => server.name === name);
  const tools = facts?.tools ?? [];
  if (options.json)
    printJson(out, { name, protocol: facts?.protocol, connect_ms: tookMs, tools: tools.map((tool) => tool.name) }, 2);
  else
    out.print(
      [
        `${name}: connected in ${tookMs} ms, protocol ${facts?.protocol ?? ''}, ${tools.length} tools`,
        ...columns(tools.map((tool) => [`  ${tool.name}`, oneLine(tool.description)])),
        '',
      ].join('\n'),
    );
  return exit.done;
}

/** The entries of the user's `mcp.json`. */
interface OwnServers {
  readonly file: string;
  readonly entries: Readonly<Record<string, unknown>>;
}

function serversOf({ config }: Settings): OwnServers {
  const file = join(dirname(config.files.config), 'mcp.json');
  const found = readServerFile(file);
  if (found.kind === 'broken')
    throw new CliError(exit.usage, `${file}: ${found.problem}`, 'Correct it there first; nothing was changed.');
  return { file, entries: found.kind === 'read' ? found.entries : {} };
}

function serverNamed(servers: readonly ConfiguredServer[], name: string): ConfiguredServer {
  const short = fittingNames([name]).get(name);
  const found = servers.find((server) => server.name === name) ?? servers.find((server) => server.name === short);
  if (found) return found;
  throw noServer(
    name,
    servers.map((server) => server.name),
  );
}

function noServer(name: string, names: readonly string[]): CliError {
  return new CliError(
    exit.usage,
    `there is no server \`${name}\``,
    `${didYouMean(name, names)} Known: ${names.join(', ') || 'none'}`.trim(),
  );
}

function newEntry(
  command: readonly string[],
  { url, env = [], header = [] }: Options,
): Readonly<Record<string, unknown>> {
  if ((url === undefined) === (command.length === 0))
    throw new CliError(
      exit.usage,
      'a server has a command or a --url',
      'agent mcp add files -- npx -y @modelcontextprotocol/server-filesystem .',
    );
  const variables = pairs(env, '=', '--env');
  const headers = pairs(header, ':', '--header');
  if (url !== undefined) return { type: 'http', url, ...(header.length > 0 ? { headers } : {}) };
  const [program, ...args] = command;
  return { command: program, args, ...(env.length > 0 ? { env: variables } : {}) };
}

function pairs(given: readonly string[], sign: string, option: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf(sign);
      if (at < 1)
        throw new CliError(exit.usage, `${option}: \`${text}\` has no ${sign}`, `For example NAME${sign}value.`);
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
}

function stateOf({ enabled, way }: ConfiguredServer): string {
  if (!enabled) return 'off';
  if (way.kind === 'unusable') return `unusable: ${way.problem}`;
  return isUnencrypted(way) ? 'http, not encrypted' : way.kind;
}

/** Returns the address or the command of an entry as written: values of variables are not shown. */
function reachedBy({ entry }: ConfiguredServer): string {
  if (!isRecord(entry)) return '';
  const { url, command, args } = entry;
  if (typeof url === 'string') return url;
  return [command, ...(Array.isArray(args) ? args : [])].map(String).join(' ');
}

async function showServers(name: string, { parts, screen, settings }: Repl): Promise<void> {
  const servers = await parts.get(openedServers)();
  const facts = servers?.facts() ?? [];
  const one = facts.find((server) => server.name === name);
  const mask = (text: string): string => settings.guard.text(text);
  if (one) screen.print(mask(detailsOf(one).join('\n')));
  else if (name !== '')
    screen.notice(
      'error',
      `There is no server ${name}. ${didYouMean(
        name,
        facts.map((it) => it.name),
      )}`,
    );
  else if (facts.length === 0)
    screen.print(
      `No MCP servers. ${serversOf(settings).file} names them; agent mcp add <name> -- <command…> adds one.`,
    );
  else
    screen.print(
      [
        ...columns(
          facts.map(({ name: own, state, origin, tools: offered, problem }) => [
            own,
            state,
            offered === null ? 'tools not known yet' : `${offered.length} tools`,
            origin === 'project' ? 'this project' : '',
            oneLine(mask(problem ?? '')),
          ]),
        ),
        '/mcp <name> shows one, /mcp reconnect|login|enable|disable <name> changes it.',
      ].join('\n'),
    );
}

function detailsOf({ name, file, origin, state, problem, protocol, tools, lastWords }: ServerFacts): readonly string[] {
  const said = lastWords.trim().split('\n').slice(-20);
  const whose = origin === 'project' ? 'this project' : 'you';
  return [
    `${name}: ${state}${protocol === null ? '' : `, protocol ${protocol}`}, from ${whose} (${spelledLine(file)})`,
    ...(problem === null ? [] : [`  ${oneLine(problem, 400)}`]),
    ...columns((tools ?? []).map((tool) => [`  ${tool.name}`, oneLine(tool.description)])),
    ...(said.join('') === '' ? [] : ['Its standard error:', ...said.map((line) => `  ${spelledLine(line)}`)]),
  ];
}

/** Switches a server for this run, and one of the user also for later ones. */
async function switchTo(name: string, on: boolean, { parts, screen, settings }: Repl): Promise<void> {
  const servers = await parts.get(openedServers)();
  const problem = servers === null ? 'No server is offered in this session.' : await servers.switchTo(name, on);
  if (problem !== null) {
    screen.notice('error', `${name}: ${problem}`);
    return;
  }
  const facts = servers?.facts().find((server) => server.name === name);
  const { file, entries } = serversOf(settings);
  const written = writtenName(Object.keys(entries), name) ?? name;
  const entry = entries[written];
  const isKept = facts?.origin === 'user' && isRecord(entry) && !settings.ephemeral;
  if (isKept) saveEntries(file, { ...entries, [written]: switched(entry, on) });
  screen.notice('info', `${name} is ${on ? 'enabled' : 'disabled'}${isKept ? '.' : ' for this run.'}`);
}

function switched(entry: Readonly<Record<string, unknown>>, on: boolean): Readonly<Record<string, unknown>> {
  const { enabled: _before, disabled: _other, ...rest } = entry;
  return on ? rest : { ...rest, enabled: false };
}

async function reconnect(name: string, { parts, screen }: Repl, show?: ShowPage): Promise<void> {
  const servers = await parts.get(openedServers)();
  const problem = servers === null ? 'No server is offered in this session.' : await servers.reconnect(name, show);
  if (problem !== null) screen.notice('error', `${name}: ${problem}`);
  else screen.notice('info', `${name} is connected.`);
}

/** The address counts like a password while it is pasted: it holds the code. */
function signInPage({ screen }: Repl): ShowPage {
  return async (page, signal) => {
    screen.print(`Open this page in a browser and approve:\n\n${page.href}\n`);
    const rows = ['Waiting for the browser. Or paste its final address.'];
    const text = await screen.hidden({ title: 'Sign-in', rows, signal });
    return text === null ? null : pastedAnswer(text);
  };
}

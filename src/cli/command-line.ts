import type { Command } from 'commander';
import { setImmediate as turn } from 'node:timers/promises';
import {
  CliError,
  type CommandLine,
  type Doors,
  exit,
  type Extensions,
  type Guards,
  type Machine,
  type Models,
  type OpenedStore,
  type OpenedTeam,
  type Printer,
  type Tools,
  type Trust,
} from '../commands/command.js';
import type { LoadOptions } from '../config/load.js';
import { loadOnce } from '../core/runtime.js';
import type { Endpoint } from '../providers/catalog.js';
import { inspectStore } from '../store/inspect.js';
import { screenStreams } from './early-frame.js';
import { endingSignals, onEndingSignal } from './ending.js';
import type { RootOptions } from './options.js';
import { askHidden, askLine, errorsAreTerminal, outputIsTerminal, print, printData, printError } from './print.js';
import { exportGuard, sessionGuard } from './secrets.js';
import { directoryId, newestHere, notePlace, projectOf } from './session/find-session.js';
import { openPolicy } from './session/policy/open-policy.js';
import { openRecord } from './session/open-record.js';
import { openCommands } from './session/open-commands.js';
import { answerFor, asideNotices, findAgents, type Here, projectFiles } from './project-files.js';
import { homeDirectory } from './home-directory.js';
import { givenDirectory, type Settings, readSettings, settingFlags, trustedBefore } from './settings.js';
import { askForFiles, askForTrust, openToolFiles, openTrustFile, spelledOut, terminalQuestion } from './trust.js';

type ReadSettings = () => Promise<Settings>;

/** Makes the parts that a verb of the command line works with. Each is opened when the verb first asks for it. */
export function createCommandLine(
  options: RootOptions,
  program: Command,
  globalOptions: readonly string[],
): CommandLine {
  const settings = loadOnce(() => readSettings(options));
  const read: ReadSettings = () => settings.get();
  return {
    out: createPrinter(),
    program: { root: program, globalOptions },
    get request() {
      return settingsRequest(options);
    },
    tools: createTools(options, read),
    machine: createMachine(() => settingsRequest(options)),
    doors: createDoors(options),
    models: createModels(options, read),
    guards: createGuards(read),
    trust,
    extensions: openExtensions(read),
    settings: read,
    withStore: async (use) => await withStore(await read(), use),
    onEnd: (listener) => {
      onEndingSignal((signal) => {
        listener(endingSignals[signal]);
      });
    },
  };
}

/** Returns which settings to load. Throws a `CliError` for an option whose value cannot be read. */
export function settingsRequest(options: RootOptions): LoadOptions {
  const { env } = process;
  const cwd = givenDirectory(options.cwd);
  const home = homeDirectory(env);
  return {
    env,
    cwd,
    home,
    set: options.set,
    flags: settingFlags(options, cwd),
    projectTrusted: trustedBefore(env, home),
  };
}

export function createPrinter(): Printer {
  return {
    print,
    data: printData,
    error: printError,
    ask: askLine,
    askHidden,
    isTerminal: outputIsTerminal(),
    canAsk: process.stdin.isTTY && errorsAreTerminal(),
    screen: screenStreams().output,
  };
}

/** Events of one statement to the server of a team, where nobody waits at a screen. */
const exchangedEvents = 500;

/** Opens the store for `use` and closes it again, also after a failure. Rejects where it cannot be opened. */
async function withStore<T>(settings: Settings, use: (opened: OpenedStore) => Promise<T>): Promise<T> {
  const { cwd } = settings;
  const { store, records, tasks, notes, sync } = await openRecord(settings, (message) => {
    printError(`agent: ${message}\n`);
  });
  const here = { cwd, directoryId: directoryId(cwd) ?? undefined };
  const team = loadOnce(async () => (await import('./session/open-team.js')).openTeam(settings));
  let opened: OpenedTeam | null = null;
  try {
    return await use({
      store,
      records,
      tasks,
      notes: async () => ({ notes: await notes(), project: projectOf(cwd) }),
      team: async () => (opened = await team.get()),
      exchange: async () => {
        if (sync === null)
          throw new CliError(exit.usage, 'store.mode is remote: sessions are at the server already', 'agent db status');
        opened = await team.get();
        const pause = async (): Promise<boolean> => await turn().then(() => true);
        const use = { rows: await sync(), team: opened.team, pause, batch: exchangedEvents };
        return await (await import('./session/open-team.js')).openTeamExchange(settings, use);
      },
      settings: settings,
      newestHere: () => newestHere(store, here),
      notePlace: (row) => notePlace(store, row, here),
    });
  } finally {
    await (opened as OpenedTeam | null)?.team.close();
    await store.close();
  }
}

/** Loads the code of the tools when it is first used. */
function createTools(options: RootOptions, read: ReadSettings): Tools {
  const load = () => import('./session/open-tools.js');
  const loadPolicy = () => import('./session/policy/open-policy.js');
  return {
    open: async (chosen, sandboxed) => {
      const [settings, { openSandbox, openToolbox }, { openPolicy }] = await Promise.all([
        read(),
        load(),
        loadPolicy(),
      ]);
      const notify = (message: string): void => {
        printError(`agent: ${message}\n`);
      };
      const record = loadOnce(() => openRecord(settings, notify));
      const toolbox = await openToolbox(settings, chosen, {
        approval: openPolicy(settings),
        sandbox: sandboxed ? { confine: await openSandbox(settings) } : null,
        ports: () => record.get(),
        notify,
      });
      return {
        ...toolbox,
        close: async () => {
          await toolbox.close();
          await (await record.started())?.store.close();
        },
      };
    },
    policy: async () => openPolicy(await read()),
    host: async () => (await import('./session/assemble.js')).sessionHost((await read()).log),
    files: async () => {
      return await openToolFiles(await read());
    },
    opening: async (registry, cwd) => {
      const { sessionBeginning } = await import('./session/context-files.js');
      const facts = { window: () => null, notes: async () => '' };
      return (await sessionBeginning({ ...(await read()), cwd }, registry, { restored: [] }, facts)).opening;
    },
    listedServers: async () => {
      const { listedServers } = await import('./session/open-mcp.js');
      return (await listedServers(await read())) ?? { servers: [], aside: [], problems: [] };
    },
    strayLimits: async (loaded) => {
      const { strayLimits, toolNames } = await load();
      return await strayLimits(loaded, toolNames());
    },
    strayLimit: async (name) => {
      const { strayLimit, toolNames } = await load();
      return strayLimit(name, toolNames());
    },
    firing: async (tasks, heard) =>
      (await import('./tasks/open-firing.js')).openFiring(await read(), options, tasks, { heard, asks: false }),
  };
}

function createDoors(options: RootOptions): Doors {
  return {
    tools: async () => await (await import('./doors/serve-mcp.js')).serveMcp(options),
    editor: async () => await (await import('./doors/serve-editors.js')).serveEditors(options),
    pages: async (request) => await (await import('./doors/serve-page.js')).servePages(options, request),
    watch: async (request) => await (await import('./doors/watch-session.js')).watchSession(options, request),
  };
}

export function createMachine(request: () => LoadOptions): Machine {
  return {
    sandbox: async (config) => {
      const { env, cwd, home } = request();
      return await (await import('./session/open-tools.js')).checkSandbox({ cwd, env, home, config });
    },
    rehearsals: async (config) => {
      const { env, cwd, home } = request();
      return await (await import('./session/open-tools.js')).checkRehearsals({ cwd, env, home, config });
    },
    store: (config) => inspectStore(config.files.database),
    server: async (config) => {
      if (config.store.url === null) return [];
      return [await (await import('./session/open-team.js')).checkServer({ ...request(), config })];
    },
    browse: async (url) => await (await import('../commands/connect/keyring.js')).openInBrowser(url, request().env),
  };
}

export function createModels(options: RootOptions, read: ReadSettings): Models {
  const load = () => import('./session/open-model.js');
  return {
    choice: async (provider, model) => (await load()).providerChoice(await read(), { provider, model }),
    check: async (provider, model) => {
      const [{ httpDependencies, resolveReady }, { loadWire }] = await Promise.all([
        load(),
        import('../providers/wires/known-wires.js'),
      ]);
      const { model: _model, ...others } = options;
      const settings = await readSettings({ ...others, provider });
      const { ref, endpoint } = await resolveReady(settings, { provider, model });
      if (endpoint.api === 'offline') return null;
      const { checkEndpoint } = await import('../providers/discover.js');
      const wire = await loadWire(endpoint.api);
      const report = await checkEndpoint(
        endpoint,
        ref,
        wire,
        settings.config.http,
        httpDependencies(settings, endpoint),
      );
      return { report, ref, baseUrl: endpoint.baseUrl, keyFrom: keySource(endpoint) };
    },
    requestBody: async (request) => await (await import('./session/open-record.js')).requestBody(await read(), request),
  };
}

/** Where the key of an endpoint comes from; null: there is none. */
function keySource({ key, keyIsKept, keyEnv }: Endpoint): readonly string[] | null {
  if (key === null) return null;
  return keyIsKept ? ['keys.json'] : keyEnv;
}

export function createGuards(read: ReadSettings): Guards {
  return {
    session: async (events) => sessionGuard(await read(), events),
    export: async () => {
      const { env, secrets } = await read();
      return exportGuard(env, secrets, '[redacted]');
    },
  };
}

/** Looks at the disk each time it is asked. */
export function openExtensions(read: () => Promise<Here>): Extensions {
  const withAside = async <T>(found: T, settings: Here) => ({ ...found, aside: await asideNotices(settings) });
  return {
    skills: async () => {
      const settings = await read();
      return await withAside(await openCommands(settings).skills(), settings);
    },
    agents: async () => {
      const settings = await read();
      return await withAside(await findAgents(settings), settings);
    },
  };
}

const nowhere = (): void => {
  /* There is no draft that what was typed could go to. */
};

const trust: Trust = {
  ask: async (project) => await askForTrust(project, terminalQuestion(process.stdin, nowhere)),
  files: async (settings) => {
    const files = await projectFiles(settings);
    if (files === null) return null;
    return {
      directory: files.directory,
      answer: answerFor(settings, files),
      ask: async () => {
        const answer = await askForFiles(files, terminalQuestion(process.stdin, nowhere));
        const { files: answers } = openTrustFile(settings.config.files.trust);
        if (answer !== 'unanswered') answers.record(files, answer === 'yes', Date.now());
        return answer;
      },
    };
  },
  hooks: async (settings) => (await import('./session/open-hooks.js')).listHooks(settings),
  answers: openTrustFile,
  spelled: spelledOut,
};

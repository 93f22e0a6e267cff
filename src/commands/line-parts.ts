import { withCommandKey } from '../kernel/secrets/key-commands.js';
import {
  CliError,
  exit,
  type SecretGuards,
  type SystemChecks,
  type Models,
  type CommandStore,
  type Printer,
  type Tools,
  type Trust,
  type TrustedFiles,
} from '../kernel/console/command.js';
import type { LoadOptions } from '../kernel/config/load.js';
import { loadOnce } from '../kernel/core/runtime.js';
import type { Endpoint } from '../kernel/providers/catalog.js';
import { inspectStore } from '../kernel/store/inspect.js';
import { screenStreams } from '../ui/early-frame.js';
import type { RootOptions } from '../kernel/console/options.js';
import {
  errorsAreTerminal,
  outputIsTerminal,
  outputTaken,
  print,
  printData,
  printError,
} from '../kernel/console/print.js';
import { askHidden, askLine } from '../kernel/console/ask.js';
import { exportGuard, sessionGuard } from '../kernel/secrets/known-secrets.js';
import { newestHere, notePlace } from '../app/find-session.js';
import { directoryId } from '../kernel/disk/directory-id.js';
import { openPolicy } from '../app/open-policy.js';
import { openRecord, requestBody } from '../app/open-record.js';
import { projects } from '../app/project-files.js';
import { homeDirectory } from '../app/home-directory.js';
import { givenDirectory, readSettings, settingFlags, trustedBefore } from '../app/settings.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { askForFiles, askForTrust, terminalQuestion } from '../app/trust.js';
import { spelledOut } from '../kernel/core/text.js';
import type { ProjectFiles } from '../kernel/config/project.js';
import { openTrustFile } from '../kernel/config/trust-file.js';

import { sessionBeginning } from '../app/context-files.js';
import { checkEndpoint } from '../kernel/providers/discover.js';
import { sessionHost } from '../app/create-session.js';
import {
  checkRehearsals,
  checkSandbox,
  openSandbox,
  openToolbox,
  toolNames,
  unknownToolLimit,
  unknownToolLimits,
} from '../app/open-tools.js';
import { providerChoice, resolveReady } from '../app/model-resolution.js';
import { httpDependencies } from '../app/open-model.js';
import { loadWire } from '../kernel/providers/wires/known-wires.js';
import { openInBrowser } from '../kernel/secrets/keyring.js';

export type ReadSettings = () => Promise<Settings>;

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
    drained: outputTaken,
    error: printError,
    ask: askLine,
    askHidden,
    isTerminal: outputIsTerminal(),
    canAsk: process.stdin.isTTY && errorsAreTerminal(),
    screen: screenStreams().output,
  };
}

/** Opens the store for `use` and closes it again, also after a failure. Rejects where it cannot be opened. */
export async function withStore<T>(settings: Settings, use: (opened: CommandStore) => Promise<T>): Promise<T> {
  const { cwd } = settings;
  const { store, records, tables } = await openRecord(settings, (message) => {
    printError(`agent: ${message}\n`);
  });
  const here = { cwd, directoryId: directoryId(cwd) ?? undefined };
  try {
    return await use({
      store,
      records,
      tables,
      settings,
      newestHere: () => newestHere(store, here),
      notePlace: (row) => notePlace(store, row, here),
    });
  } finally {
    await store.close();
  }
}

export function createTools(read: ReadSettings): Tools {
  return {
    open: async (chosen, sandboxed) => {
      const settings = await read();
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
    host: async () => sessionHost((await read()).log),
    opening: async (registry, cwd) => {
      const none = { listing: async () => ({ text: '', notices: [] }), style: async () => null, notes: async () => '' };
      return (await sessionBeginning({ ...(await read()), cwd }, registry, { restored: [] }, none)).opening;
    },
    strayLimits: async (loaded) => await unknownToolLimits(loaded, toolNames()),
    strayLimit: async (name) => unknownToolLimit(name, toolNames()),
  };
}

export function createMachine(request: () => LoadOptions): SystemChecks {
  return {
    sandbox: async (config) => {
      const { env, cwd, home } = request();
      return await checkSandbox({ cwd, env, home, config });
    },
    rehearsals: async (config) => {
      const { env, cwd, home } = request();
      return await checkRehearsals({ cwd, env, home, config });
    },
    store: (config) => inspectStore(config.files.database),
    browse: async (url) => await openInBrowser(url, request().env),
  };
}

export function createModels(options: RootOptions, read: ReadSettings): Models {
  return {
    choice: async (provider, model) => providerChoice(await read(), { provider, model }),
    check: async (provider, model) => {
      const { model: _model, ...others } = options;
      const settings = await readSettings({ ...others, provider });
      const { ref, endpoint: resolved } = await resolveReady(settings, { provider, model });
      const endpoint = await withCommandKey(settings.keys.commands, resolved);
      if ('code' in endpoint) throw new CliError(exit.credentials, endpoint.message, endpoint.hint ?? '');
      if (endpoint.api === 'offline') return null;
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
    requestBody: async (request) => await requestBody(await read(), request),
  };
}

/** Returns the places of an endpoint's key: the file or the environment variables; null where it has no key. */
function keySource({ key, keyCommand, keyIsKept, keyEnv }: Endpoint): readonly string[] | null {
  if (key === null) return null;
  if (keyCommand !== undefined) return ['key_command'];
  return keyIsKept ? ['keys.json'] : keyEnv;
}

export function createGuards(read: ReadSettings): SecretGuards {
  return {
    session: async (events) => sessionGuard(await read(), events),
    export: async () => {
      const { env, secrets } = await read();
      return exportGuard(env, secrets, '[redacted]');
    },
  };
}

const nowhere = (): void => {
  /* There is no draft that what was typed could go to. */
};

function trustedFiles(settings: Settings, files: ProjectFiles): TrustedFiles {
  return {
    directory: files.directory,
    answer: projects.answerFor(settings, files),
    ask: async () => {
      const answer = await askForFiles(files, terminalQuestion(process.stdin, nowhere));
      const { files: answers } = openTrustFile(settings.config.files.trust);
      if (answer !== 'unanswered') answers.record(files, answer === 'yes', Date.now());
      return answer;
    },
  };
}

export const trust: Trust = {
  ask: async (project) => await askForTrust(project, terminalQuestion(process.stdin, nowhere)),
  files: async (settings) => {
    const sets = [await projects.files(settings), await projects.userFiles(settings)];
    return sets.flatMap((files) => (files === null ? [] : [trustedFiles(settings, files)]));
  },
  answers: openTrustFile,
  spelled: spelledOut,
};

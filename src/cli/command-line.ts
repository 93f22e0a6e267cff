import type { Command } from 'commander';
import { type CommandLine, type FrontEnds } from '../kernel/console/command.js';
import { loadOnce } from '../kernel/core/runtime.js';
import { endingSignals, onEndingSignal } from '../ui/ending.js';
import type { RootOptions } from '../kernel/console/options.js';
import { readSettings } from '../app/settings.js';
import { Parts } from '../kernel/console/parts.js';
import { unattendedRunner } from '../kernel/console/unattended.js';
import {
  type ReadSettings,
  createPrinter,
  settingsRequest,
  createTools,
  createMachine,
  createModels,
  createGuards,
  trust,
  withStore,
} from '../commands/line-parts.js';
import { unattendedRuns } from '../app/unattended-runner.js';

const loadServed = () => import('../frontends/served-programs-code.js');

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
    tools: createTools(read),
    machine: createMachine(() => settingsRequest(options)),
    doors: createDoors(options),
    models: createModels(options, read),
    guards: createGuards(read),
    trust,
    settings: read,
    withStore: async (use) => await withStore(await read(), use),
    parts: new Parts().add(unattendedRunner, unattendedRuns(options)),
    onEnd: (listener) => {
      onEndingSignal((signal) => {
        listener(endingSignals[signal]);
      });
    },
  };
}

function createDoors(options: RootOptions): FrontEnds {
  return {
    tools: async () => await (await loadServed()).serveMcp(options),
    editor: async () => await (await loadServed()).serveEditors(options),
    pages: async (request) => await (await loadServed()).servePages(options, request),
    watch: async (request) => await (await loadServed()).watchSession(options, request),
    attach: async (session) => {
      const { runAttached } = await import('../frontends/repl/start-front-end.js');
      return await runAttached(options, session);
    },
    startDetached: async ({ id, cwd }) => {
      const { startDetached } = await import('../frontends/repl/detached-code.js');
      return await startDetached(['--cwd', cwd, '-r', id], options);
    },
    converse: async (words, print) => {
      const { runConversation } = await import('../frontends/repl/start-front-end.js');
      return await runConversation(words, print ? { ...options, print } : options, null);
    },
    answer: async (request) => await (await loadServed()).answerInJson(options, request),
  };
}

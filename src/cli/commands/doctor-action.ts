import { realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { loadConfig } from '../../config/load.js';
import { builtInPresets, keyNames } from '../../providers/catalog-presets.js';
import { sqliteVersion } from '../../store/driver.js';
import { runDoctor } from './doctor-command.js';
import { findRipgrep, freeBytes, reachesServer, storeFacts, terminalFacts } from './doctor-probes.js';
import type { RootOptions } from '../options.js';
import { checkSandbox } from '../open/sandbox-opening.js';
import { trustedBefore, trustFlags } from '../setup.js';
import { print } from '../print.js';
import { screenStreams } from '../repl/early-frame.js';

/** `agent doctor`: a broken configuration is one of its findings, so it is read here and not before. */
export async function doctorAction(
  options: RootOptions & { readonly json?: boolean },
  stdout: { write(text: string): unknown } = { write: print },
): Promise<number> {
  const { env } = process;
  const home = env.HOME ?? homedir();
  const loaded = await loadConfig({
    env,
    cwd: options.cwd ?? process.cwd(),
    home,
    set: options.set,
    flags: trustFlags(options),
    projectTrusted: trustedBefore(env, home),
  });
  const { files } = loaded.config;
  return await runDoctor(
    { stdout, json: options.json === true },
    {
      nodeVersion: process.version,
      terminal: terminalFacts(screenStreams().output, env),
      keys: Object.entries(builtInPresets)
        .filter(([, preset]) => preset.key_required !== false)
        .flatMap(([provider, preset]) =>
          keyNames(preset).map((variable) => ({ provider, variable, set: (env[variable] ?? '').trim() !== '' })),
        ),
      servers: Object.values(builtInPresets)
        .filter((preset) => preset.local === true)
        .map((preset) => {
          const { hostname, port } = new URL(preset.base_url);
          return { name: preset.label ?? hostname, host: hostname, port: Number(port) };
        }),
      sqliteVersion,
      ripgrep: () => findRipgrep(env),
      config: () => Promise.resolve({ file: files.config, problems: loaded.problems }),
      store: () => storeFacts(files.database),
      freeBytes: () => freeBytes(dirname(files.database)),
      reaches: (server) => reachesServer(server),
      more: async () => [
        await checkSandbox({ cwd: realpathSync(options.cwd ?? '.'), env, home, config: loaded.config }),
      ],
    },
  );
}

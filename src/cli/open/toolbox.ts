import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { ToolSpec } from '../../core/event.js';
import { didYouMean } from '../../core/nearest.js';
import type { Registry, Tool } from '../../core/tool.js';
import { builtinTools } from '../../tools/builtin.js';
import { createProcessRunner, type Confine, type ProcessRunner } from '../../tools/process.js';
import { createRegistry } from '../../tools/registry.js';
import { loadSchemaCompiler } from '../../tools/schema-compiler.js';
import { inTestMode } from '../../tools/test-mode.js';
import { CliError, exit } from '../cli-error.js';
import { createStreamMasks, secretVariables } from '../secrets.js';
import type { Setup } from '../setup.js';

/** The catalogue of this run, and what its tools have started. */
export interface Toolbox { readonly registry: Registry; readonly processes: ProcessRunner }

/** The tools of this run, in catalogue order. `chosen`: `--tools` (names or toolsets) or false for `--no-tools`. `confine`: of the sandbox, where tools
 *  are to run and one is wanted. Whatever a tool started ends with this process at the latest. */
export async function openToolbox(setup: Setup, chosen: string | boolean | undefined, confine?: Confine): Promise<Toolbox> {
  const { config } = setup;
  const processes = createProcessRunner({ watched: true, marker: { name: '_AGENT_RUN', value: randomUUID() }, ...(confine ? { confine } : {}) });
  process.once('exit', () => { processes.killNow(); });
  const tools = selectTools(allTools(setup, processes), chosen);
  const registry = createRegistry({
    compile: await loadSchemaCompiler(tools.map((tool) => tool.input_schema)), compileAt: 'first_use', maxOutputBytes: config.limits.maxOutputBytes, now: () => performance.now(),
  });
  for (const tool of tools) registry.register(tool, config.tools.limits[tool.name]);
  return { registry, processes };
}

function allTools(setup: Setup, processes: ProcessRunner): readonly Tool[] {
  const { config, env } = setup;
  const outputMask = createStreamMasks(setup.secrets);
  const tools = builtinTools({
    processes, env, protectedEnv: secretVariables(env, config.provider.custom), shell: existsSync('/bin/bash') || existsSync('/usr/bin/bash') ? 'bash' : 'sh',
    secretFiles: () => secretFiles(setup), maxReadBytes: config.fs.maxBytes, timeoutS: config.exec.timeoutS, maxTimeoutS: config.exec.maxTimeoutS,
    ...(outputMask ? { outputMask } : {}),
  }).filter((tool) => config.tools.toolsets.includes(tool.toolset));
  return setup.testMode ? inTestMode(tools) : tools;
}

/** What tells a file that holds secrets (`fs.deny`), by its absolute path. */
export async function secretFiles({ config, home }: Setup): Promise<(path: string) => boolean> {
  const { createSecretPaths } = await import('../../policy/secret-paths.js');
  const secrets = createSecretPaths(config.fs.deny, home);
  return (path) => secrets.matches(path);
}

function selectTools(tools: readonly Tool[], chosen: string | boolean | undefined): readonly Tool[] {
  if (chosen === false) return [];
  if (typeof chosen !== 'string') return tools;
  const names = chosen.split(',').map((name) => name.trim()).filter((name) => name !== '');
  const known = [...new Set(tools.flatMap((tool) => [tool.name, tool.toolset]))];
  for (const name of names) {
    if (!known.includes(name)) throw new CliError(exit.usage, `--tools: there is no tool or toolset \`${name}\``, `${didYouMean(name, known)} Known: ${known.join(', ')}`.trim());
  }
  return tools.filter((tool) => names.includes(tool.name) || names.includes(tool.toolset));
}

export function toolSpecs(registry: Registry): readonly ToolSpec[] {
  return registry.list().map(({ name, description, input_schema }) => ({ name, description, input_schema }));
}

import { dirname } from 'node:path';
import { upToRoot } from '../../kernel/config/load.js';
import { openTrustFile } from '../../kernel/config/trust-file.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { ToolsetHost } from '../../kernel/console/feature.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { toolFilesIn } from './tool-places.js';
import { customTools } from './load-tools.js';

/** Loads the tools of the user and of this project, as far as the user has allowed them. A name that is
 * taken is a notice, or a `CliError` (2) where these tools were asked for. */
export async function openCustom(
  { settings, processes, notify, isNamed }: ToolsetHost,
  taken: ReadonlyMap<string, string>,
): Promise<readonly DefinedTool[]> {
  const { config, env, cwd } = settings;
  const trust = openTrustFile(config.files.trust).tools;
  const allowed = trust.list().map(({ path }) => path);
  const files = toolFilesIn({ settings: dirname(config.files.config), project: upToRoot(cwd), allowed });
  if (files.length === 0) return [];
  const found = await customTools(files, {
    processes,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    timeoutMs: config.exec.timeoutS * 1000,
    isAllowed: (file) => trust.isAllowed(file),
    notify,
  });
  const owners = new Map([...taken].map(([name, set]) => [name, `the set ${set} of the program`]));
  const offered: DefinedTool[] = [];
  for (const { tool, file } of found) {
    const owner = owners.get(tool.name);
    if (owner === undefined) {
      owners.set(tool.name, file);
      offered.push(tool);
      continue;
    }
    const problem = `two tools are called \`${tool.name}\`: one of ${file} and one of ${owner}`;
    const remedy = `Rename the first, or remove it: agent tools remove ${file}`;
    if (isNamed('custom')) throw new CliError(exit.usage, problem, remedy);
    notify(`${problem}; the first is disabled. ${remedy}`);
  }
  return offered;
}

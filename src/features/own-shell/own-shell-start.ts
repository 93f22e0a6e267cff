import { commandEnv } from '../../kernel/config/sections.js';
import type { Session } from '../../kernel/agent/session.js';
import type { RunHost, RunPart, ToolsHost, ToolsPart } from '../../kernel/console/feature.js';
import { ownShell } from '../../kernel/console/own-shell.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { ExpandedArgs, Tool, ToolArgs } from '../../kernel/core/tool.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import { shellEnvironment } from '../../kernel/tools/bash.js';
import type { LoginShell } from './read-login-shell.js';

const loadCode = () => import('./own-shell-code.js');

/** Has commands use the login shell where the settings say so. The shell is read with the first command. */
export function openOwnShell({ settings, processes, parts }: ToolsHost): ToolsPart {
  if (settings.config.exec.shell !== 'own') return {};
  let read: LoginShell | null = null;
  const sessions = new Set<Session>();
  const loaded = loadOnce(async () => {
    const code = await loadCode();
    const { config, home } = settings;
    const env = commandEnv(settings);
    const found = await code.readLoginShell({
      processes,
      home,
      env: shellEnvironment(env, secretVariables(env, ownKeys(config))),
      shell: env['SHELL'] ?? '',
    });
    if (!found.ok) {
      const message = `Commands run without your aliases and functions: ${found.problem}`;
      for (const session of sessions) session.notify({ level: 'warn', code: 'own_shell', message });
    }
    read = found.ok ? found.shell : null;
    return { code, shell: read };
  });
  const expand = async (args: ToolArgs): Promise<ExpandedArgs | null> => {
    const { code, shell } = await loaded.get();
    const { command } = args;
    const expanded = shell && typeof command === 'string' ? code.expandCommand(command, shell) : null;
    return expanded && { args: { ...args, command: expanded.command }, facts: expanded.facts };
  };
  parts.add(ownShell, {
    addedPath: () => read?.path ?? [],
    report: (session) => {
      sessions.add(session);
      return () => sessions.delete(session);
    },
  });
  return { joined: (tools) => tools.map((tool) => (isShell(tool) ? { ...tool, expand } : tool)) };
}

/** Opens what the login shell does in a session: it hears why the shell could not be read. */
export function openOwnShellReports({ parts }: RunHost): RunPart | null {
  const shell = parts.find(ownShell);
  return shell && { follow: ({ session, within }) => (within ? () => undefined : shell.report(session)) };
}

function isShell({ toolset }: Tool): boolean {
  return toolset.name === 'exec';
}

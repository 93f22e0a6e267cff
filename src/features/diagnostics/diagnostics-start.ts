import { existsSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from '../../kernel/agent/session.js';
import { addNote } from '../../kernel/agent/session-note.js';
import type { RunHost, RunPart, ToolsHost, ToolsPart } from '../../kernel/console/feature.js';
import { commandEnv } from '../../kernel/config/sections.js';
import { type Here, type ProjectPart, projectRoot } from '../../kernel/config/project.js';
import { isError } from '../../kernel/core/envelope.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { Tool, ToolArgs, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import { shellEnvironment } from '../../kernel/tools/bash.js';
import { diagnosticsPart } from './diagnostics-parts.js';

const load = () => import('./diagnostics-code.js');

/** Has edits checked where the set is on. Nothing is loaded before the first edit. */
export function openDiagnostics(host: ToolsHost): ToolsPart {
  const { settings, processes, parts, registry } = host;
  const { config, cwd, home, projects } = settings;
  const sessions = new Map<string, Session>();
  const isOn = host.isOn('diagnostics');
  const checks = loadOnce(async () => {
    const { EditChecks } = await load();
    const env = commandEnv(settings);
    const here = { cwd, home, config };
    return new EditChecks({
      open: processes.open,
      root: realpathSync(cwd),
      projectRoot: realpathSync(projectRoot(here)),
      env: shellEnvironment(env, secretVariables(env, ownKeys(config))),
      registry,
      trust: async () => {
        const files = await projects.files(here);
        if (files === null) return 'nothing to trust';
        return projects.answerFor(here, files) === true ? 'trusted' : 'not trusted';
      },
      waitMs: config.diagnostics.waitMs,
      onLate: (id, note) => {
        const session = sessions.get(id);
        if (session) addNote(session, note);
      },
    });
  });
  parts.add(diagnosticsPart, {
    isOn,
    states: async () => (await checks.get()).states(),
    follow: (session) => {
      sessions.set(session.id, session);
      return () => sessions.delete(session.id);
    },
  });
  const checked = (tool: Tool): Tool => ({
    ...tool,
    run: async (args: ToolArgs, ctx: ToolContext): Promise<ToolOutcome> => {
      const outcome = await tool.run(args, ctx);
      if (isError(outcome.envelope) || ctx.cwd !== cwd) return outcome;
      const finding = await (await checks.get()).after(outcome.changes ?? [], ctx);
      if (finding === null) return outcome;
      const summary = [outcome.summary, finding.summary].filter((text) => text !== '').join('; ');
      return { ...outcome, envelope: { ...outcome.envelope, ...finding.facts }, summary };
    },
  });
  return {
    joined: (tools) => (isOn ? tools.map((tool) => (editing.includes(tool.name) ? checked(tool) : tool)) : tools),
    close: async () => {
      await (await checks.started())?.close();
    },
  };
}

/** Opens what the checks do in a session: it gets what is found after the result of an edit. */
export function openDiagnosticNotes({ parts }: RunHost): RunPart {
  return { follow: ({ session }) => parts.get(diagnosticsPart).follow(session) };
}

const editing = ['file_edit', 'file_write'];

/** Lists the language servers of the project, which need the user's trust. Loads nothing where there are none. */
export async function projectServers(here: Here): Promise<readonly ProjectPart[]> {
  const roots = [here.cwd, projectRoot(here)];
  if (!roots.some((root) => existsSync(join(root, 'node_modules', '.bin')))) return [];
  return (await load()).serverParts(here);
}

import {
  type Aside,
  checkVerb,
  inactiveFiles,
  inactiveLines,
  listedFile,
  type List,
  type Listing,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import { asideNotices, placesHere, type TrustedHere } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import type { CheckedFiles } from '../../kernel/console/feature.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { namesToCheck } from '../../kernel/console/work-problems.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { steerAgents } from './show-agents.js';
import { problemsOf } from './agent-problems.js';
import { type AgentRole, agentsIn, findAgents, type FoundAgents } from './roles.js';

/** `usual`: the model of agents whose file names none; null where that is the model of the session. */
function agentListing(
  { agents, shadowed, leftOut, untrusted, aside, ...found }: AgentsHere,
  usual: string | null,
): Listing {
  const inactive = inactiveFiles({ shadowed, leftOut, untrusted });
  return {
    rows: [...agents.map(agentRow), ...inactive],
    lines: [...agents.flatMap((role) => agentLines(role, usual)), ...inactiveLines(inactive)],
    problems: [...problemsOf(found), ...aside.map(({ message }) => message)],
  };
}

function agentRow(role: AgentRole): Readonly<Record<string, unknown>> {
  const { description, tools, withoutTools, model, effort, maxTurns, skills, mode, memory } = role;
  const limits = { model, effort, max_turns: maxTurns, skills, permission_mode: mode, memory };
  return { ...listedFile(role, null), description, tools, without_tools: withoutTools, ...limits };
}

function agentLines(role: AgentRole, usual: string | null): readonly string[] {
  const { name, description, origin, path, tools, withoutTools, model, mode } = role;
  const without = withoutTools.length === 0 ? '' : `, without ${withoutTools.join(', ')}`;
  const other = usual === null || role.inheritsModel ? 'that of the session' : `${usual} (models.roles.subagent)`;
  const strict = mode === null ? '' : `; permission mode: ${mode}`;
  return [
    `${name} (${origin}): ${description}`,
    ...(path === null ? [] : [`  ${path}`]),
    `  tools: ${tools?.join(', ') ?? 'those of the session'}${without}; model: ${model ?? other}${strict}`,
  ];
}

/** `untrusted`: the agents of a project that is not trusted. */
interface AgentsHere extends FoundAgents, Aside {
  readonly untrusted: readonly AgentRole[];
}

async function findRoles(settings: TrustedHere): Promise<AgentsHere> {
  const { aside } = await placesHere(settings, 'agents');
  return {
    ...(await findAgents(settings)),
    untrusted: agentsIn(aside).agents.filter(({ path }) => path !== null),
    aside: await asideNotices(settings),
  };
}

/** Returns the mistakes in files of agents, and the tools that they name. */
export async function checkAgentFiles(settings: TrustedHere): Promise<CheckedFiles> {
  const found = await findAgents(settings);
  const { agents } = found;
  const tools = agents.flatMap((agent) =>
    namesToCheck(agent).map((name) => ({ path: agent.path ?? agent.name, name })),
  );
  return { problems: problemsOf(found), tools };
}

const agentsOf: List = async ({ settings }) => {
  const here = await settings();
  return agentListing(await findRoles(here), usualModel(here));
};

function usualModel({ config }: Settings): string | null {
  return config.provider.roles.subagent ?? null;
}

export const listAgents: CommandHandler = listVerb('agent agents list --json', agentsOf);

export const agents: CommandHandler = {
  ...listAgents,
  slash: async (argument, repl) => {
    const { screen, settings, tools, roles } = repl;
    if (argument.trim() !== 'list' && (await steerAgents(argument, repl))) return;
    const { lines, problems } = agentListing(await findRoles(settings), roles.get('subagent'));
    const isOffered = tools.registry.get('agent') !== undefined;
    const notice = isOffered ? [] : ['They are not offered in this session; /tools +agents offers them.'];
    screen.print(sanitize([...lines, ...problems, ...notice].join('\n')));
  },
};

export const showAgent: CommandHandler = showVerb('agent agents show explore', async ({ settings }, name) => {
  const here = await settings();
  const { agents } = await findRoles(here);
  const role = agents.find((one) => one.name === name);
  if (!role)
    throw unknownName(
      'agent',
      name,
      agents.map((one) => one.name),
    );
  const prompt = role.prompt();
  return { row: { ...agentRow(role), prompt }, lines: [...agentLines(role, usualModel(here)), '', prompt] };
});

export const checkAgents: CommandHandler = checkVerb('agent agents check', 'agents', agentsOf);

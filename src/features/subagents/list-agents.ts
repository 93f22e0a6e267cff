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
import { sanitize } from '../../kernel/core/sanitize.js';
import { type AgentRole, agentsIn, findAgents, type FoundAgents } from './roles.js';

function agentListing({ agents, shadowed, leftOut, problems, untrusted, aside }: AgentsHere): Listing {
  const inactive = inactiveFiles({ shadowed, leftOut, untrusted });
  return {
    rows: [...agents.map(agentRow), ...inactive],
    lines: [...agents.flatMap((role) => agentLines(role)), ...inactiveLines(inactive)],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function agentRow(role: AgentRole): Readonly<Record<string, unknown>> {
  const { description, tools, withoutTools, model, maxTurns, skills, mode, memory } = role;
  const limits = { model, max_turns: maxTurns, skills, permission_mode: mode, memory };
  return { ...listedFile(role, null), description, tools, without_tools: withoutTools, ...limits };
}

function agentLines(role: AgentRole): readonly string[] {
  const { name, description, origin, path, tools, withoutTools, model, mode } = role;
  const without = withoutTools.length === 0 ? '' : `, without ${withoutTools.join(', ')}`;
  const strict = mode === null ? '' : `; permission mode: ${mode}`;
  return [
    `${name} (${origin}): ${description}`,
    ...(path === null ? [] : [`  ${path}`]),
    `  tools: ${tools?.join(', ') ?? 'those of the session'}${without};` +
      ` model: ${model ?? 'that of the session'}${strict}`,
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

const agentsOf: List = async ({ settings }) => agentListing(await findRoles(await settings()));

export const listAgents: CommandHandler = listVerb('agent agents list --json', agentsOf);

export const agents: CommandHandler = {
  ...listAgents,
  slash: async (_argument, { screen, settings, tools }) => {
    const { lines, problems } = agentListing(await findRoles(settings));
    const isOffered = tools.registry.get('agent') !== undefined;
    const notice = isOffered ? [] : ['They are not offered in this session; /tools +agents offers them.'];
    screen.print(sanitize([...lines, ...problems, ...notice].join('\n')));
  },
};

export const showAgent: CommandHandler = showVerb('agent agents show explore', async ({ settings }, name) => {
  const { agents } = await findRoles(await settings());
  const role = agents.find((one) => one.name === name);
  if (!role)
    throw unknownName(
      'agent',
      name,
      agents.map((one) => one.name),
    );
  const prompt = role.prompt();
  return { row: { ...agentRow(role), prompt }, lines: [...agentLines(role), '', prompt] };
});

export const checkAgents: CommandHandler = checkVerb('agent agents check', 'agents', agentsOf);

import {
  type Aside,
  checkVerb,
  type List,
  type Listing,
  listVerb,
  showVerb,
  unknownName,
} from '../../kernel/console/listed-files.js';
import { asideNotices, type TrustedHere } from '../../kernel/config/project.js';
import type { CommandHandler } from '../../kernel/console/command.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { type AgentRole, findAgents, type FoundAgents } from './roles.js';

function agentListing({ agents, shadowed, problems, aside }: FoundAgents & Aside): Listing {
  return {
    rows: [...agents.map((role) => agentRow(role, false)), ...shadowed.map((role) => agentRow(role, true))],
    lines: [
      ...agents.flatMap((role) => agentLines(role)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path ?? ''}`),
    ],
    problems: [...problems, ...aside.map(({ message }) => message)],
  };
}

function agentRow(role: AgentRole, hidden: boolean): Readonly<Record<string, unknown>> {
  const { name, description, path, origin, tools, withoutTools, model, maxTurns, skills, mode } = role;
  const limits = { model, max_turns: maxTurns, skills, permission_mode: mode };
  return { name, description, path, origin, tools, without_tools: withoutTools, ...limits, hidden };
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

async function findRoles(settings: TrustedHere): Promise<FoundAgents & Aside> {
  return { ...(await findAgents(settings)), aside: await asideNotices(settings) };
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
  return { row: { ...agentRow(role, false), prompt: role.prompt }, lines: [...agentLines(role), '', role.prompt] };
});

export const checkAgents: CommandHandler = checkVerb('agent agents check', 'agents', agentsOf);

import type { AgentRole } from '../../extensions/agents/roles.js';
import type { Skill } from '../../extensions/skills/read-skills.js';
import { sanitize } from '../../terminal/sanitize.js';
import type { Verb } from '../command.js';

/** Sends the message that stands in a file of `config/prompts`; the session reads it. */
function sent(name: string): Verb {
  return {
    slash: (argument, { screen }) => {
      screen.send(`/${name} ${argument}`.trimEnd());
      return Promise.resolve();
    },
  };
}

export const initProject = sent('init');
export const reviewChanges = sent('review');

/** Lists skills, those that another one hides, and what is wrong with files of skills. */
export const listSkills: Verb = {
  slash: async (_argument, { screen, tools }) => {
    const { skills, shadowed, problems, aside } = await tools.skills();
    const lines = [
      ...skills.flatMap((skill) => linesOf(skill)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path}`),
      ...problems,
      ...aside.map(({ message }) => message),
    ];
    if (lines.length === 0)
      screen.notice('info', 'There are no skills. docs/extending.md says where they are looked for.');
    else screen.print(sanitize(lines.join('\n')));
  },
};

function linesOf({ name, description, path, origin, allowedTools, forModel, forUser }: Skill): readonly string[] {
  const who = forModel ? (forUser ? '' : ', for the model alone') : ', by hand alone';
  return [
    `${name} (${origin}${who}): ${description}`,
    `  ${path}`,
    ...(allowedTools === null ? [] : [`  asks for ${allowedTools}; that grants nothing`]),
  ];
}

/** Lists agents, those that another one hides, and what is wrong with their files. */
export const listAgents: Verb = {
  slash: async (_argument, { screen, tools }) => {
    const { agents, shadowed, problems } = await tools.agents();
    const { aside } = await tools.skills();
    const isOffered = tools.registry.get('agent') !== undefined;
    const lines = [
      ...agents.flatMap((role) => linesOfAgent(role)),
      ...shadowed.map(({ name, path }) => `${name}: hidden by the one above, ${path ?? ''}`),
      ...problems,
      ...aside.map(({ message }) => message),
      ...(isOffered ? [] : ['They are not offered in this session; /tools +agents offers them.']),
    ];
    screen.print(sanitize(lines.join('\n')));
  },
};

function linesOfAgent(role: AgentRole): readonly string[] {
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

import type { Feature } from '../../kernel/console/feature.js';

/** Commands in files, and skills. */
export const promptsAndSkills: Feature = {
  name: 'prompts-and-skills',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['skills', 'the skills that are found, and where'],
          slash: ['skills', 'the skills that are found, and where; /skill:name uses one'],
          load: async () => (await import('./list-skills.js')).skills,
        },
        {
          line: ['skills list', 'list them'],
          load: async () => (await import('./list-skills.js')).listSkills,
        },
        {
          line: ['skills show <name>', 'one of them, with its text'],
          load: async () => (await import('./list-skills.js')).showSkill,
        },
        {
          line: ['skills check', 'read their files and say what is wrong; ends with 2 where something is'],
          load: async () => (await import('./list-skills.js')).checkSkills,
        },
      ],
    },
    {
      heading: null,
      entries: [
        {
          slash: ['init [what matters]', 'write AGENTS.md, instructions for agents, from this repository'],
          load: async () => (await import('./prompt-commands.js')).initProject,
        },
        {
          slash: ['review [commit, branch or range]', 'review changes: not committed, or since a commit or branch'],
          load: async () => (await import('./prompt-commands.js')).reviewChanges,
        },
      ],
    },
  ],
  projectParts: async (here) => await (await import('./text-parts.js')).textParts(here),
};

import type { Feature } from '../../kernel/console/feature.js';

/** Commands in files, and skills. */
export const promptsAndSkills: Feature = {
  name: 'prompts-and-skills',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['init [what matters]', 'write AGENTS.md, instructions for agents, from this repository'],
          load: async () => (await import('./written-prompts.js')).initProject,
        },
        {
          slash: ['review [commit, branch or range]', 'review changes: not committed, or since a commit or branch'],
          load: async () => (await import('./written-prompts.js')).reviewChanges,
        },
      ],
    },
  ],
  projectParts: async (here) => await (await import('./text-parts.js')).textParts(here),
};

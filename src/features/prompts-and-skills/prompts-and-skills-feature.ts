import type { Feature } from '../../kernel/console/feature.js';

/** Commands in files, and skills. */
export const promptsAndSkills: Feature = {
  name: 'prompts-and-skills',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['skills', 'List skills and their files'],
          slash: ['skills', 'List skills; /skill:name uses one'],
          load: async () => (await import('./list-skills.js')).skills,
        },
        {
          line: ['skills list', 'List skills and their files'],
          load: async () => (await import('./list-skills.js')).listSkills,
        },
        {
          line: ['skills show <name>', 'Show a skill with its text'],
          load: async () => (await import('./list-skills.js')).showSkill,
        },
        {
          line: ['skills check', 'Check skill files; exits with 2 if there are problems'],
          load: async () => (await import('./list-skills.js')).checkSkills,
        },
      ],
    },
    {
      heading: null,
      entries: [
        {
          slash: ['init [what matters]', 'Write AGENTS.md for this repository'],
          load: async () => (await import('./prompt-commands.js')).initProject,
        },
        {
          slash: ['review [commit, branch or range]', 'Review uncommitted changes, or those since a commit or branch'],
          load: async () => (await import('./prompt-commands.js')).reviewChanges,
        },
      ],
    },
  ],
  openRun: async (host) => await (await import('./open-commands.js')).openPromptPart(host),
  projectParts: async (here) => await (await import('./text-parts.js')).textParts(here),
};

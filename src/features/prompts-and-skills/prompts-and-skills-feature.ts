import type { Feature } from '../../kernel/console/feature.js';
import { openPromptPart, textParts } from './prompts-and-skills-start.js';

const load = () => import('./prompts-and-skills-code.js');

/** Commands in files, and skills. */
export const promptsAndSkills: Feature = {
  name: 'prompts-and-skills',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['skills', 'List skills and their files'],
          slash: ['skills', 'List skills; /skill:name uses one', 'tools'],
          also: 'plugins',
          isHarmless: true,
          load: async () => (await load()).skills,
        },
        {
          line: ['skills list', 'List skills and their files'],
          load: async () => (await load()).listSkills,
        },
        {
          line: ['skills show <name>', 'Show a skill with its text'],
          load: async () => (await load()).showSkill,
        },
        {
          line: ['skills check', 'Check skill files; exits with 2 if there are problems'],
          load: async () => (await load()).checkSkills,
        },
        {
          line: ['commands', 'List commands in files'],
          load: async () => (await load()).listCommands,
        },
        {
          line: ['commands list', 'List commands in files and where they come from'],
          load: async () => (await load()).listCommands,
        },
        {
          line: ['commands show <name>', 'Show a command with its text'],
          load: async () => (await load()).showCommand,
        },
        {
          line: ['commands check', 'Check command files; exits with 2 if there are problems'],
          load: async () => (await load()).checkCommands,
        },
      ],
    },
    {
      heading: null,
      entries: [
        {
          slash: ['init [what matters]', 'Write AGENTS.md for this repository', 'files'],
          also: 'agents.md claude.md',
          load: async () => (await load()).initProject,
        },
        {
          slash: [
            'review [commit, branch or range]',
            'Review uncommitted changes, or those since a commit or branch',
            'files',
          ],
          also: 'pr code-review security-review audit',
          load: async () => (await load()).reviewChanges,
        },
      ],
    },
  ],
  importers: async () => {
    const { commandImporter, skillImporter } = await import('./prompt-importers-code.js');
    return [skillImporter, commandImporter];
  },
  checkFiles: async (settings) => (await load()).checkTextFiles(settings),
  openRun: async (host) => await openPromptPart(host, load),
  projectParts: async (here) => await textParts(here, load),
};

import type { Feature } from '../../kernel/console/feature.js';
import { openedJobs } from './job-parts.js';

const load = () => import('./open-jobs.js');

/** Commands that continue in the background. */
export const backgroundTasks: Feature = {
  name: 'background-tasks',
  toolsets: [
    {
      name: 'jobs',
      on: false,
      inRepl: true,
      about: 'Offer commands that run in the background.',
      tools: ['jobs'],
      load: async ({ parts }) => [(await import('./jobs-tool.js')).jobsTool(await parts.get(openedJobs).get())],
    },
  ],
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['jobs [number, kill or background]', 'List background tasks, show their output, or stop one'],
          load: async () => (await import('./show-jobs.js')).showJobs,
        },
      ],
    },
  ],
  openTools: async (host) => (await load()).openJobTools(host),
  openRun: async (host) => (await load()).openJobPart(host),
};

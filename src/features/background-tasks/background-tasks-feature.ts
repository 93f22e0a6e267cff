import type { Feature } from '../../kernel/console/feature.js';
import { openedJobs } from './job-parts.js';
import { loadJobs, loadWakes, openJobPart, openJobTools } from './background-tasks-start.js';

/** Commands that continue in the background. */
export const backgroundTasks: Feature = {
  name: 'background-tasks',
  toolsets: [
    {
      name: 'jobs',
      on: false,
      inRepl: true,
      about: 'Offer background commands.',
      tools: ['jobs'],
      load: async ({ parts }) => [(await loadJobs()).jobsTool(await parts.get(openedJobs).get())],
    },
  ],
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: [
            'jobs|bashes|ps [number, kill or background]',
            'List background tasks, show their output, or stop one',
            'tools',
          ],
          also: 'background processes shells',
          load: async () => (await loadWakes()).showJobs,
        },
      ],
    },
  ],
  openTools: (host) => Promise.resolve(openJobTools(host)),
  openRun: (host) => Promise.resolve(openJobPart(host)),
  openRepl: ({ parts }) =>
    Promise.resolve({
      start: () => {
        parts.get(openedJobs).beginTurns();
      },
    }),
};

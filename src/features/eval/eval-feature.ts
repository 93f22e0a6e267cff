import type { Feature } from '../../kernel/console/feature.js';
import { openEval } from './eval-start.js';

const load = () => import('./eval-code.js');

/** Tasks that models are measured by: the user's own sessions, made again. */
export const evaluation: Feature = {
  name: 'eval',
  openRun: (host) => Promise.resolve(openEval(host)),
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['eval', 'Measure models by your own tasks: make, run and compare evaluations'],
          load: async () => (await load()).evaluate,
        },
        {
          line: ['eval new', 'Make a task from a session: its commit, messages and change'],
          load: async () => (await load()).newTask,
        },
        {
          line: ['eval run [tasks...]', 'Run tasks with one or more models, each in a copy of its repository'],
          load: async () => (await load()).runTasks,
        },
        {
          line: ['eval list', 'List evaluations'],
          load: async () => (await load()).listRuns,
        },
        {
          line: ['eval report <run>', 'Show an evaluation, or write it as a page'],
          load: async () => (await load()).reportRun,
        },
        {
          line: ['eval compare <run> <other>', 'Compare two evaluations task by task'],
          load: async () => (await load()).compareRuns,
        },
        {
          line: ['eval rm <run>', 'Delete an evaluation; its sessions stay'],
          load: async () => (await load()).removeRun,
        },
      ],
    },
  ],
};

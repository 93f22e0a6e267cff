import type { Feature } from '../../kernel/console/feature.js';

/** The list of the steps of a task. */
export const todo: Feature = {
  name: 'todo',
  toolsets: [
    {
      name: 'todo',
      on: false,
      inRepl: true,
      about: 'Offer a list of the steps of a task.',
      tools: ['todo'],
      load: async () => (await import('./step-list.js')).todoTools(),
    },
  ],
};

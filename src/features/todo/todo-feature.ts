import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./todo-code.js');

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
      load: async () => (await load()).todoTools(),
    },
  ],
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['todos', 'Show the todo list of this session', 'tools'],
          also: 'todo steps progress checklist',
          isHarmless: true,
          load: async () => (await load()).showTodos,
        },
      ],
    },
  ],
};

import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./ask-and-plan-code.js');

/** Questions to the user, and plans for the user to agree to. */
export const askAndPlan: Feature = {
  name: 'ask-and-plan',
  toolsets: [
    {
      name: 'ask',
      on: false,
      inRepl: true,
      about: 'Offer questions and plans for you to approve.',
      tools: ['ask_user', 'propose_plan'],
      load: async ({ approval }) => (approval ? (await load()).askTools(approval) : []),
    },
  ],
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['plan [request or off]', 'Turn plan mode on, or off to run the plan', 'conversation'],
          also: 'planning read-only',
          load: async () => (await load()).planMode,
        },
      ],
    },
  ],
};

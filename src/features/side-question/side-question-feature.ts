import type { Feature } from '../../kernel/console/feature.js';

/** Questions of the user beside the conversation. */
export const sideQuestion: Feature = {
  name: 'side-question',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: [
            'btw|side [question]',
            'Ask beside the conversation, also while a turn runs; without a question, show the last one again',
            'conversation',
          ],
          also: 'aside question ask quick',
          beside: true,
          needsScreen: 'Ask a copy of the session: agent -p -c --fork "question".',
          load: async () => (await import('./ask-side-question.js')).btw,
        },
      ],
    },
  ],
};

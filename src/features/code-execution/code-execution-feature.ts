import { join } from 'node:path';
import type { Feature } from '../../kernel/console/feature.js';

/** Code in a sandbox. */
export const codeExecution: Feature = {
  name: 'code-execution',
  toolsets: [
    {
      name: 'code',
      on: false,
      about: 'Offer to run code in a sandbox.',
      tools: ['execute_code'],
      load: async ({ settings: { env, home, config }, notify }) =>
        (await import('./execute-code.js')).codeTools({
          env,
          home,
          notify,
          tried: join(config.files.cache, 'sandbox-tried'),
        }),
    },
  ],
};

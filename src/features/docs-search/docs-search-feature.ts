import type { Feature } from '../../kernel/console/feature.js';

/** A search in documents. */
export const docsSearch: Feature = {
  name: 'docs-search',
  toolsets: [
    {
      name: 'docs',
      on: false,
      about: 'Offer to search documents.',
      tools: ['doc_search'],
      load: async (host) => (await import('./open-docs.js')).openDocs(host),
    },
  ],
};

import { join } from 'node:path';
import type { ToolsetHost } from '../../kernel/console/feature.js';
import { createFetch } from '../../kernel/network/proxied.js';
import { embeddingsKey } from '../../kernel/secrets/known-secrets.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { docsTools } from './search-documents.js';
import { openDocIndex } from './doc-rows.js';

export function openDocs({ settings, notify, hiddenFiles }: ToolsetHost): readonly DefinedTool[] {
  const { env, config } = settings;
  const { baseUrl, model } = config.docs.embeddings;
  if ((baseUrl === null) !== (model === null))
    notify('doc_search finds only by words: docs.embeddings needs base_url and model.');
  return docsTools({
    open: () => openDocIndex(join(config.files.cache, 'docs.db')),
    env,
    now: () => performance.now(),
    isHidden: async () => {
      const whyHidden = await hiddenFiles();
      return (path) => whyHidden(path) !== null;
    },
    ...(baseUrl !== null && model !== null
      ? { embeddings: { baseUrl, model, key: env[embeddingsKey], fetch: createFetch(env) } }
      : {}),
  });
}

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { noSession } from '../../../src/kernel/core/tool.js';
import { openDocIndex } from '../../../src/features/docs-search/doc-rows.js';
import { docsTools } from '../../../src/features/docs-search/search-documents.js';

// `npm run t:docs -- [folder]`: indexes a folder of documents (node_modules unless given) and asks it questions. Prints
// documents, passages, seconds and the time of a query; fails where a question finds nothing.

const folder = resolve(process.argv[2] ?? 'node_modules');
const place = mkdtempSync(join(tmpdir(), 'agent-docs-'));
const file = join(place, 'docs.db');
const questions = [
  'license',
  'how to install',
  'maximum file size',
  'abort signal timeout',
  'changelog breaking changes',
];

const [tool] = docsTools({
  open: () => openDocIndex(file),
  env: process.env,
  now: () => performance.now(),
  isHidden: () => Promise.resolve(() => false),
});

async function ask(
  query: string,
): Promise<{ readonly ms: number; readonly envelope: Readonly<Record<string, unknown>> }> {
  const start = performance.now();
  const outcome = await tool?.run(
    { query },
    {
      cwd: folder,
      session: noSession,

      signal: new AbortController().signal,
      sandbox: 'off',
      limits: { timeoutMs: 120_000, maxOutputBytes: 32_768 },
      knownFiles: new Map(),
      eventOutput: () => null,
      progress: () => {},
    },
  );
  return { ms: performance.now() - start, envelope: outcome?.envelope ?? {} };
}

const first = await ask('license');
const { documents, passages } = first.envelope;
console.log(
  `${String(documents)} documents, ${String(passages)} passages, indexed in ${(first.ms / 1000).toFixed(2)} s`,
);
console.log(`index: ${(statSync(file).size / 1e6).toFixed(1)} MB`);

const index = await openDocIndex(file);
let failures = first.envelope['count'] === 0 ? 1 : 0;
for (const query of questions) {
  const again = await ask(query);
  const times: number[] = [];
  for (let i = 0; i < 20; i++) {
    const start = performance.now();
    index.byWords({ root: folder, prefix: '' }, query, 5);
    times.push(performance.now() - start);
  }
  const median = times.toSorted((a, b) => a - b)[10] ?? 0;
  if (again.envelope['count'] === 0) failures++;
  console.log(`${query}: call ${again.ms.toFixed(0)} ms (files looked at again), query ${median.toFixed(1)} ms`);
}
index.close();
rmSync(place, { recursive: true, force: true });
process.exitCode = failures === 0 ? 0 : 1;

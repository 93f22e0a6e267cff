import { type ChildProcess, spawn } from 'node:child_process';
import { symlinkSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import { openDocIndex } from '../../../src/features/docs-search/doc-rows.js';
import { type DocsOptions, docsTools } from '../../../src/features/docs-search/search-documents.js';
import { fuse } from '../../../src/features/docs-search/embeddings.js';
import { context, envelopeOf, tree } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

let server: ChildProcess | undefined;
let baseUrl = '';
const requests: string[] = [];

beforeAll(async () => {
  const file = fileURLToPath(new URL('embedding-server.mjs', import.meta.url));
  server = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  baseUrl = await new Promise<string>((resolve) => {
    createInterface({ input: server?.stdout ?? process.stdin }).on('line', (line) => {
      if (/^\d+$/.test(line)) resolve(`http://127.0.0.1:${line}`);
      else requests.push(line);
    });
  });
});
afterAll(() => {
  server?.kill();
});

function searcher(changed: Partial<DocsOptions> = {}) {
  const file = join(tree(), 'docs.db');
  const tools = registryOf(
    docsTools({
      open: () => openDocIndex(file),
      env: {},
      now: () => 0,
      isHidden: () => Promise.resolve((path) => path.endsWith('secret.md')),
      ...changed,
    }),
  );
  return (cwd: string, args: object, ctx: Partial<ToolContext> = {}) =>
    envelopeOf('doc_search', args, context(cwd, ctx), tools);
}

const garden = {
  '.git/HEAD': '',
  '.gitignore': 'built/\n',
  'docs/guide.md': '# Guide\n\nIntro.\n\n## Installing\n\nRun the installer.\n\n## Removing\n\nDelete the folder.\n',
  'docs/old.rst': 'Removing\n========\n\nNot supported.\n',
  'built/page.md': '# Removing\n\nOf the build.\n',
  'secret.md': '# Removing\n\nThe key is 42.\n',
  'code.ts': '// removing',
  'binary.txt': 'removing\0',
};

test('passages are found with their place, their headings and the words around', async () => {
  expect(await searcher()(tree(garden), { query: 'installers', limit: 1 })).toEqual({
    output: 'docs/guide.md:5-8  Guide > Installing\n    ## Installing Run the installer.',
    count: 1,
    documents: 3,
    passages: 4,
  });
});

test('ignored and secret files are not indexed, unless the ignored folder is named', async () => {
  const search = searcher();
  const root = tree(garden);
  const output = JSON.stringify(await search(root, { query: 'removing' })).replaceAll('\\n', '\n');
  expect(output.replace('{"output":"', '').match(/^\S+:\d+-\d+/gm)).toEqual(['docs/old.rst:1-5', 'docs/guide.md:9-12']);
  expect(await search(root, { query: 'removing', path: 'built' })).toMatchObject({
    output: 'built/page.md:1-4  Removing\n    # Removing Of the build.',
    count: 1,
  });
  expect(await search(root, { query: 'removing' })).toMatchObject({ documents: 3 });
  expect(await search(root, { query: 'removing', path: 'docs/guide.md' })).toMatchObject({ count: 1, documents: 3 });
  expect(await search(root, { query: 'removing', path: 'none' })).toMatchObject({ code: 'not_found' });
});

test('the next search sees what was written, changed and removed since', async () => {
  const search = searcher();
  const root = tree({ 'a.md': 'wolf', 'b.md': 'bear' });
  const found = async (query: string) => (await search(root, { query })).count;
  expect([await found('wolf'), await found('fox')]).toEqual([1, 0]);
  writeFileSync(join(root, 'a.md'), 'foxx');
  utimesSync(join(root, 'a.md'), 1, 1);
  writeFileSync(join(root, 'c.md'), 'wolf wolf');
  unlinkSync(join(root, 'b.md'));
  expect([await found('wolf'), await found('foxx'), await found('bear')]).toEqual([1, 1, 0]);
});

test('indexing stops when its time is over, and goes on with the next search', async () => {
  let now = 0;
  const search = searcher({ now: () => (now += 600) });
  const root = tree(Object.fromEntries([...Array(120).keys()].map((index) => [`${index}.md`, `word ${index}`])));
  const first = await search(root, { query: 'word' });
  expect(first).toMatchObject({
    not_indexed: expect.any(Number) as number,
    note: 'The index is not complete yet; ask again.',
  });
  let last = first;
  for (let calls = 0; calls < 5 && 'not_indexed' in last; calls++) last = await search(root, { query: 'word' });
  expect(last).toMatchObject({ documents: 120 });
});

test('links are not followed out of the project, and a path that moved is refused', async () => {
  const root = tree({ 'a.md': 'inside' });
  const other = tree({ 'private.md': 'treasure' });
  symlinkSync(join(other, 'private.md'), join(root, 'link.md'));
  symlinkSync(other, join(root, 'folder'));
  const search = searcher();
  expect(await search(root, { query: 'treasure' })).toMatchObject({ count: 0 });
  expect(await search(root, { query: 'treasure', path: 'folder' }, { landings: [root] })).toMatchObject({
    code: 'execution_failed',
  });
});

const vehicles = {
  'a.md': '# Driving\n\nHow to start the automobile.\n',
  'b.md': '# Oven\n\nHow to start the meal.\n',
  'c.md': '# Harbour\n\nWhere the boat lies.\n',
};

test('with embeddings, what means the same is found too, and vectors are asked for once', async () => {
  const search = searcher({ embeddings: { baseUrl, model: 'small', key: 'local', fetch } });
  const root = tree(vehicles);
  requests.length = 0;
  expect(await search(root, { query: 'car', limit: 1 })).toMatchObject({
    output: expect.stringMatching(/^a\.md:1-4 {2}Driving/) as string,
  });
  expect(await search(root, { query: 'ship', limit: 1 })).toMatchObject({
    output: expect.stringMatching(/^c\.md:1-4 {2}Harbour/) as string,
  });
  expect(await searcher()(root, { query: 'car' })).toMatchObject({ count: 0 });
  expect(requests).toEqual(['1', '3', '1'].map((count) => `POST /v1/embeddings small ${count} Bearer local`));
});

test('what both rankings find comes before what is first in one', () => {
  const hit = (id: number) => ({ id, path: `${id}.md`, heading: '', fromLine: 1, toLine: 1, snippet: '' });
  expect(fuse([[1, 2, 3].map(hit), [4, 2, 5].map(hit)]).map(({ id }) => id)).toEqual([2, 1, 4, 3, 5]);
  expect(fuse([[], [hit(1)]])).toEqual([hit(1)]);
});

test('an endpoint that fails leaves the words', async () => {
  const cases = [
    [baseUrl, 'broken', `${baseUrl}/v1/embeddings answered 500`],
    [baseUrl, 'short', 'the answer does not contain a vector for each text'],
    ['http://127.0.0.1:1', 'none', 'fetch failed'],
  ] as const;
  for (const [address, model, problem] of cases) {
    const search = searcher({ embeddings: { baseUrl: address, model, fetch } });
    expect(await search(tree(vehicles), { query: 'automobile' })).toMatchObject({
      count: 1,
      embeddings: `found only by words: ${problem}`,
    });
  }
});

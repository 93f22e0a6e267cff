import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { startDouble } from '../features/web/http-double.js';
import { agent, place, script } from './inside.js';

const double = await startDouble();
afterAll(() => {
  double.close();
});
beforeEach(() => {
  double.seen.length = 0;
});
const key = 'key-of-the-service-0001';
const searching = [{ calls: [{ name: 'web_search', arguments: { query: 'bread' } }] }, { text: 'Done.' }];

/** All that the program has written, in its files and on its streams. */
function written(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n');
}

test('a key of a search service stands in no event, log, error or output, and no command gets it', async () => {
  const at = place();
  Object.assign(at.env, { TAVILY_API_KEY: key });
  const named = [
    '--set',
    'web.search.provider=tavily',
    '--set',
    `web.search.base_url=${double.url}`,
    '--tools',
    '+web',
  ];
  double.script(
    { body: { results: [{ url: `https://a.example/?k=${key}`, title: `T ${key}`, content: 'c' }] } },
    { status: 401, body: key },
  );
  const log = ['--debug'];
  const runs = [
    await agent(at, [...named, ...log, '-m', script(at, searching), '--output-format', 'stream-json', '-p', 'go']),
    await agent(at, [...named, ...log, '-m', script(at, searching), '--output-format', 'stream-json', '-p', 'go']),
    await agent(at, [
      ...named,
      '--approval',
      'never',
      'tools',
      'call',
      'bash',
      '{"command":"echo ${TAVILY_API_KEY-unset}"}',
    ]),
    await agent(at, [...named, 'audit']),
  ];
  const shown = runs.map(({ stdout, stderr }) => stdout + stderr).join('\n');
  expect(double.seen.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${key}`, `Bearer ${key}`]);
  expect(shown).toContain('count\\":1,\\"provider\\":\\"tavily');
  expect(shown).toContain('{"output":"unset');
  expect(shown).toContain('tavily refused the search (401): check TAVILY_API_KEY.');
  expect(shown + written(at.home)).not.toContain(key);
});

test('without anything that can search the tool is not offered, and a notice says what to set', async () => {
  const at = place();
  const { stderr, stdout } = await agent(at, [
    '--tools',
    '+web',
    '-m',
    script(at, searching),
    '--output-format',
    'stream-json',
    '-p',
    'go',
  ]);
  expect(stderr + stdout).toContain('web_search is not offered: no search is set up: set BRAVE_API_KEY, ');
  expect(stdout).toContain('unknown_tool');
  const tested = await agent(at, [
    '--test',
    '--tools',
    '+web',
    '-m',
    script(at, searching),
    '--output-format',
    'stream-json',
    '-p',
    'go',
  ]);
  expect(tested.stdout).toContain('[test mode] web_search not run');
  expect(double.seen).toEqual([]);
});

test("the search of the model's provider is one more request, whose usage and price are recorded and limited", async () => {
  const provider = { base_url: double.url, api: 'openai-responses', key_env: 'OWN_CREDENTIAL', search: 'openai' };
  const at = place();
  Object.assign(at.env, { OWN_CREDENTIAL: key });
  const call = { type: 'function_call', id: 'f', call_id: 'c1', name: 'web_search', arguments: '{"query":"bread"}' };
  const message = { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] };
  const answer = (output: readonly object[], tokens: number) => ({
    headers: { 'content-type': 'text/event-stream' },
    body: `data: ${JSON.stringify({
      type: 'response.completed',
      response: { id: 'r', status: 'completed', output, usage: { input_tokens: tokens, output_tokens: 1 } },
    })}\n\n`,
  });
  const found = {
    output: [
      { type: 'web_search_call', action: { type: 'search', sources: [{ type: 'url', url: 'https://a.example/' }] } },
    ],
    usage: { input_tokens: 7000, output_tokens: 50 },
  };
  double.script(answer([call], 100), { body: found }, answer([message], 200));
  const model = { 'own/m': { input_usd: 1, output_usd: 2, web_search_usd: 0.01 } };
  const args = ['--set', `providers.own=${JSON.stringify(provider)}`, '--set', `models=${JSON.stringify(model)}`];
  const own = [...args, '--tools', '+web', '-m', 'own/m', '--max-cost', '1'];
  const { stdout, stderr, code } = await agent(at, [...own, '--output-format', 'stream-json', '-p', 'go']);
  expect([code, stderr]).toEqual([0, '']);
  expect(double.seen.map(({ url }) => url)).toEqual(['/responses', '/responses', '/responses']);
  const bodies = double.seen.map(({ body }) => JSON.parse(body) as { readonly tools: readonly unknown[] });
  expect(bodies[1]).toMatchObject({ tools: [{ type: 'web_search' }], stream: false });
  expect(JSON.stringify(bodies[2])).toContain('https://a.example/');
  expect(JSON.stringify(bodies[2])).not.toContain('web_search_call');
  expect(stdout).toContain('"provider":"native"'.replaceAll('"', '\\"'));
  const audit = await agent(at, ['sql', "select data_json from events where kind = 'usage' order by seq"]);
  expect(audit.stdout).toMatch(/"input_tokens":\s*7000[^]*"cost_usd":\s*0\.0171[^]*"purpose":\s*"web_search"/);
});

test("seed 001's search can be tried without a network, on a service that stands in for SearXNG", async () => {
  const service = fileURLToPath(new URL('../../fixtures/offline/search-service.mjs', import.meta.url));
  const child = spawn(process.execPath, [service, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill();
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const at = place();
  const args = ['--tools', '+web', '-m', 'offline/search', '--output-format', 'stream-json', '-p', 'go'];
  const { code, stdout } = await agent(at, ['--set', `web.search.base_url=${String(line).trim()}`, ...args]);
  expect(code).toBe(0);
  expect(stdout).toContain('1. Sourdough\\\\n   https://encyclopedia.example/sourdough\\\\n   Bread raised');
  expect(stdout).toContain('\\"count\\":3,\\"provider\\":\\"searxng\\",\\"untrusted\\":true');
});

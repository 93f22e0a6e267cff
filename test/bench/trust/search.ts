import { openTransport } from '../../../src/kernel/providers/http/transport.js';
import { searchNatively } from '../../../src/kernel/providers/native-search.js';
import { searchEngines, type SearchServiceName } from '../../../src/features/web/search-engines.js';
import { webSearchTool } from '../../../src/features/web/search-web.js';
import { vendorEndpoint } from '../../kernel/providers/vendors.js';
import { type Reply, startDouble } from '../../features/web/http-double.js';
import { answers, nothing, results } from '../../features/web/search-samples.js';

// `npm run t:search`: every search service and every provider's search on a server of this machine. Prints what a model is told of each
// answer, and fails where one is told wrongly or a key stands in it.
const key = 'secret-key-of-a-service';
const double = await startDouble();
const transport = await openTransport(double.url, {});
// Clients do not take back what they put on a signal, so each call has one of its own.
const signal = (): AbortSignal => new AbortController().signal;

const replies = (
  found: unknown,
  none: unknown,
): readonly (readonly [name: string, expected: RegExp, reply: Reply])[] => [
  ['results', /^2$/, { body: found }],
  ['none', /^0$/, { body: none }],
  ['401', /^execution_failed$/, { status: 401, body: key }],
  ['403', /^execution_failed$/, { status: 403, body: key }],
  ['429', /^rate_limited 9000$/, { status: 429, headers: { 'retry-after': '9' }, body: key }],
  ['500', /^execution_failed$/, { status: 500, body: key }],
  ['redirect', /^execution_failed$/, { status: 302, headers: { location: 'https://evil.example/' } }],
  ['HTML', /^execution_failed$/, { body: `<html>${key}</html>` }],
  ['cut JSON', /^execution_failed$/, { body: '{"results": [' }],
  ['anomaly', /^(?:execution_failed|rate_limited 60000)$/, { body: '<div class="anomaly-modal__mask"></div>' }],
];

const noneNatively: Readonly<Record<string, object>> = {
  openai: { output: [{ type: 'web_search_call', action: { sources: [] } }] },
  anthropic: { content: [{ type: 'web_search_tool_result', content: [] }] },
  google: { candidates: [{ groundingMetadata: { webSearchQueries: ['x'], groundingChunks: [] } }] },
  openrouter: { choices: [{ message: {} }], usage: { server_tool_use: { web_search_requests: 1 } } },
};

function service(name: SearchServiceName) {
  const choice = { service: name, baseUrl: double.url, key, keyEnv: 'A_KEY' };
  return webSearchTool({ choice, send: transport.send, now: Date.now });
}

function native(preset: string) {
  const { endpoint, ref } = vendorEndpoint(preset, double.url);
  const { search } = endpoint;
  if (search === undefined) throw new Error(`${preset} has no search`);
  const d = { env: {}, now: Date.now, facts: () => null };
  const searchWeb = async (request: Parameters<typeof searchNatively>[1]) =>
    (await searchNatively({ ...endpoint, key, search }, request, ref, d)).answer;
  const tool = webSearchTool({ choice: { service: 'native' }, send: transport.send, now: Date.now });
  return { ...tool, run: (args: never) => tool.run(args, { signal: signal(), session: { searchWeb } } as never) };
}

const rows = [
  ...(Object.keys(searchEngines) as readonly SearchServiceName[]).map((name) => ({
    name,
    tool: service(name),
    cases: replies(results[name], nothing[name]),
  })),
  ...Object.keys(answers).map((name) => ({
    name: `native: ${name}`,
    tool: native(name),
    cases: replies(answers[name], noneNatively[name]),
  })),
];

let wrong = 0;
let leaks = 0;
let asked = 0;
for (const { name, tool, cases } of rows) {
  const told: string[] = [];
  for (const [what, expected, reply] of cases) {
    double.script(reply);
    const { envelope } = await tool.run({ query: 'bread' } as never, { signal: signal() } as never);
    asked++;
    const text = JSON.stringify(envelope);
    if (text.includes(key)) leaks++;
    const { code, count, details } = envelope as { code?: string; count?: number; details?: { wait_ms?: number } };
    const said = code === undefined ? String(count) : `${code}${details?.wait_ms ? ` ${details.wait_ms}` : ''}`;
    const isRight = expected.test(said);
    if (!isRight) wrong++;
    told.push(`${what}: ${said}${isRight ? '' : ' WRONG'}`);
  }
  console.log(`${name.padEnd(20)} ${told.join(' · ')}`);
}
double.close();
transport.close();
console.log(`searchers: ${rows.length}, answers: ${asked}, told wrongly: ${wrong}, with a key: ${leaks}`);
process.exitCode = wrong + leaks === 0 ? 0 : 1;

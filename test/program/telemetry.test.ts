import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type SeenSpan, triedCollector } from '../features/telemetry/tried-collector.js';
import { agent, place, script } from './inside.js';

type At = ReturnType<typeof place>;

const used = { input_tokens: 100, output_tokens: 10, cache_read_tokens: 40, cost_usd: 0.01 };
const turns = [
  { calls: [{ name: 'file_read', arguments: { path: 'a.txt' } }], usage: used },
  { calls: [{ name: 'file_read', arguments: { path: 'gone.txt' } }], usage: used },
  { text: 'It says hello.', usage: used },
];
const to = (endpoint: string, ...more: readonly string[]): readonly string[] =>
  [`telemetry.otlp_endpoint=${endpoint}`, ...more].flatMap((setting) => ['--set', setting]);
const go = (at: At, settings: readonly string[], played: readonly unknown[] = turns) =>
  agent(at, [...settings, '-p', '-m', script(at, played), 'what does the file say?']);

/** A run waits a second at its end for the collector, which a busy machine may not reach in time. */
const tries = { retry: 2 };

/** The spans as a tree: each with the names of those below it. */
function tree(spans: readonly SeenSpan[], parent: string | null = null): unknown {
  return spans.filter((span) => span.parent === parent).map(({ name, id }) => [name, tree(spans, id)]);
}

test(
  'a turn, its requests and its calls are spans by the conventions, and figures say what they used',
  tries,
  async () => {
    const collector = await triedCollector();
    const at = place({ 'a.txt': 'hello\n' });
    expect(await go(at, to(collector.endpoint))).toMatchObject({ code: 0, stderr: '' });
    const spans = collector.spans();
    const chat = expect.stringMatching(/^chat /) as unknown;
    expect(tree(spans)).toEqual([
      [
        'invoke_agent agent',
        expect.arrayContaining([
          [chat, []],
          ['execute_tool file_read', []],
        ]) as unknown,
      ],
    ]);
    expect(spans.map(({ name }) => name.split(' ')[0])).toEqual([
      ...['chat', 'execute_tool', 'chat', 'execute_tool', 'chat', 'invoke_agent'],
    ]);
    expect(new Set(spans.map(({ trace }) => trace)).size).toBe(1);
    expect(spans[0]?.attributes).toMatchObject({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'offline',
      'gen_ai.request.model': expect.any(String) as unknown,
      'gen_ai.usage.input_tokens': 140,
      'gen_ai.usage.output_tokens': 10,
      'gen_ai.usage.cache_read.input_tokens': 40,
      'agent.cost_usd': 0.01,
    });
    expect(spans[3]).toMatchObject({ failed: true, attributes: { 'error.type': 'not_found' } });
    expect(spans[5]?.attributes).toMatchObject({ 'agent.turn.status': 'completed', 'agent.turn.calls': 2 });
    expect(collector.resources()).toContainEqual({ 'service.name': 'agent', 'service.version': expect.any(String) });
    const sums = collector
      .figures()
      .map(({ name, attributes, value }) => [
        name,
        attributes['gen_ai.token.type'] ?? attributes['outcome'] ?? '',
        name.endsWith('duration') ? 'some' : value,
      ]);
    expect(sums).toEqual(
      expect.arrayContaining([
        ['gen_ai.client.token.usage', 'input', 420],
        ['gen_ai.client.token.usage', 'output', 30],
        ['gen_ai.client.operation.duration', '', 'some'],
        ['agent.cost', '', expect.closeTo(0.03, 9)],
        ['agent.tool.calls', 'ok', 1],
        ['agent.tool.calls', 'not_found', 1],
      ]),
    );
  },
);

test('contents go along only where the settings say so, and never with a secret', tries, async () => {
  const secret = 'sk-proj-' + 'Ab3dEf6hIj9'.repeat(4);
  const bodies = async (...more: readonly string[]): Promise<string> => {
    const collector = await triedCollector();
    const at = place({ 'a.txt': `key=${secret}\n` });
    await go(at, to(collector.endpoint, ...more));
    expect(collector.spans()).toHaveLength(6);
    return JSON.stringify(collector.bodies.map(({ body }) => body));
  };
  const without = await bodies();
  for (const text of ['what does the file say', 'It says hello', 'a.txt', secret]) expect(without).not.toContain(text);
  const along = await bodies('telemetry.contents=true');
  for (const text of ['what does the file say', 'It says hello', 'a.txt']) expect(along).toContain(text);
  expect(along).not.toContain(secret);
});

test('an agent works below the call that it works for', tries, async () => {
  const collector = await triedCollector();
  const at = place({ 'a.txt': 'hello\n' });
  const home = at.env.AGENT_HOME ?? '';
  mkdirSync(join(home, 'agents'), { recursive: true });
  const plays = join(home, 'finder.json');
  writeFileSync(
    plays,
    JSON.stringify({ turns: [{ calls: [{ name: 'grep', arguments: { pattern: 'h' } }] }, { text: 'a' }] }),
  );
  const about = `name: finder\ndescription: Finds.\ntools: Grep\nmodel: offline/${plays}`;
  writeFileSync(join(home, 'agents', 'finder.md'), `---\n${about}\n---\nYou find.\n`);
  const asks = { calls: [{ name: 'agent', arguments: { agent: 'finder', prompt: 'find', description: 'find' } }] };
  await go(at, to(collector.endpoint), [asks, { text: 'done' }]);
  const chat = [expect.stringMatching(/^chat /), []];
  const below = ['invoke_agent finder', [chat, ['execute_tool grep', []], chat]];
  expect(tree(collector.spans())).toEqual([['invoke_agent agent', [chat, ['execute_tool agent', [below]], chat]]]);
});

test(
  'nothing is sent where no collector is named, also where the variable of other programs names one',
  tries,
  async () => {
    const collector = await triedCollector();
    const at = place({
      'a.txt': 'hello\n',
      '.agent/config.json': JSON.stringify({ telemetry: { otlp_endpoint: collector.endpoint } }),
    });
    at.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.endpoint;
    at.env['OTEL_EXPORTER_OTLP_HEADERS'] = 'x-team=a%20b, authorization=Bearer t';
    expect(await go(at, [])).toMatchObject({ code: 0 });
    expect(collector.bodies).toEqual([]);
    await go(at, to('env'));
    expect(collector.bodies.map(({ path }) => path).sort()).toEqual(['/v1/metrics', '/v1/traces']);
    expect(collector.bodies[0]?.headers).toMatchObject({ 'x-team': 'a b', authorization: 'Bearer t' });
  },
);

test('a collector that is gone, or never answers, takes no answer away, and is told of once', tries, async () => {
  const gone = await triedCollector();
  gone.close();
  const silent = await triedCollector(false);
  const at = place({ 'a.txt': 'hello\n' });
  expect(await go(at, ['--debug', ...to(gone.endpoint)])).toMatchObject({
    code: 0,
    stdout: 'It says hello.\n',
    stderr: expect.toSatisfy((text: string) => text.split('the collector accepted nothing').length === 2) as unknown,
  });
  expect(await go(at, to(silent.endpoint))).toMatchObject({ code: 0, stdout: 'It says hello.\n', stderr: '' });
  expect(silent.bodies.length).toBeGreaterThan(0);
});

test.each([
  [
    ['telemetry.otlp_endpoint=localhost:4318'],
    /telemetry\.otlp_endpoint: "localhost:4318" is not an http\(s\) address/,
  ],
  [['telemetry.otlp_endpoint=http://h', 'telemetry.headers_env=HEADERS'], /HEADERS is not name=value/],
])('%s is refused in a sentence, and the turn goes on', async (settings, said) => {
  const at = place({ 'a.txt': 'hello\n' });
  at.env['HEADERS'] = 'Bearer t';
  const ran = await go(
    at,
    settings.flatMap((setting) => ['--set', setting]),
  );
  expect(ran).toMatchObject({ code: 0, stdout: 'It says hello.\n', stderr: expect.stringMatching(said) as unknown });
});

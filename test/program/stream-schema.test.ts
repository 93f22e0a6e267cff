import { Ajv2020 } from 'ajv/dist/2020.js';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { PrintedLine } from '../../src/frontends/headless/headless.js';
import type { StreamEvent } from '../../src/frontends/library/library.js';
import { agent, lines, place, script } from './inside.js';
import { limitedPlace, limitedServer } from './usage-limits.js';

type Line = Readonly<Record<string, unknown>>;

/** What the library yields is what is printed: this compiles as long as their types agree. */
const asLibrary = (line: Exclude<PrintedLine, { readonly type: `control_${string}` }>): StreamEvent => line;

const runs = (command: string) => ({ calls: [{ name: 'bash', arguments: { command } }] });
const stream = ['-p', '--output-format', 'stream-json'];

/** Lines of runs that end in every way. */
async function printedLines(): Promise<readonly Line[]> {
  const at = place({ 'a.txt': '' });
  const run = async (turns: readonly unknown[], ...more: readonly string[]) =>
    lines((await agent(at, [...stream, '-m', script(at, turns), ...more, 'go'])).stdout);
  const order = { agent: 'explore', prompt: 'look', description: 'looks', background: true };
  const background = { calls: [{ name: 'agent', arguments: order }] };
  const same = Array.from({ length: 8 }, () => runs('true'));
  return [
    ...(await run([{ text: 'I look.', ...runs('ls; ls none') }, { text: 'done' }])),
    ...(await run([{ fault: { code: 'network', message: 'gone' } }])),
    ...(await run([runs('ls'), runs('ls'), { text: 'x' }], '--max-tool-turns', '1')),
    ...(await run(same)),
    ...(await run([runs('rm -rf a.txt'), { text: 'x' }], '--allowed-tools', 'bash')),
    ...(await run([{ text: '{"a":1}' }], '--json-schema', '{"type":"object"}')),
    ...(await run([{ text: 'no' }], '--json-schema', '{"type":"object"}')),
    ...(await run([background, { text: 'x' }, { text: 'y' }], '--tools', '+agents')),
    ...(await run([{ text: 'x' }], '--goal', 'it works', '--goal-check', 'true')),
    ...(await run([{ text: 'x' }, { text: '{}' }], '--goal', 'it works', '--max-goal-turns', '1')),
    JSON.parse(
      (await agent(at, ['-p', '--output-format', 'json', '-m', script(at, [{ text: 'x' }]), 'go'])).stdout,
    ) as Line,
    ...(await asked(at)),
    ...(await limited()),
  ];
}

/** Lines of runs that meet a usage limit. */
async function limited(): Promise<readonly Line[]> {
  const at = limitedPlace(await limitedServer([{ text: 'x' }], { 0: 1, 1: 3600 }));
  const run = async (...more: readonly string[]) => lines((await agent(at, [...stream, ...more, 'go'])).stdout);
  return [...(await run('--wait-for-limit')), ...(await run('--wait-for-limit=1m'))];
}

/** Lines of a conversation with another program. */
async function asked(at: ReturnType<typeof place>): Promise<readonly Line[]> {
  const stdin = new PassThrough();
  const send = (line: Line): boolean => stdin.write(`${JSON.stringify(line)}\n`);
  for (const [id, subtype] of [
    ['1', 'initialize'],
    ['2', 'unknown'],
  ])
    send({ type: 'control_request', request_id: id, request: { subtype } });
  send({ type: 'user', message: { role: 'user', content: 'go' } });
  let isStopped = false;
  const onStdout = (text: string): void => {
    if (!isStopped && text.includes('can_use_tool')) {
      isStopped = true;
      send({ type: 'control_request', request_id: '3', request: { subtype: 'interrupt' } });
    }
    if (text.includes('"type":"result"')) stdin.end();
  };
  const model = script(at, [runs('git push --force origin main'), { text: 'x' }]);
  const more = ['--input-format', 'stream-json', '--permission-prompt-tool', 'stdio', '-m', model];
  return lines((await agent(at, [...stream, ...more], { stdin, onStdout })).stdout);
}

test('every line that is printed is valid against `agent schema`, and every type of it is printed', async () => {
  const schema = JSON.parse((await agent(place(), ['schema'])).stdout) as {
    readonly $defs: Readonly<Record<string, Line>>;
  };
  const ajv = new Ajv2020({ strict: true, strictTypes: false });
  const printed = await printedLines();
  const problems = printed.flatMap((line) => {
    const name = String(line['type']);
    const validate = ajv.compile({ $ref: `#/$defs/${name}`, $defs: schema.$defs });
    return validate(line) ? [] : [`${name}: ${ajv.errorsText(validate.errors)} ${JSON.stringify(line).slice(0, 200)}`];
  });
  expect(problems).toEqual([]);
  const validate = ajv.compile(schema);
  expect(printed.every((line) => validate(line))).toBe(true);
  expect(validate({ type: 'result' })).toBe(false);
  expect(new Set(printed.map(({ type }) => type))).toEqual(new Set(Object.keys(schema.$defs)));
  expect(asLibrary).toBeInstanceOf(Function);
});

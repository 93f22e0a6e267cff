// agent beside other agents: npm run bench:peers -- <folder>, where `npm install` has put @openai/codex,
// @anthropic-ai/claude-code and @mariozechner/pi-coding-agent. All of them talk to one scripted model on this machine;
// they take turns, so that what else the machine does meets each of them.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRecord } from '../../../src/kernel/core/json.js';
import { median } from './program.js';

declare const AGENT_ROOT: string;

/** One request to the model. Times in ms of `performance.now()`. */
interface Seen {
  readonly arrivedAt: number;
  readonly bytes: number;
  readonly hasTools: boolean;
  answeredAt: number;
}

interface Place {
  readonly home: string;
  readonly work: string;
  /** Without `/v1`. */
  readonly url: string;
}

interface Program {
  readonly name: string;
  readonly file: string;
  /** Writes the settings that name the model. */
  readonly prepare?: (place: Place) => void;
  readonly args: (place: Place) => readonly string[];
  readonly env: (place: Place) => Readonly<Record<string, string>>;
}

const rounds = Number(process.argv[3] ?? 7);
const peers = process.argv[2] ?? '';
const bin = (name: string): string => join(peers, 'node_modules/.bin', name);
const prompt = 'Run echo one.';

const programs: readonly Program[] = [
  {
    name: 'agent',
    file: join(AGENT_ROOT, 'bin/agent.js'),
    args: () => ['-p', prompt, '-m', 'openai/m'],
    env: ({ home, url }) => ({
      AGENT_HOME: join(home, '.agent'),
      OPENAI_API_KEY: 'none',
      OPENAI_BASE_URL: `${url}/v1`,
    }),
  },
  {
    name: 'pi',
    file: bin('pi'),
    prepare: ({ home, url }) => {
      const provider = { baseUrl: `${url}/v1`, api: 'openai-completions', apiKey: 'none', models: [{ id: 'm' }] };
      mkdirSync(join(home, '.pi/agent'), { recursive: true });
      writeFileSync(join(home, '.pi/agent/models.json'), JSON.stringify({ providers: { local: provider } }));
    },
    args: () => ['-p', prompt, '--provider', 'local', '--model', 'm'],
    env: () => ({}),
  },
  {
    name: 'Codex',
    file: bin('codex'),
    args: ({ url }) => [
      'exec',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      '-c',
      'model_provider=local',
      '-c',
      `model_providers.local={name="local",base_url="${url}/v1",wire_api="responses",env_key="LOCAL_KEY"}`,
      '-m',
      'gpt-5.2-codex',
      prompt,
    ],
    env: () => ({ LOCAL_KEY: 'none' }),
  },
  {
    name: 'Claude Code',
    file: bin('claude'),
    args: () => ['-p', prompt, '--model', 'claude-sonnet-4-5', '--allowedTools', 'Bash'],
    env: ({ url }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
  },
];

const seen: Seen[] = [];

/** The tool that runs commands, as each program calls it. */
const shellNames = /^(?:bash|shell|shell_command|exec_command|local_shell)$/i;

interface Call {
  readonly name: string;
  readonly args: string;
}

/** Returns the call of `echo one` for the tool that the request offers; null where it offers none. */
function callOf(body: unknown): Call | null {
  const tools: readonly unknown[] = isRecord(body) && Array.isArray(body.tools) ? body.tools : [];
  for (const tool of tools) {
    const given = isRecord(tool) && isRecord(tool.function) ? tool.function : tool;
    if (!isRecord(given) || typeof given.name !== 'string' || !shellNames.test(given.name)) continue;
    const schema = given.parameters ?? given.input_schema;
    const properties = isRecord(schema) && isRecord(schema.properties) ? schema.properties : {};
    if (isRecord(properties.cmd)) return { name: given.name, args: '{"cmd":"echo one"}' };
    const isList = isRecord(properties.command) && properties.command.type === 'array';
    return { name: given.name, args: JSON.stringify({ command: isList ? ['echo', 'one'] : 'echo one' }) };
  }
  return null;
}

/** Returns true if the request has the result of a call. */
function hasResult(text: string): boolean {
  return /"role":\s*"tool"|"tool_result"|"function_call_output"/.test(text);
}

function answer(request: IncomingMessage, response: ServerResponse, text: string): void {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    body = null;
  }
  const call = hasResult(text) ? null : callOf(body);
  const path = request.url ?? '';
  const events = path.includes('/messages')
    ? messagesAnswer(call)
    : path.includes('/responses')
      ? responsesAnswer(call)
      : chatAnswer(call);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(events.join(''));
}

function chatAnswer(call: Call | null): readonly string[] {
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const delta = call
    ? {
        tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: call.name, arguments: call.args } }],
      }
    : { role: 'assistant', content: 'Done.' };
  return [chunk(delta), chunk({}, call ? 'tool_calls' : 'stop'), 'data: [DONE]\n\n'];
}

function messagesAnswer(call: Call | null): readonly string[] {
  const event = (data: { readonly type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
  const usage = { input_tokens: 1, output_tokens: 1 };
  const block = call ? { type: 'tool_use', id: 'toolu_1', name: call.name, input: {} } : { type: 'text', text: '' };
  const delta = call ? { type: 'input_json_delta', partial_json: call.args } : { type: 'text_delta', text: 'Done.' };
  const stop = { stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage };
  return [
    event({ type: 'message_start', message } as { readonly type: string }),
    event({ type: 'content_block_start', index: 0, content_block: block } as { readonly type: string }),
    event({ type: 'content_block_delta', index: 0, delta } as { readonly type: string }),
    event({ type: 'content_block_stop', index: 0 } as { readonly type: string }),
    event({ type: 'message_delta', delta: stop, usage } as { readonly type: string }),
    event({ type: 'message_stop' }),
  ];
}

function responsesAnswer(call: Call | null): readonly string[] {
  const event = (type: string, data: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const item = call
    ? {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_1',
        name: call.name,
        arguments: call.args,
        status: 'completed',
      }
    : { type: 'message', id: 'm_1', role: 'assistant', content: [{ type: 'output_text', text: 'Done.' }] };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [item], usage };
  return [
    event('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
    event('response.output_item.added', { output_index: 0, item }),
    event('response.output_item.done', { output_index: 0, item }),
    event('response.completed', { response }),
  ];
}

/** Resident memory of a process and its children in MB. Source: proc(5). */
function memoryOf(id: number): number {
  try {
    const own = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0) / 1024;
    const children = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
    return children.reduce((sum, child) => sum + memoryOf(child), own);
  } catch {
    return 0;
  }
}

interface Measured {
  readonly requestMs: number;
  readonly toolMs: number;
  readonly wholeMs: number;
  readonly megabytes: number;
  readonly bytes: number;
  readonly requests: number;
}

async function measure(program: Program, place: Place): Promise<Measured> {
  seen.length = 0;
  const startedAt = performance.now();
  const child = spawn(program.file, program.args(place), {
    cwd: place.work,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: place.home,
      LANG: 'C.UTF-8',
      NO_PROXY: '127.0.0.1',
      ...program.env(place),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  let megabytes = 0;
  const timer = setInterval(() => {
    megabytes = Math.max(megabytes, memoryOf(child.pid ?? 0));
  }, 20);
  const limit = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  clearInterval(timer);
  clearTimeout(limit);
  const wholeMs = performance.now() - startedAt;
  const [first, second] = seen.filter(({ hasTools }) => hasTools);
  if (code !== 0 || !first || !second) throw new Error(`${program.name} ended with ${String(code)}: ${output}`);
  return {
    requestMs: first.arrivedAt - startedAt,
    toolMs: second.arrivedAt - first.answeredAt,
    wholeMs,
    megabytes,
    bytes: first.bytes,
    requests: seen.length,
  };
}

if (!existsSync(bin('pi'))) throw new Error('Name the folder in which the other programs are installed.');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-peers-')));
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
  });
  request.on('end', () => {
    const text = Buffer.concat(chunks).toString();
    const entry = {
      arrivedAt: performance.now(),
      bytes: text.length,
      hasTools: text.includes('"tools":[{'),
      answeredAt: 0,
    };
    if (request.method === 'POST') seen.push(entry);
    answer(request, response, text);
    entry.answeredAt = performance.now();
  });
});
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
try {
  const places = new Map<Program, Place>();
  for (const program of programs) {
    const place = { home: join(folder, program.name, 'home'), work: join(folder, program.name, 'work'), url };
    for (const path of [place.home, place.work]) mkdirSync(path, { recursive: true });
    program.prepare?.(place);
    places.set(program, place);
  }
  const measured = new Map<Program, Measured[]>(programs.map((program) => [program, []]));
  for (let round = 0; round <= rounds; round++)
    for (const [program, place] of places) {
      const one = await measure(program, place);
      // The first round fills caches.
      if (round > 0) measured.get(program)?.push(one);
    }
  console.log(`Node ${process.version}, medians of ${rounds}, in turn`);
  console.log(
    '\n| program | start to request, ms | bash turn, ms | whole, ms | memory, MB | first request, bytes | requests |',
  );
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |');
  for (const [{ name }, all] of measured) {
    const of = (key: keyof Measured): number => Math.round(median(all.map((one) => one[key])));
    console.log(
      `| ${[name, of('requestMs'), of('toolMs'), of('wholeMs'), of('megabytes'), of('bytes'), of('requests')].join(' | ')} |`,
    );
  }
} finally {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { Form, FormAnswer } from '../../../src/kernel/core/form.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { openRememberedTools } from '../../../src/features/mcp/remembered-tools.js';
import { createServers, type Called, type Servers } from '../../../src/features/mcp/servers.js';
import type { OpenCommand } from '../../../src/kernel/tools/process/lasting-process.js';
import { tree } from '../../kernel/tools/workbench.js';
import type { Message } from '../json-places.js';

/** What a server writes to, and how it ends. */
export interface Wire {
  readonly write: (text: string | Buffer) => void;
  readonly complain: (text: string) => void;
  readonly exit: (code: number) => void;
}

/** Is given each message that a client sends. */
export type Script = (message: Message, wire: Wire) => void;

/** A program that is played in this process: the same streams as a real one, without its start. */
export function scripted(script: () => Script): OpenCommand {
  return () => {
    const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const react = script();
    let hasEnded = false;
    let ended = (_code: number): void => undefined;
    const exited = new Promise<{ code: number; signal: null }>((resolve) => {
      ended = (code) => {
        hasEnded = true;
        for (const stream of [output, errors]) stream.end();
        resolve({ code, signal: null });
      };
    });
    const wire: Wire = {
      write: (text) => {
        if (!hasEnded) output.write(text);
      },
      complain: (text) => errors.write(text),
      exit: (code) => {
        ended(code);
      },
    };
    let rest = '';
    input.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (!hasEnded) react(JSON.parse(line) as Message, wire);
    });
    const end = (): Promise<void> => {
      ended(0);
      return Promise.resolve();
    };
    return Promise.resolve({ started: true, input, output, errors, exited, size: () => 0, end });
  };
}

const text = { type: 'string', title: 'A text', description: 'Any text' };

/** What a valid server answers to each method, with every field that the protocol has for it. */
export const validResults: Readonly<Record<string, (params: Message) => Message>> = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true }, resources: { listChanged: true }, prompts: {}, logging: {} },
    serverInfo: { name: 'tried', version: '1', title: 'Tried', websiteUrl: 'https://example.com' },
    instructions: 'Use it well.',
    _meta: { a: 1 },
  }),
  'tools/list': ({ cursor }) =>
    cursor === undefined
      ? { tools: [{ name: 'good', inputSchema: { type: 'object' } }, richTool], nextCursor: 'two', _meta: { a: 1 } }
      : { tools: [{ name: 'last', inputSchema: { type: 'object' } }] },
  'resources/list': () => ({
    resources: [
      { uri: 'note://a', name: 'A', title: 'The A', description: 'The first', mimeType: 'text/plain', size: 3 },
      { uri: 'note://b', name: 'B' },
    ],
  }),
  'prompts/list': () => ({
    prompts: [
      { name: 'greet', description: 'Says hello', arguments: [{ name: 'who', description: 'whom', required: true }] },
      { name: 'plain' },
    ],
  }),
  'tools/call': () => ({
    content: [
      { type: 'text', text: 'done', annotations: { audience: ['user'], priority: 1 } },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource_link', uri: 'note://a', name: 'A' },
      { type: 'resource', resource: { uri: 'note://a', mimeType: 'text/plain', text: 'inside' } },
    ],
    structuredContent: { a: [1] },
    isError: false,
  }),
  'resources/read': () => ({ contents: [{ uri: 'note://a', mimeType: 'text/plain', text: 'inside' }] }),
  'prompts/get': () => ({
    description: 'Says hello',
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }],
  }),
};

const richTool: Message = {
  name: 'rich',
  title: 'Rich',
  description: 'Has every field',
  inputSchema: { type: 'object', properties: { who: text }, required: ['who'], additionalProperties: false },
  outputSchema: { type: 'object', properties: { a: { type: 'array' } }, required: ['a'] },
  annotations: { title: 'Rich', readOnlyHint: true, destructiveHint: false },
  icons: [{ src: 'https://example.com/a.png', mimeType: 'image/png', sizes: ['48x48'] }],
  execution: { taskSupport: 'optional' },
  _meta: { a: 1 },
};

/** Messages that a server sends without being asked for them, in the middle of a call. */
export const ownMessages: readonly Message[] = [
  { method: 'ping', id: 'own-1' },
  { method: 'roots/list', id: 'own-2' },
  { method: 'notifications/message', params: { level: 'info', logger: 'a', data: 'words' } },
  { method: 'notifications/progress', params: { progressToken: 1, progress: 1, total: 2, message: 'half' } },
  { method: 'notifications/tools/list_changed' },
  { method: 'notifications/cancelled', params: { requestId: 'own-9', reason: 'because' } },
  {
    method: 'elicitation/create',
    id: 'own-3',
    params: {
      mode: 'form',
      message: 'Who?',
      requestedSchema: {
        type: 'object',
        properties: { who: { ...text, minLength: 1 }, how: { type: 'string', enum: ['a'] }, sure: { type: 'boolean' } },
        required: ['who'],
      },
    },
  },
].map((message) => ({ jsonrpc: '2.0', ...message }));

export function answerOf({ id = null, method, params }: Message): Message {
  const result = validResults[typeof method === 'string' ? method : '']?.((params ?? {}) as Message);
  const error = { code: -32_601, message: 'unknown method' };
  return { jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) };
}

/** Answers as a server does that speaks 2026-07-28 and nothing before it. */
export function newerAnswerOf({ id = null, method, params }: Message): Message {
  if (method === 'initialize') return answerOf({ id, method: 'unknown' });
  const older = method === 'server/discover' ? {} : answerOf({ id, method: method ?? null, params: params ?? {} });
  const discovered = {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true }, resources: {}, prompts: {} },
    instructions: 'Use it well.',
  };
  const result = method === 'server/discover' ? discovered : (older['result'] ?? null);
  const more = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const named = { _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'tried', version: '1' } } };
  return result === null ? older : { jsonrpc: '2.0', id, result: { ...(result as Message), ...more, ...named } };
}

export interface Pool {
  readonly servers: Servers;
  /** What a person was told. */
  readonly said: readonly string[];
  /** Messages of what was logged. */
  readonly logged: readonly string[];
  call(tool: string, putForm?: ((form: Form) => Promise<FormAnswer>) | null): Promise<Called>;
}

const folder = tree();
let pools = 0;

/** The servers of these entries as a session has them. */
export function openPool(entries: Readonly<Record<string, object>>, open: OpenCommand): Pool {
  const place = { env: {}, cwd: folder, home: folder };
  const said: string[] = [];
  const logged: string[] = [];
  const files = join(folder, `pool-${pools++}`);
  const servers = createServers({
    servers: Object.entries(entries).map(([name, entry]) => configuredServer(name, entry, 'mcp.json', place)),
    remembered: openRememberedTools({
      cache: join(files, 'cache.json'),
      seen: join(files, 'seen.json'),
      now: () => 1,
      log: () => undefined,
    }),
    notify: (message) => said.push(message),
    open,
    env: {},
    version: '1',
    now: () => 0,
    log: ({ message }) => logged.push(message),
    keepErrors: () => undefined,
    signIns: openSignIns(join(files, 'auth.json'), () => undefined),
  });
  return {
    servers,
    said,
    logged,
    call: async (name, putForm = null) => {
      const tool = servers.tools().find(({ ownName }) => ownName === name);
      if (!tool) return { kind: 'failed', problem: `there is no tool ${name}` };
      const { signal } = new AbortController();
      return await servers.call(tool, {}, { signal, onProgress: () => undefined, putForm });
    },
  };
}

/** Serves over HTTP what `answer` does with each request. */
export async function served(
  answer: (message: Message | null, request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ readonly url: string; readonly close: () => void }> {
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      answer(body === '' ? null : (JSON.parse(body) as Message), request, response);
    });
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: () => {
      http.closeAllConnections();
      http.close();
    },
  };
}

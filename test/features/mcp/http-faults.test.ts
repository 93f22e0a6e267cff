import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { type Json, type Message } from '../json-places.js';
import { answerOf, openPool, served } from './hostile-server.js';

type Fault = (response: ServerResponse, answer: Message) => void;

const send = (response: ServerResponse, status: number, type: string, body: string): void => {
  response.writeHead(status, { 'content-type': type }).end(body);
};
const event = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
const plain: Fault = (response, answer) => {
  send(response, 200, 'application/json', JSON.stringify(answer));
};

/** A server with sessions whose answers to `tools/call` come as `fault` says; `forgets`: the second one is refused so. */
async function opened(fault: Fault, forgets: Fault | null = null) {
  const seen: string[] = [];
  let session = 0;
  let isForgotten = false;
  const { url, close } = await served((message, request, response) => {
    if (request.method !== 'POST' || message === null) {
      response.writeHead(405).end();
      return;
    }
    const method = typeof message['method'] === 'string' ? message['method'] : '';
    seen.push(method);
    if (message['id'] === undefined) response.writeHead(202).end();
    else if (method === 'initialize') {
      isForgotten = false;
      response.setHeader('mcp-session-id', `s${++session}`);
      plain(response, answerOf(message));
    } else if (method !== 'tools/call') plain(response, answerOf(message));
    else if (isForgotten && forgets) forgets(response, answerOf(message));
    else {
      isForgotten = session === 1;
      fault(response, answerOf(message));
    }
  });
  const pool = openPool({ tried: { url } }, () => Promise.resolve({ started: false, error: 'none' }));
  onTestFinished(async () => {
    await pool.servers.close();
    close();
  });
  await pool.servers.discover(new AbortController().signal);
  expect(pool.servers.tools()).toHaveLength(3);
  return { pool, seen };
}

test.each<readonly [string, Fault, string]>([
  [
    'a wrong content type',
    (response) => {
      send(response, 200, 'text/html', '<html>hello</html>');
    },
    'it answered with text/html that contains no answer: <html>hello</html>',
  ],
  [
    'half a body',
    (response, answer) => {
      send(response, 200, 'application/json', JSON.stringify(answer).slice(0, 20));
    },
    'it answered with application/json that contains no answer: {"jsonrpc":"2.0","id',
  ],
  [
    'an empty body',
    (response) => {
      send(response, 200, 'application/json', '');
    },
    'it answered with application/json that contains no answer',
  ],
  [
    'an answer to another request',
    (response, answer) => {
      plain(response, { ...answer, id: 999 });
    },
    'contains no answer',
  ],
  [
    'a result of another type',
    (response, answer) => {
      plain(response, { ...answer, result: 7 });
    },
    'its answer to tools/call cannot be used: it is a number instead of an object',
  ],
  [
    'a stream that ends',
    (response) => {
      send(response, 200, 'text/event-stream', ': hello\n\n');
    },
    'its stream ended before the answer',
  ],
  [
    'a stream that is cut',
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n', () => response.destroy());
    },
    'its stream ended before the answer',
  ],
  [
    'more than 16 MiB',
    (response) => {
      send(response, 200, 'application/json', `{"a":"${'x'.repeat(17 * 1024 * 1024)}"}`);
    },
    'it answered with more than 16 MiB, which was dropped',
  ],
  [
    'more than 16 MiB in a stream',
    (response) => {
      send(response, 200, 'text/event-stream', `data: {"a":"${'x'.repeat(17 * 1024 * 1024)}`);
    },
    'it answered with more than 16 MiB, which was dropped',
  ],
  [
    'a failure of the service',
    (response) => {
      send(response, 500, 'text/plain', 'database is down');
    },
    'database is down',
  ],
])('%s fails the call with a sentence, and the next one is answered', async (_what, fault, problem) => {
  let isDone = false;
  const { pool } = await opened((response, answer) => {
    if (isDone) plain(response, answer);
    else fault(response, answer);
    isDone = true;
  });
  expect(await pool.call('good')).toEqual({ kind: 'failed', problem: expect.stringContaining(problem) as string });
  expect((await pool.call('good')).kind).toBe('answered');
});

test.each<readonly [string, Fault]>([
  [
    'with a byte order mark',
    (response, answer) => {
      send(response, 200, 'application/json', `\uFEFF${JSON.stringify(answer)}`);
    },
  ],
  [
    'without a content type',
    (response, answer) => {
      response.writeHead(200).end(JSON.stringify(answer));
    },
  ],
  [
    'as plain text',
    (response, answer) => {
      send(response, 200, 'text/plain', JSON.stringify(answer));
    },
  ],
  [
    'in a batch',
    (response, answer) => {
      send(response, 200, 'application/json', JSON.stringify([answer]));
    },
  ],
  [
    'in a stream, behind junk',
    (response, answer) => {
      send(response, 200, 'text/event-stream', `data: junk\n\ndata: {"a":1}\n\n${event(answer)}`);
    },
  ],
  [
    'in a stream over several lines',
    (response, answer) => {
      send(
        response,
        200,
        'text/event-stream',
        `${JSON.stringify(answer, null, 1).replaceAll(/^/gm, 'data: ')}\r\n\r\n`,
      );
    },
  ],
])('an answer %s is understood', async (_how, fault) => {
  const { pool } = await opened(fault);
  expect((await pool.call('good')).kind).toBe('answered');
});

const gone = { code: -32_001, message: 'Session not found' };

test.each<readonly [string, Fault]>([
  [
    '404',
    (response) => {
      send(response, 404, 'text/plain', 'gone');
    },
  ],
  [
    '400 with its reason',
    (response) => {
      send(response, 400, 'text/plain', 'Bad Request: No valid session ID provided');
    },
  ],
  [
    'an error inside a 200',
    (response, { id = null }) => {
      plain(response, { jsonrpc: '2.0', id, error: gone });
    },
  ],
  [
    'an error for no request',
    (response) => {
      plain(response, { jsonrpc: '2.0', id: null, error: gone });
    },
  ],
  [
    '401',
    (response) => {
      send(response, 401, 'application/json', '{}');
    },
  ],
])('a session that a service forgets (%s) is opened again, and the call is repeated once', async (_how, forgets) => {
  const { pool, seen } = await opened(plain, forgets);
  expect((await pool.call('good')).kind).toBe('answered');
  expect((await pool.call('good')).kind).toBe('answered');
  expect(seen.filter((method) => ['initialize', 'tools/call'].includes(method))).toEqual([
    'initialize',
    'tools/call',
    'tools/call',
    'initialize',
    'tools/call',
  ]);
});

import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../../../src/kernel/core/json.js';

/** What the model answers to the request that has `answered` of its own messages in it. */
export type Script = (
  answered: number,
) => { readonly text: string } | { readonly tool: string; readonly args: unknown };

/** One request as it arrived, and when its answer was out. Times in ms of `performance.now()`. */
export interface Seen {
  readonly arrivedAt: number;
  readonly bytes: number;
  answeredAt: number;
}

export interface Model {
  readonly url: string;
  readonly seen: Seen[];
  play(script: Script): void;
  close(): void;
}

/** A scripted model over HTTP (Chat Completions, streamed), which answers at once. */
export async function openModel(): Promise<Model> {
  let script: Script = () => ({ text: 'Done.' });
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
    });
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const entry: Seen = { arrivedAt: performance.now(), bytes: body.length, answeredAt: 0 };
      seen.push(entry);
      answer(response, script(assistantMessages(body.toString())), seen.length);
      entry.answeredAt = performance.now();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    seen,
    play: (next) => {
      script = next;
      seen.length = 0;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function assistantMessages(text: string): number {
  const body: unknown = JSON.parse(text);
  const messages: readonly unknown[] = isRecord(body) && Array.isArray(body.messages) ? body.messages : [];
  return messages.filter((message) => isRecord(message) && message.role === 'assistant').length;
}

function answer(response: ServerResponse, turn: ReturnType<Script>, number: number): void {
  const lines: string[] = [];
  const chunk = (delta: unknown, finish: string | null = null): void => {
    lines.push(
      `data: ${JSON.stringify({ id: `c${number}`, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  };
  if ('text' in turn) for (const word of turn.text.split(/(?<= )/)) chunk({ role: 'assistant', content: word });
  else
    chunk({
      role: 'assistant',
      tool_calls: [
        {
          index: 0,
          id: `call_${number}`,
          type: 'function',
          function: { name: turn.tool, arguments: JSON.stringify(turn.args) },
        },
      ],
    });
  chunk({}, 'text' in turn ? 'stop' : 'tool_calls');
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${lines.join('')}data: [DONE]\n\n`);
}

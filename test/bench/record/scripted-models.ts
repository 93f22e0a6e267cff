import { createServer, type Server, type ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';

/** One answer of the scripted model. `think` is reasoning that comes before the text. */
export interface Answer {
  readonly think?: string;
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly args: object; readonly namespace?: string }[];
}

export interface ScriptedModels {
  readonly port: number;
  /** The answers to the next requests that offer tools, in order; a request without tools gets `side`. */
  play(answers: readonly Answer[], side?: string): void;
  /** What was asked so far: the path, the names of the tools, the answers left. */
  readonly asked: { readonly path: string; readonly tools: readonly unknown[]; readonly left: number }[];
  close(): void;
}

interface Asked {
  readonly model: string;
  readonly stream: boolean;
  readonly inputTokens: number;
}

type Wire = (
  answer: Answer,
  asked: Asked,
  id: string,
) => { readonly events: readonly string[]; readonly whole: object };

const event = (data: object, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
const callId = (id: string, index: number): string => `call_${id}x${index}`;
const outputTokens = (answer: Answer): number => Math.ceil(JSON.stringify(answer).length / 4);

/** Chat Completions. */
const chat: Wire = (answer, asked, id) => {
  const calls = (answer.calls ?? []).map(({ name, args }, index) => ({
    index,
    id: callId(id, index),
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  }));
  const base = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1_790_000_000, model: asked.model };
  const delta = (part: object, finish: string | null = null): string =>
    event({ ...base, choices: [{ index: 0, delta: part, finish_reason: finish }] });
  const usage = {
    prompt_tokens: asked.inputTokens,
    completion_tokens: outputTokens(answer),
    total_tokens: asked.inputTokens + outputTokens(answer),
    prompt_tokens_details: { cached_tokens: Math.floor(asked.inputTokens / 2) },
  };
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    events: [
      delta({ role: 'assistant', content: '' }),
      ...(answer.think === undefined ? [] : [delta({ reasoning_content: answer.think })]),
      ...(answer.text === undefined ? [] : [delta({ content: answer.text })]),
      ...calls.map((call) => delta({ tool_calls: [call] })),
      delta({}, finish),
      event({ ...base, choices: [], usage }),
      'data: [DONE]\n\n',
    ],
    whole: {
      ...base,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          finish_reason: finish,
          message: {
            role: 'assistant',
            content: answer.text ?? null,
            ...(calls.length > 0 ? { tool_calls: calls } : {}),
          },
        },
      ],
      usage,
    },
  };
};

/** Responses. */
const responses: Wire = (answer, asked, id) => {
  const text = { type: 'output_text', text: answer.text ?? '', annotations: [] };
  const output = [
    ...(answer.think === undefined
      ? []
      : [
          {
            type: 'reasoning',
            id: `rs_${id}`,
            summary: [{ type: 'summary_text', text: answer.think }],
            encrypted_content: 'c2VhbGVk',
          },
        ]),
    ...(answer.text === undefined
      ? []
      : [{ type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content: [text] }]),
    ...(answer.calls ?? []).map(({ name, args, namespace }, index) => ({
      type: 'function_call',
      id: `fc_${id}x${index}`,
      call_id: callId(id, index),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      arguments: JSON.stringify(args),
      status: 'completed',
    })),
  ];
  const whole = {
    id: `resp_${id}`,
    object: 'response',
    created_at: 1_790_000_000,
    status: 'completed',
    model: asked.model,
    output,
    usage: {
      input_tokens: asked.inputTokens,
      input_tokens_details: { cached_tokens: Math.floor(asked.inputTokens / 2) },
      output_tokens: outputTokens(answer),
      output_tokens_details: { reasoning_tokens: answer.think === undefined ? 0 : 12 },
      total_tokens: asked.inputTokens + outputTokens(answer),
    },
  };
  const typed = (type: string, data: object): string => event({ type, ...data }, type);
  return {
    events: [
      typed('response.created', { response: { ...whole, status: 'in_progress', output: [], usage: null } }),
      ...output.flatMap((item, output_index) => [
        typed('response.output_item.added', { output_index, item }),
        ...(item.type === 'message'
          ? [
              typed('response.output_text.delta', {
                item_id: item.id,
                output_index,
                content_index: 0,
                delta: text.text,
              }),
            ]
          : []),
        typed('response.output_item.done', { output_index, item }),
      ]),
      typed('response.completed', { response: whole }),
    ],
    whole,
  };
};

/** Messages. */
const messages: Wire = (answer, asked, id) => {
  const blocks = [
    ...(answer.think === undefined ? [] : [{ type: 'thinking', thinking: answer.think, signature: 'c2VhbGVk' }]),
    ...(answer.text === undefined ? [] : [{ type: 'text', text: answer.text }]),
    ...(answer.calls ?? []).map(({ name, args }, index) => ({
      type: 'tool_use',
      id: `toolu_${id}x${index}`,
      name,
      input: args,
    })),
  ];
  const cached = Math.floor(asked.inputTokens / 2);
  const usage = {
    input_tokens: asked.inputTokens - cached,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: outputTokens(answer),
  };
  const stop = (answer.calls ?? []).length > 0 ? 'tool_use' : 'end_turn';
  const base = { id: `msg_${id}`, type: 'message', role: 'assistant', model: asked.model, stop_sequence: null };
  const typed = (type: string, data: object): string => event({ type, ...data }, type);
  const parts = (block: Record<string, unknown>): [object, object[]] => {
    if (block['type'] === 'text') return [{ ...block, text: '' }, [{ type: 'text_delta', text: block['text'] }]];
    if (block['type'] === 'thinking')
      return [
        { ...block, thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking: block['thinking'] },
          { type: 'signature_delta', signature: block['signature'] },
        ],
      ];
    return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(block['input']) }]];
  };
  return {
    events: [
      typed('message_start', {
        message: { ...base, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
      }),
      ...blocks.flatMap((block, index) => {
        const [start, deltas] = parts(block);
        return [
          typed('content_block_start', { index, content_block: start }),
          ...deltas.map((delta) => typed('content_block_delta', { index, delta })),
          typed('content_block_stop', { index }),
        ];
      }),
      typed('message_delta', { delta: { stop_reason: stop, stop_sequence: null }, usage }),
      typed('message_stop', {}),
    ],
    whole: { ...base, content: blocks, stop_reason: stop, usage },
  };
};

/** Gemini's own. */
const gemini: Wire = (answer, asked, id) => {
  const parts = [
    ...(answer.think === undefined ? [] : [{ text: `**Thinking**\n${answer.think}`, thought: true }]),
    ...(answer.text === undefined ? [] : [{ text: answer.text }]),
    ...(answer.calls ?? []).map(({ name, args }, index) => ({
      functionCall: { name, args, id: callId(id, index) },
      ...(index === 0 ? { thoughtSignature: 'c2VhbGVk' } : {}),
    })),
  ];
  const whole = {
    candidates: [{ content: { role: 'model', parts }, index: 0, finishReason: 'STOP' }],
    modelVersion: asked.model,
    responseId: `g${id}`,
    usageMetadata: {
      promptTokenCount: asked.inputTokens,
      cachedContentTokenCount: Math.floor(asked.inputTokens / 2),
      candidatesTokenCount: outputTokens(answer),
      totalTokenCount: asked.inputTokens + outputTokens(answer),
    },
  };
  return { events: [event(whole)], whole };
};

function wireOf(path: string): Wire | null {
  if (path.endsWith('/chat/completions')) return chat;
  if (/\/responses(?:\/compact)?$/.test(path)) return responses;
  if (path.endsWith('/messages')) return messages;
  return /:(?:streamG|g)enerateContent$/.test(path) ? gemini : null;
}

const json = (response: ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};

/** A model server on the loopback that plays answers in the four wire formats, streamed or whole. */
export async function openScriptedModels(): Promise<ScriptedModels> {
  let left: Answer[] = [];
  let side = 'ok';
  let count = 0;
  const asked: { path: string; tools: readonly unknown[]; left: number }[] = [];
  const server: Server = createServer((request, response) => {
    const bytes: Buffer[] = [];
    request.on('data', (chunk: Buffer) => bytes.push(chunk));
    request.on('end', () => {
      const path = new URL(request.url ?? '/', 'http://x').pathname;
      const wire = wireOf(path);
      const sent = Buffer.concat(bytes);
      const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent).toString();
      if (/count_?tokens$/i.test(path)) return json(response, 200, { input_tokens: 100, totalTokens: 100 });
      if (!wire) {
        const isModels = path.endsWith('/models');
        return json(response, isModels ? 200 : 404, isModels ? { object: 'list', data: [{ id: 'scripted' }] } : {});
      }
      const body = JSON.parse(text) as { model?: string; stream?: boolean; tools?: readonly unknown[] };
      const hasTools = (body.tools ?? []).length > 0;
      const answer = (hasTools ? left.shift() : undefined) ?? { text: hasTools ? 'The script has ended.' : side };
      asked.push({ path, tools: body.tools ?? [], left: left.length });
      const stream = body.stream === true || path.endsWith(':streamGenerateContent');
      const model = body.model ?? /models\/([^:]+)/.exec(path)?.[1] ?? 'scripted';
      const played = wire(answer, { model, stream, inputTokens: Math.ceil(text.length / 4) }, String(++count));
      if (!stream) return json(response, 200, played.whole);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(played.events.join(''));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    play(answers, text = 'ok') {
      left = [...answers];
      side = text;
    },
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { mistralTurns, rules, schemaError, loneSurrogates } from './wires/request-rules.js';

type Fields = Readonly<Record<string, unknown>>;

/** One answer of a scripted model. `split`: characters in each piece of arguments and text. */
export interface VendorTurn {
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  readonly usage?: { readonly input: number; readonly cached: number; readonly output: number };
  /** After the text, an error object in the stream. */
  readonly error?: string;
  readonly split?: number;
}

/** How a vendor's server differs from its protocol: in what it sends and in what it refuses. */
export interface VendorHabits {
  readonly api: 'openai-chat' | 'openai-responses' | 'anthropic-messages';
  readonly schema?: string;
  /** The cloud whose published description holds for addresses, requests, answers and errors. */
  readonly cloud?: 'azure' | 'vertex';
  /** How reasoning comes, on Chat Completions. */
  readonly reasoning?: 'reasoning_content' | 'reasoning' | 'reasoning_details';
  /** Refuses an assistant message without `reasoning_content` (DeepSeek, Moonshot). */
  readonly wantsReasoning?: boolean;
  /** Whole calls in one piece, whatever `split` says (Ollama, Groq, Mistral). */
  readonly wholeCalls?: boolean;
  /** Call ids of nine letters and digits, none other taken (Mistral). */
  readonly nineIds?: boolean;
  /** Its template lets user and assistant take turns, results and calls aside (Mistral). */
  readonly alternates?: boolean;
  readonly refusedFields?: readonly string[];
  /** Signs the first call of an answer, and refuses that call without it (Gemini, on Chat Completions). */
  readonly signature?: string;
  /** Takes no picture. */
  readonly refusesImages?: boolean;
  /** What it says instead of what is wrong. */
  readonly refusal?: string;
  /** The ids in its list of models. Null: it has no list. */
  readonly models?: readonly string[] | null;
  /** What that list says of their context windows; 100,000 unless given. Null: nothing. */
  readonly windowTokens?: number | null;
  /** Judges address and authorization of a request; null lets it in. */
  readonly gate?: (request: IncomingMessage, body: Buffer) => Refused | null;
  /** The body as the schema of the protocol describes it, where the address or a header carries a part of it. */
  readonly asDescribed?: (body: Fields) => Fields;
}

interface Refused {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface VendorServer {
  readonly url: string;
  readonly bodies: readonly Fields[];
  /** Address and headers of each request, in order. */
  readonly requests: readonly Pick<IncomingMessage, 'method' | 'url' | 'headers'>[];
  /** Why requests were refused, each with 400; and what of our own answers is not as the cloud describes it. */
  readonly refusals: readonly string[];
  /** The answers to come, first one next. */
  script(...turns: readonly VendorTurn[]): void;
  close(): Promise<void>;
}

/** A server that judges every request as strictly as the vendor does (schema, pairing rules, its own habits) and plays
 * the model's side. */
export async function startVendor(habits: VendorHabits): Promise<VendorServer> {
  const bodies: Fields[] = [];
  const refusals: string[] = [];
  const requests: Pick<IncomingMessage, 'method' | 'url' | 'headers'>[] = [];
  const turns: VendorTurn[] = [];
  const server = createServer((request, response) => {
    void serve(request, response);
  });
  const against = (what: 'path' | 'request' | 'event' | 'error', value: unknown): readonly string[] => {
    const { cloud, api } = habits;
    if (cloud === undefined) return [];
    const error = schemaError(what === 'error' ? `${cloud}:error` : `${cloud}:${api}:${what}`, value);
    return error === null ? [] : [`${what}: ${error}`];
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    requests.push({ method: request.method, url: request.url, headers: request.headers });
    const refused = habits.gate?.(request, Buffer.concat(chunks)) ?? null;
    if (refused !== null) {
      refusals.push(...against('error', refused.body));
      json(response, refused.status, refused.body, refused.headers);
      return;
    }
    if (request.method === 'GET') {
      const ids = habits.models === undefined ? ['m'] : habits.models;
      const { windowTokens = 100_000 } = habits;
      const listed = windowTokens === null ? {} : { max_model_len: windowTokens };
      if (ids === null) json(response, 404, { error: { message: 'not found' } });
      else json(response, 200, { data: ids.map((id) => ({ id, ...listed })) });
      return;
    }
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Fields;
    bodies.push(body);
    const wrong = [
      ...against('path', request.url),
      ...against('request', body),
      ...judge(habits.asDescribed?.(body) ?? body, habits),
    ];
    if (wrong.length > 0) {
      refusals.push(...wrong);
      json(response, 400, { error: { type: 'invalid_request_error', message: habits.refusal ?? wrong[0] } });
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of answers[habits.api](turns.shift() ?? { text: 'End of script.' }, habits, bodies.length)) {
      const said = /^data: (\{.*)$/m.exec(event)?.[1];
      if (said !== undefined) refusals.push(...against('event', JSON.parse(said)));
      response.write(event);
    }
    response.end();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    bodies,
    requests,
    refusals,
    script: (...more) => {
      turns.push(...more);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function json(response: ServerResponse, status: number, body: unknown, headers: Refused['headers'] = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

function judge(body: Fields, habits: VendorHabits): readonly string[] {
  const schema = schemaError(habits.schema ?? `${habits.api}:request`, body);
  const messages = (body.messages ?? []) as readonly Fields[];
  const silent =
    habits.wantsReasoning === true
      ? messages.filter((message) => message.role === 'assistant' && typeof message.reasoning_content !== 'string')
      : [];
  const ids = habits.nineIds === true ? (JSON.stringify(messages).match(/"(?:tool_call_id|id)":"[^"]*"/g) ?? []) : [];
  return [
    ...(schema === null ? [] : [schema]),
    ...(rules[habits.api]?.(body) ?? []),
    ...(habits.alternates === true ? mistralTurns(messages) : []),
    ...(habits.refusesImages === true && /"image(?:_url)?"/.test(JSON.stringify(body))
      ? ['messages.0.content.0.image.source.base64.data: Could not process image']
      : []),
    ...(habits.signature !== undefined && messages.some((message) => isUnsigned(message, habits.signature))
      ? ['Function call is missing a thought_signature in functionCall parts.']
      : []),
    ...(loneSurrogates(body) > 0 ? ['a lone surrogate'] : []),
    ...silent.map(() => 'reasoning_content is missing in an assistant message'),
    ...ids.filter((id) => !/:"[a-zA-Z0-9]{9}"$/.test(id)).map((id) => `${id} is not nine letters and digits`),
    ...(habits.refusedFields ?? []).filter((field) => field in body).map((field) => `unknown field ${field}`),
  ];
}

/** True for an answer whose first call has not that signature. */
function isUnsigned({ tool_calls: calls }: Fields, signature: string | undefined): boolean {
  const [first] = (calls ?? []) as readonly Fields[];
  return first !== undefined && !JSON.stringify(first).includes(JSON.stringify(signature));
}

function cut(text: string, size: number): readonly string[] {
  return text === '' ? [] : (text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu')) ?? []);
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (type: string, value: object): string => `event: ${type}\n${data({ type, ...value })}`;

const answers: Readonly<
  Record<VendorHabits['api'], (turn: VendorTurn, habits: VendorHabits, n: number) => readonly string[]>
> = { 'openai-chat': chat, 'openai-responses': responses, 'anthropic-messages': messages };

function chat(turn: VendorTurn, habits: VendorHabits, n: number): readonly string[] {
  const size = turn.split ?? 1000;
  const delta = (value: unknown, finish: string | null = null): string =>
    data({
      id: `c${n}`,
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta: value, finish_reason: finish }],
    });
  const thought = (text: string): object =>
    habits.reasoning === 'reasoning_details'
      ? { reasoning: text, reasoning_details: [{ type: 'reasoning.text', text, format: 'unknown', index: 0 }] }
      : { [habits.reasoning ?? 'reasoning_content']: text };
  const calls = (turn.calls ?? []).flatMap(({ name, arguments: args }, index) => {
    const id = habits.nineIds === true ? `abcd${String(n * 10 + index).padStart(5, '0')}` : `call_${n}_${index}`;
    const pieces = habits.wholeCalls === true ? [args] : ['', ...cut(args, size)];
    return pieces.map((piece, at) =>
      delta({
        tool_calls: [
          {
            index,
            ...(at === 0 ? { id, type: 'function' } : {}),
            ...(habits.signature !== undefined && at === 0 && index === 0
              ? { extra_content: { google: { thought_signature: habits.signature } } }
              : {}),
            function: { ...(at === 0 ? { name } : {}), arguments: piece },
          },
        ],
      }),
    );
  });
  const head = [
    ': comment\n\n',
    ...cut(turn.reasoning ?? '', size).map((text) => delta(thought(text))),
    ...cut(turn.text ?? '', size).map((content) => delta({ content })),
  ];
  if (turn.error !== undefined)
    return [...head, data({ error: { message: turn.error, type: 'invalid_request_error' } })];
  const { input = 10, cached = 0, output = 5 } = turn.usage ?? {};
  const usage = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  };
  return [
    ...head,
    ...calls,
    delta({}, calls.length > 0 ? 'tool_calls' : 'stop'),
    data({ id: `c${n}`, object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }),
    'data: [DONE]\n\n',
  ];
}

function messages(turn: VendorTurn, _habits: VendorHabits, n: number): readonly string[] {
  const size = turn.split ?? 1000;
  const events = [
    named('message_start', {
      message: {
        id: `msg_${n}`,
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        usage: {
          input_tokens: (turn.usage?.input ?? 10) - (turn.usage?.cached ?? 0),
          cache_read_input_tokens: turn.usage?.cached ?? 0,
          output_tokens: 1,
        },
      },
    }),
    named('ping', {}),
  ];
  let index = 0;
  const block = (start: object, deltas: readonly object[]): void => {
    events.push(
      named('content_block_start', { index, content_block: start }),
      ...deltas.map((delta) => named('content_block_delta', { index, delta })),
      named('content_block_stop', { index }),
    );
    index++;
  };
  if (turn.reasoning !== undefined)
    block({ type: 'thinking', thinking: '', signature: '' }, [
      ...cut(turn.reasoning, size).map((thinking) => ({ type: 'thinking_delta', thinking })),
      { type: 'signature_delta', signature: 'c2ln' },
    ]);
  if (turn.text !== undefined)
    block(
      { type: 'text', text: '' },
      cut(turn.text, size).map((text) => ({ type: 'text_delta', text })),
    );
  if (turn.error !== undefined)
    return [...events, named('error', { error: { type: 'invalid_request_error', message: turn.error } })];
  (turn.calls ?? []).forEach(({ name, arguments: args }, at) => {
    block(
      { type: 'tool_use', id: `toolu_${n}_${at}`, name, input: {} },
      cut(args, size).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    );
  });
  return [
    ...events,
    named('message_delta', {
      delta: { stop_reason: turn.calls ? 'tool_use' : 'end_turn', stop_sequence: null },
      usage: { output_tokens: turn.usage?.output ?? 5 },
    }),
    named('message_stop', {}),
  ];
}

function responses(turn: VendorTurn, _habits: VendorHabits, n: number): readonly string[] {
  const size = turn.split ?? 1000;
  const events: string[] = [];
  const output: object[] = [];
  const say = (type: string, value: object): void => {
    events.push(named(type, { sequence_number: events.length, ...value }));
  };
  const response = (status: string): object => ({ ...emptyResponse, id: `resp_${n}`, status, output });
  say('response.created', { response: response('in_progress') });
  const item = (value: Fields, empty: object, deltas: readonly (readonly [type: string, delta: string])[]): void => {
    const output_index = output.length;
    say('response.output_item.added', { output_index, item: { ...value, ...empty } });
    const index = value.type === 'reasoning' ? 'summary_index' : 'content_index';
    for (const [type, delta] of deltas) say(type, { item_id: value.id, output_index, [index]: 0, delta });
    say('response.output_item.done', { output_index, item: value });
    output.push(value);
  };
  if (turn.reasoning !== undefined)
    item(
      {
        type: 'reasoning',
        id: `rs_${n}`,
        summary: [{ type: 'summary_text', text: turn.reasoning }],
        encrypted_content: 'gAAA',
      },
      {},
      cut(turn.reasoning, size).map((text) => ['response.reasoning_summary_text.delta', text]),
    );
  if (turn.text !== undefined)
    item(
      {
        type: 'message',
        id: `msg_${n}`,
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: turn.text, annotations: [] }],
      },
      { content: [] },
      cut(turn.text, size).map((text) => ['response.output_text.delta', text]),
    );
  if (turn.error !== undefined) {
    say('error', { code: 'invalid_prompt', message: turn.error, param: null });
    return events;
  }
  (turn.calls ?? []).forEach(({ name, arguments: args }, at) => {
    item(
      {
        type: 'function_call',
        id: `fc_${n}_${at}`,
        call_id: `call_${n}_${at}`,
        name,
        arguments: args,
        status: 'completed',
      },
      { arguments: '' },
      cut(args, size).map((piece) => ['response.function_call_arguments.delta', piece]),
    );
  });
  const { input = 10, cached = 0, output: out = 5 } = turn.usage ?? {};
  const usage = {
    input_tokens: input,
    output_tokens: out,
    total_tokens: input + out,
    input_tokens_details: { cached_tokens: cached },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  say('response.completed', { response: { ...response('completed'), usage } });
  return events;
}

/** The members that each response has. */
const emptyResponse = {
  object: 'response',
  created_at: 1,
  model: 'm',
  metadata: {},
  temperature: 1,
  top_p: 1,
  user: null,
  error: null,
  incomplete_details: null,
  instructions: null,
  parallel_tool_calls: true,
};

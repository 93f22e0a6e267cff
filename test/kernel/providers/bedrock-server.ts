import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { crc32 } from 'node:zlib';
import { schemaError } from './wires/request-rules.js';

type Fields = Readonly<Record<string, unknown>>;

/** Credentials that the server accepts. */
export interface AwsKeys {
  readonly id: string;
  readonly secret: string;
  readonly session?: string;
}

/** One answer of a scripted model. */
interface ConverseTurn {
  readonly text?: string;
  readonly reasoning?: string;
  readonly redacted?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  /** Instead of an answer. */
  readonly refused?: { readonly status: number; readonly type: string; readonly message: string };
  /** Ends the stream with an exception. */
  readonly exception?: { readonly type: string; readonly message: string };
  /** Changes a byte of the second frame. */
  readonly isDamaged?: boolean;
  /** Leaves out the end of the stream. */
  readonly isCut?: boolean;
}

export interface BedrockServer {
  readonly url: string;
  readonly bodies: readonly Fields[];
  readonly requests: readonly { readonly url: string; readonly headers: IncomingMessage['headers'] }[];
  /** Reasons for refusals of bodies, and what of our own answers is not as AWS describes it. */
  readonly refusals: readonly string[];
  script(...turns: readonly ConverseTurn[]): void;
  close(): Promise<void>;
}

/** A double of Amazon Bedrock's runtime and of its list of inference profiles. It recomputes the signature of each
 * request, checks the body and its own answers against fixtures/clouds/bedrock.schemas.json, the body also against
 * the rules for turns, and answers in event frames. Sources: Amazon Bedrock API Reference, "ConverseStream"; "Signature Version 4 signing process"; "Event stream encoding" (read
 * 2026-11). */
export async function startBedrock(accepts: {
  readonly keys?: () => readonly AwsKeys[];
  readonly token?: string;
}): Promise<BedrockServer> {
  const bodies: Fields[] = [];
  const requests: { url: string; headers: IncomingMessage['headers'] }[] = [];
  const refusals: string[] = [];
  const turns: ConverseTurn[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const bytes = Buffer.concat(chunks);
    const { url = '', headers } = request;
    requests.push({ url, headers });
    const wrong = authorizationError(request, bytes, accepts);
    if (wrong !== null) {
      refuse(response, 403, wrong.type, wrong.message);
      return;
    }
    if (request.method === 'GET') {
      const found = {
        inferenceProfileSummaries: [{ inferenceProfileId: 'us.amazon.nova-pro-v1:0', status: 'ACTIVE' }],
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
      return;
    }
    const body = JSON.parse(bytes.toString()) as Fields;
    bodies.push(body);
    const problems = [...against('path', url), ...against('request', body), ...turnProblems(body)];
    if (problems.length > 0) {
      refusals.push(...problems);
      refuse(response, 400, 'ValidationException', problems[0] ?? '');
      return;
    }
    const turn = turns.shift() ?? { text: 'End of script.' };
    if (turn.refused !== undefined) {
      refusals.push(...against('error', { message: turn.refused.message }));
      refuse(response, turn.refused.status, turn.refused.type, turn.refused.message);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
    // Frames are cut anywhere.
    const answer = Buffer.concat(frames(turn, bodies.length, (event) => refusals.push(...against('event', event))));
    for (let at = 0; at < answer.length; at += 50) response.write(answer.subarray(at, at + 50));
    response.end();
  };
  const server = createServer((request, response) => {
    void serve(request, response);
  });
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

function refuse(response: ServerResponse, status: number, type: string, message: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'x-amzn-errortype': `${type}:http://internal.amazon.com/`,
  });
  response.end(JSON.stringify({ message }));
}

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest();
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

function authorizationError(
  { method = '', url = '', headers }: IncomingMessage,
  body: Buffer,
  { keys, token }: { readonly keys?: () => readonly AwsKeys[]; readonly token?: string },
): { readonly type: string; readonly message: string } | null {
  const given = headers.authorization ?? '';
  if (given.startsWith('Bearer '))
    return given === `Bearer ${token ?? ''}`
      ? null
      : { type: 'AccessDeniedException', message: 'Invalid API Key format' };
  const parsed =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/bedrock\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      given,
    );
  if (parsed === null) return { type: 'MissingAuthenticationTokenException', message: 'Missing Authentication Token' };
  const [, id = '', day = '', region = '', signed = '', signature = ''] = parsed;
  const owner = keys?.().find((key) => key.id === id);
  if (owner === undefined)
    return { type: 'ExpiredTokenException', message: 'The security token included in the request is expired' };
  if (owner.session !== undefined && headers['x-amz-security-token'] !== owner.session)
    return { type: 'UnrecognizedClientException', message: 'The security token included in the request is invalid.' };
  const { pathname, searchParams } = new URL(url, 'http://here');
  const query = [...searchParams]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted()
    .join('&');
  const canonical = [
    method,
    pathname.split('/').map(encode).join('/'),
    query,
    ...signed.split(';').map((name) => `${name}:${String(headers[name] ?? '').trim()}`),
    '',
    signed,
    headers['x-amz-content-sha256'] ?? sha256(body),
  ].join('\n');
  if (sha256(body) !== (headers['x-amz-content-sha256'] ?? sha256(body)))
    return { type: 'XAmzContentSHA256Mismatch', message: 'The digest of the body is wrong' };
  const date = String(headers['x-amz-date']);
  const scope = `${day}/${region}/bedrock/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n');
  const key = ['bedrock', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${owner.secret}`, day), region));
  return hmac(key, toSign).toString('hex') === signature
    ? null
    : {
        type: 'InvalidSignatureException',
        message: 'The request signature we calculated does not match the signature you provided.',
      };
}

function against(what: 'path' | 'request' | 'event' | 'error', value: unknown): readonly string[] {
  const error = schemaError(`bedrock-converse:${what}`, value);
  return error === null ? [] : [`${what}: ${error}`];
}

interface Block {
  readonly text?: string;
  readonly toolUse?: { readonly toolUseId: string };
  readonly toolResult?: { readonly toolUseId: string };
}

/** Roles alternate, the user begins, each call is answered in the next message, no text is blank. */
function turnProblems({
  messages = [],
}: { readonly messages?: readonly { role: string; content: readonly Block[] }[] } & Fields): string[] {
  return messages.flatMap(({ role, content }, index) => {
    const calls = messages[index - 1]?.content.flatMap(({ toolUse }) => (toolUse ? [toolUse.toolUseId] : [])) ?? [];
    const results = content.flatMap(({ toolResult }) => (toolResult ? [toolResult.toolUseId] : []));
    return [
      ...(role === (index % 2 === 0 ? 'user' : 'assistant')
        ? []
        : ['A conversation must alternate between user and assistant roles.']),
      ...(JSON.stringify(calls) === JSON.stringify(results)
        ? []
        : [`Expected toolResult blocks for ${calls.join()}, found ${results.join()}`]),
      ...(content.some(({ text }) => text?.trim() === '')
        ? ['The text field in the ContentBlock object is blank.']
        : []),
    ];
  });
}

function frames(turn: ConverseTurn, n: number, onEvent: (event: object) => void): readonly Buffer[] {
  const event = (type: string, payload: object): Buffer => {
    onEvent({ [type]: payload });
    return eventFrame(type, payload);
  };
  const made: Buffer[] = [event('messageStart', { role: 'assistant' })];
  let index = 0;
  const block = (start: object | null, deltas: readonly object[]): void => {
    if (start !== null) made.push(event('contentBlockStart', { contentBlockIndex: index, start }));
    for (const delta of deltas) made.push(event('contentBlockDelta', { contentBlockIndex: index, delta }));
    made.push(event('contentBlockStop', { contentBlockIndex: index }));
    index++;
  };
  if (turn.reasoning !== undefined)
    block(null, [
      ...pieces(turn.reasoning).map((text) => ({ reasoningContent: { text } })),
      { reasoningContent: { signature: 'c2lnbmVk' } },
    ]);
  if (turn.redacted !== undefined) block(null, [{ reasoningContent: { redactedContent: turn.redacted } }]);
  if (turn.text !== undefined)
    block(
      null,
      pieces(turn.text).map((text) => ({ text })),
    );
  for (const [at, { name, arguments: input }] of (turn.calls ?? []).entries())
    block(
      { toolUse: { toolUseId: `tooluse_${n}_${at}`, name } },
      pieces(input).map((piece) => ({ toolUse: { input: piece } })),
    );
  if (turn.exception !== undefined) {
    const { type, message } = turn.exception;
    onEvent({ [type]: { message } });
    return [...made, frame({ ':exception-type': type, ':message-type': 'exception' }, { message })];
  }
  if (turn.isDamaged === true) {
    const second = made[1] ?? Buffer.alloc(0);
    second[second.length - 6] = (second[second.length - 6] ?? 0) ^ 1;
  }
  if (turn.isCut === true) return made;
  const usage = {
    inputTokens: 10,
    outputTokens: 5,
    totalTokens: 35,
    cacheReadInputTokens: 20,
    cacheWriteInputTokens: 0,
  };
  return [
    ...made,
    event('messageStop', { stopReason: turn.calls ? 'tool_use' : 'end_turn' }),
    event('metadata', { usage, metrics: { latencyMs: 1 } }),
  ];
}

function pieces(text: string): readonly string[] {
  return text.match(/[\s\S]{1,7}/gu) ?? [];
}

function eventFrame(type: string, payload: object): Buffer {
  return frame(
    { ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' },
    { ...payload, p: 'abcd' },
  );
}

/** One message: lengths and their checksum, headers of text, payload, checksum of all. */
function frame(headers: Readonly<Record<string, string>>, payload: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + body.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, body]);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, end]);
}

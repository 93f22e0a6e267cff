import { get, request, type IncomingMessage } from 'node:http';
import { Ajv2020 } from 'ajv/dist/2020.js';

export interface ApiReply {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly value: unknown;
}

type Described = Readonly<Record<string, unknown>>;
interface ApiDocument {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: Described;
}

/** A program that uses the HTTP API. Every answer that it gets is checked against the document of the API. */
export class ApiClient {
  readonly url: URL;
  readonly token: string;
  #document: ApiDocument | null = null;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });

  constructor(url: string, token: string) {
    this.url = new URL(url);
    this.token = token;
  }

  get auth(): Record<string, string> {
    return { authorization: `Bearer ${this.token}` };
  }

  /** Sends a request with exactly these headers, besides those of a JSON body. */
  async raw(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body?: string,
  ): Promise<ApiReply & { readonly text: string }> {
    return await new Promise((resolve, reject) => {
      const { hostname: host, port } = this.url;
      const sent = request({ host, port, method, path, headers, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => {
          const isJson = response.headers['content-type']?.startsWith('application/json') === true;
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            value: isJson ? (JSON.parse(text) as unknown) : null,
          });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }

  async document(): Promise<ApiDocument> {
    if (this.#document === null) {
      const { value } = await this.raw('GET', '/api/openapi.json', {});
      this.#document = value as ApiDocument;
      this.#ajv.addSchema({ $id: 'api', components: this.#document.components });
    }
    return this.#document;
  }

  /** Sends a request with the token, or with other headers, and checks the answer. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = this.auth,
  ): Promise<ApiReply> {
    const json = body === undefined ? {} : { 'content-type': 'application/json' };
    const text = body === undefined ? undefined : JSON.stringify(body);
    const reply = await this.raw(method, path, { ...json, ...headers }, text);
    await this.check(method, path, reply);
    return reply;
  }

  /** Throws where the document does not describe the answer. */
  async check(method: string, path: string, { status, value }: ApiReply): Promise<void> {
    const { paths } = await this.document();
    const [pathname = ''] = path.split('?');
    const template = Object.keys(paths).find((each) =>
      new RegExp(`^${each.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname),
    );
    const operation = paths[template ?? '']?.[method.toLowerCase()];
    const responses = operation?.responses as Readonly<Record<string, { readonly content: Described }>> | undefined;
    if (operation !== undefined && responses?.[status] === undefined)
      throw new Error(`${method} ${path}: ${status} is not described: ${JSON.stringify(value)}`);
    const described = responses?.[status]?.content['application/json'] as { readonly schema: object } | undefined;
    const schema = described?.schema ?? { $ref: '#/components/schemas/Error' };
    const check = this.#ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object);
    if (!check(value))
      throw new Error(`${method} ${path}: ${status} does not match: ${this.#ajv.errorsText(check.errors)}`);
  }

  stream(path: string, headers: Readonly<Record<string, string>> = {}): ApiStream {
    return new ApiStream(this.url, path, { ...this.auth, accept: 'text/event-stream', ...headers });
  }
}

export interface StreamedBlock {
  /** `message` for events of the log. */
  readonly name: string;
  readonly id: number | null;
  readonly data: unknown;
}

/** A stream of events, read as a browser reads it. */
export class ApiStream {
  readonly blocks: StreamedBlock[] = [];
  status = 0;
  #rest = '';
  #look = (): void => undefined;
  #response: IncomingMessage | null = null;
  readonly #stop: () => void;

  constructor({ hostname: host, port }: URL, path: string, headers: Readonly<Record<string, string>>) {
    const sent = get({ host, port, path, headers, agent: false }, (response) => {
      this.#response = response;
      this.status = response.statusCode ?? 0;
      response.setEncoding('utf8').on('data', (part: string) => {
        this.#take(part);
      });
      response.on('error', () => undefined);
      this.#look();
    });
    sent.on('error', () => undefined);
    this.#stop = () => sent.destroy();
  }

  /** The numbers of the events so far. */
  get ids(): readonly number[] {
    return this.blocks.flatMap(({ id }) => (id === null ? [] : [id]));
  }

  /** The newest value with this name. */
  latest(name: string): unknown {
    return this.blocks.findLast((block) => block.name === name)?.data;
  }

  until(test: (stream: ApiStream) => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#look = () => {
        if (test(this)) resolve();
      };
      this.#look();
    });
  }

  pause(): void {
    this.#response?.pause();
  }

  resume(): void {
    this.#response?.resume();
  }

  kill(): void {
    this.#stop();
  }

  #take(part: string): void {
    const blocks = (this.#rest + part).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      );
      const data = fields.get('data');
      if (data === undefined) continue;
      const id = fields.get('id');
      this.blocks.push({
        name: fields.get('event') ?? 'message',
        id: id === undefined ? null : Number(id),
        data: JSON.parse(data) as unknown,
      });
    }
    this.#look();
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonSchema } from '../../../kernel/core/json.js';
import { loadOnce } from '../../../kernel/core/runtime.js';
import { loadSchemaCompiler } from '../../../kernel/tools/registry.js';
import { type Caller, integerOf, jsonBody, Refusal } from '../http-guard.js';
import { apiDocument, documentPath } from './api-document.js';
import { type ApiCall, type ApiRoute, apiRoutes, type ServedSessions } from './api-routes.js';
import { apiSchemas, type ApiSchemaName } from './api-schemas.js';

/** Of a request: a message with its attachments. */
const mostBodyBytes = 32 * 1024 * 1024;

/** Returns true for a path of the API. */
export function isApiPath(pathname: string): boolean {
  return pathname === '/api' || pathname.startsWith('/api/');
}

/** Throws a `Refusal` for whoever is not let in. */
export interface Admission {
  readonly refuseStrangers: () => void;
  /** Returns who asks; throws for anyone without the token. */
  readonly callerOf: () => Caller;
}

/** Answers requests to the API. */
export class HttpApi {
  readonly #sessions: ServedSessions;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #compiler = loadOnce(loadSchemaCompiler);

  /** `headers`: of every answer. */
  constructor(sessions: ServedSessions, headers: Readonly<Record<string, string>>) {
    this.#sessions = sessions;
    this.#headers = headers;
  }

  async answer(request: IncomingMessage, response: ServerResponse, url: URL, admission: Admission): Promise<void> {
    try {
      admission.refuseStrangers();
      if (url.pathname === documentPath) this.#describe(request, response);
      else await this.#route(request, response, url, admission.callerOf());
    } catch (error) {
      if (response.headersSent) response.destroy();
      else this.#refuse(response, error);
    }
  }

  #describe({ method }: IncomingMessage, response: ServerResponse): void {
    if (method !== 'GET') throw wrongMethod(['GET']);
    this.#send(response, 200, apiDocument());
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: URL, source: Caller): Promise<void> {
    const found = apiRoutes.flatMap((route) => {
      const parts = partsOf(route.path, url.pathname);
      return parts ? [{ route, parts }] : [];
    });
    if (found.length === 0)
      throw new Refusal(404, `There is no ${url.pathname}.`, { hint: `${documentPath} describes the API.` });
    const chosen = found.find(({ route }) => route.method === request.method);
    if (!chosen) throw wrongMethod(found.map(({ route }) => route.method));
    const { route, parts } = chosen;
    const call: ApiCall = {
      sessions: this.#sessions,
      id: parts.id ?? '',
      approval: parts.approval ?? '',
      questions: parts.questions ?? '',
      query: queryOf(route, url.searchParams),
      body: route.method === 'POST' ? await this.#body(request, route.body) : null,
      source,
      request,
      response,
    };
    const answer = await route.run(call);
    if (answer) this.#send(response, answer.status, answer.value, answer.headers);
  }

  /** Every request that changes something has a JSON body, so that no page of another site can make one. */
  async #body(request: IncomingMessage, name: ApiSchemaName | undefined): Promise<unknown> {
    const body = await jsonBody(request, mostBodyBytes);
    const schema: JsonSchema = name ? apiSchemas[name] : { type: 'object', additionalProperties: false };
    const problem = (await this.#compiler.get())(schema)(body);
    if (problem === null) return body;
    const at = problem.argument === '' ? 'The body' : `\`${problem.argument}\``;
    throw new Refusal(400, `${at} ${problem.problem}.`, { hint: `Expected ${problem.expected}.` });
  }

  #send(
    response: ServerResponse,
    status: number,
    value: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): void {
    response
      .writeHead(status, { ...this.#headers, ...headers, 'content-type': 'application/json; charset=utf-8' })
      .end(`${JSON.stringify(value)}\n`);
  }

  #refuse(response: ServerResponse, error: unknown): void {
    const { status, code, message, hint, headers } =
      error instanceof Refusal ? error : new Refusal(500, error instanceof Error ? error.message : String(error));
    this.#send(response, status, { error: { code, message, hint } }, headers);
  }
}

function wrongMethod(allowed: readonly string[]): Refusal {
  return new Refusal(405, `This path takes ${allowed.join(' and ')}.`, { headers: { allow: allowed.join(', ') } });
}

/** Returns the parts in braces of a path, or null where the path is another. */
function partsOf(path: string, pathname: string): Readonly<Record<string, string>> | null {
  const [wanted, given] = [path.split('/'), pathname.split('/')];
  if (wanted.length !== given.length) return null;
  const parts: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    const value = decoded(given[index] ?? '');
    if (name === undefined ? part !== value : value === '') return null;
    if (name !== undefined) parts[name] = value;
  }
  return parts;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

function queryOf({ query = {} }: ApiRoute, given: URLSearchParams): ApiCall['query'] {
  const names = Object.keys(query);
  for (const name of given.keys())
    if (!names.includes(name))
      throw new Refusal(400, `\`${name}\` is no parameter here.`, {
        hint: names.length === 0 ? 'Leave it out.' : `Known: ${names.join(', ')}.`,
      });
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = given.get(name);
      const parameter = query[name];
      if (value === null || !parameter) return [];
      return [[name, parameter.type === 'string' ? value : integerOf(name, value, parameter)] as const];
    }),
  );
}

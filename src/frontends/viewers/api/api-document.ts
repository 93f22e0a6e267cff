import type { Json, JsonObject } from '../../../kernel/core/json.js';
import { version } from '../../../kernel/console/version.js';
import type { RefusedStatus } from '../http-guard.js';
import { type ApiRoute, apiRoutes } from './api-routes.js';
import { apiSchemas, type ApiSchemaName } from './api-schemas.js';

export const documentPath = '/api/openapi.json';

const refusals: Readonly<Record<RefusedStatus, string>> = {
  400: 'The request is not as described.',
  401: 'The token is missing or wrong.',
  403: 'The request comes from another site.',
  404: 'There is no such thing.',
  405: 'The path takes another method; `Allow` names it.',
  409: 'The session is not in a state for it.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  421: 'The request names another host.',
  500: 'The server failed.',
  503: 'The process that runs the session does not answer.',
};

const reference = (name: ApiSchemaName): JsonObject => ({ $ref: `#/components/schemas/${name}` });
const asJson = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } });

/** Returns the description of the API, OpenAPI 3.1. Source: spec.openapis.org/oas/v3.1.1. */
export function apiDocument(): JsonObject {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of apiRoutes)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route) };
  paths[documentPath] = {
    get: {
      operationId: 'describeApi',
      summary: 'This document. It needs no token.',
      security: [],
      responses: {
        200: { description: 'The document.', content: asJson({ type: 'object' }) },
        ...refused([403, 421, 500]),
      },
    },
  };
  return {
    openapi: '3.1.0',
    info: { title: 'agent', version, description: 'The sessions of this user on this machine.' },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: 'Printed by agent serve --json.' } },
      schemas: apiSchemas,
    },
  };
}

function operation(route: ApiRoute): JsonObject {
  const { name, about, body, answers, refuses = {} } = route;
  const responses = Object.entries(answers).map(([status, { about: description, of, isList, isStream }]) => {
    const schema = of === null ? {} : reference(of);
    const content = {
      ...asJson(isList ? { type: 'array', items: schema } : schema),
      ...(isStream ? { 'text/event-stream': { schema: { type: 'string' } } } : {}),
    };
    return [status, { description, content }] as const;
  });
  return {
    operationId: name,
    summary: about,
    parameters: parametersOf(route),
    ...(body ? { requestBody: { required: true, content: asJson(reference(body)) } } : {}),
    responses: { ...Object.fromEntries(responses), ...refused(statusesOf(route), refuses) },
  };
}

function parametersOf({ path, query = {}, headers = {} }: ApiRoute): readonly JsonObject[] {
  return [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...Object.entries(query).map(([name, { about, ...schema }]) => ({ name, in: 'query', description: about, schema })),
    ...Object.entries(headers).map(([name, description]) => ({
      name,
      in: 'header',
      description,
      schema: { type: 'string' },
    })),
  ];
}

/** Returns the statuses with which a route of its kind refuses. */
function statusesOf({ path, method, refuses = {} }: ApiRoute): readonly RefusedStatus[] {
  return [
    400,
    401,
    403,
    ...(path.includes('{') ? [404 as const] : []),
    ...(method === 'POST' ? [413 as const, 415 as const] : []),
    421,
    500,
    503,
    ...Object.keys(refuses).map((status) => Number(status) as RefusedStatus),
  ];
}

function refused(
  statuses: readonly RefusedStatus[],
  special: Partial<Readonly<Record<RefusedStatus, string>>> = {},
): JsonObject {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      { description: special[status] ?? refusals[status], content: asJson(reference('Error')) },
    ]),
  );
}

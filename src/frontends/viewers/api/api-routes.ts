import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Caller, integerOf, type RefusedStatus } from '../http-guard.js';
import type { ApiSchemaName, ApiValue } from './api-schemas.js';

/** The sessions behind the API. The pages use them through the same routes. */
export interface ServedSessions {
  list(limit: number, cwd: string | undefined): Promise<readonly ApiValue<'Session'>[]>;
  /** Throws a `Refusal` for a session that is unknown, as all methods with an id do. */
  session(id: string): Promise<ApiValue<'Session'>>;
  start(asked: ApiValue<'NewSession'>, source: Caller): Promise<ApiValue<'Started'>>;
  send(id: string, message: ApiValue<'NewMessage'>, source: Caller): Promise<ApiValue<'Sent'>>;
  interrupt(id: string): Promise<ApiValue<'Done'>>;
  stop(id: string): Promise<ApiValue<'Done'>>;
  approvals(id: string): Promise<readonly ApiValue<'Approval'>[]>;
  decide(id: string, approval: string, decision: ApiValue<'Decision'>, source: Caller): Promise<ApiValue<'Done'>>;
  questions(id: string): Promise<readonly ApiValue<'Questions'>[]>;
  reply(id: string, questions: string, reply: ApiValue<'Reply'>, source: Caller): Promise<ApiValue<'Done'>>;
  /** Events after `after`, at most `limit`, and whether there are more. */
  events(
    id: string,
    after: number,
    limit: number,
  ): Promise<{ readonly events: readonly ApiValue<'Event'>[]; readonly hasMore: boolean }>;
  /** Sends events until the client is gone. */
  stream(id: string, after: number, isLive: boolean, response: ServerResponse): Promise<void>;
}

/** A request to a route: what its table entry describes, checked. */
export interface ApiCall {
  readonly sessions: ServedSessions;
  /** The parts of the path in braces. */
  readonly id: string;
  readonly approval: string;
  readonly questions: string;
  readonly query: Readonly<Record<string, number | string | undefined>>;
  readonly body: unknown;
  readonly source: Caller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface ApiAnswer {
  readonly status: number;
  readonly value: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface QueryParameter {
  readonly about: string;
  readonly type: 'integer' | 'string';
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A route of the API. The document of the API and the routing are made of the same table. */
export interface ApiRoute {
  readonly name: string;
  readonly method: 'GET' | 'POST';
  /** `{id}`, `{approval}` and `{questions}` are parts of it. */
  readonly path: string;
  readonly about: string;
  readonly query?: Readonly<Record<string, QueryParameter>>;
  /** Headers that it reads. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: ApiSchemaName;
  readonly answers: Readonly<
    Record<
      number,
      { readonly about: string; readonly of: ApiSchemaName | null; readonly isList?: true; readonly isStream?: true }
    >
  >;
  /** The refusals beyond those of its kind of route. */
  readonly refuses?: Partial<Readonly<Record<RefusedStatus, string>>>;
  /** Answers without a token. */
  readonly isOpen?: true;
  /** Null: it has answered itself. */
  readonly run: (call: ApiCall) => Promise<ApiAnswer | null>;
}

const ok = (value: unknown): ApiAnswer => ({ status: 200, value });
const defaultEvents = 500;
const mostEvents = 1000;
const defaultSessions = 100;
const mostSessions = 1000;

export const apiRoutes: readonly ApiRoute[] = [
  {
    name: 'listSessions',
    method: 'GET',
    path: '/api/sessions',
    about: 'Sessions that run first, then the stored ones, newest first.',
    query: {
      limit: {
        about: `At most so many; ${defaultSessions} by default.`,
        type: 'integer',
        minimum: 1,
        maximum: mostSessions,
      },
      cwd: { about: 'Only sessions of this directory.', type: 'string' },
    },
    answers: { 200: { about: 'The sessions.', of: 'Session', isList: true } },
    run: async ({ sessions, query }) =>
      ok(await sessions.list(Number(query.limit ?? defaultSessions), query.cwd?.toString())),
  },
  {
    name: 'startSession',
    method: 'POST',
    path: '/api/sessions',
    about: 'Start a session in the background.',
    body: 'NewSession',
    answers: { 201: { about: 'The session exists and works on the message.', of: 'Started' } },
    refuses: { 409: 'The session could not be started; `message` says why.' },
    run: async ({ sessions, body, source }) => {
      const started = await sessions.start(body as ApiValue<'NewSession'>, source);
      return { status: 201, value: started, headers: { location: `/api/sessions/${started.session_id}` } };
    },
  },
  {
    name: 'showSession',
    method: 'GET',
    path: '/api/sessions/{id}',
    about: 'A session.',
    answers: { 200: { about: 'The session.', of: 'Session' } },
    run: async ({ sessions, id }) => ok(await sessions.session(id)),
  },
  {
    name: 'readEvents',
    method: 'GET',
    path: '/api/sessions/{id}/events',
    about:
      'The events of a session, each once and in order. With `Accept: text/event-stream` the answer continues with every ' +
      'event as it comes; the number of the event is the id, so a client that comes again misses none and gets none twice.',
    query: {
      after: { about: 'Only events with a greater number; 0 by default.', type: 'integer', minimum: 0 },
      limit: {
        about: `JSON: at most so many; ${defaultEvents} by default.`,
        type: 'integer',
        minimum: 1,
        maximum: mostEvents,
      },
      live: {
        about:
          'Stream, with 1: also what is not recorded, as events with a name and without an id. `state` (a Session) and ' +
          '`approvals` and `questions` (all that are open) come whole, at first and at each change. `text` is the next part of the answer ' +
          'in flight, which the event of the answer replaces; `void` discards it.',
        type: 'integer',
        minimum: 0,
        maximum: 1,
      },
    },
    headers: { 'Last-Event-ID': 'Stream: as `after`, which it overrides.' },
    answers: {
      200: {
        about: 'The events. `Link` names the next page, if there is one.',
        of: 'Event',
        isList: true,
        isStream: true,
      },
    },
    run: readEvents,
  },
  {
    name: 'sendMessage',
    method: 'POST',
    path: '/api/sessions/{id}/messages',
    about: 'Send a message to a session: to the process that runs it, or for when it is opened the next time.',
    body: 'NewMessage',
    answers: { 202: { about: 'The message is on the disk.', of: 'Sent' } },
    refuses: { 409: 'The session did not take it; `message` says why.' },
    run: async ({ sessions, id, body, source }) => ({
      status: 202,
      value: await sessions.send(id, body as ApiValue<'NewMessage'>, source),
    }),
  },
  {
    name: 'interruptTurn',
    method: 'POST',
    path: '/api/sessions/{id}/interrupt',
    about: 'Interrupt the running turn. Queued messages stay.',
    answers: { 200: { about: '`interrupted`.', of: 'Done' } },
    refuses: { 409: '`not_running`: no process runs the session.' },
    run: async ({ sessions, id }) => ok(await sessions.interrupt(id)),
  },
  {
    name: 'stopSession',
    method: 'POST',
    path: '/api/sessions/{id}/stop',
    about: 'End the process that runs the session, in order. The session can be resumed.',
    answers: { 200: { about: '`stopped`, also if it had ended already.', of: 'Done' } },
    refuses: { 409: 'The process does not end; `message` says why.' },
    run: async ({ sessions, id }) => ok(await sessions.stop(id)),
  },
  {
    name: 'listApprovals',
    method: 'GET',
    path: '/api/sessions/{id}/approvals',
    about: 'The tool calls that wait for an answer.',
    answers: { 200: { about: 'The open approvals.', of: 'Approval', isList: true } },
    run: async ({ sessions, id }) => ok(await sessions.approvals(id)),
  },
  {
    name: 'answerApproval',
    method: 'POST',
    path: '/api/sessions/{id}/approvals/{approval}',
    about: 'Allow or deny a tool call.',
    body: 'Decision',
    answers: { 200: { about: '`allowed` or `denied`.', of: 'Done' } },
    refuses: {
      409: '`changed`: the call is not the one that was shown. `answered`: it has its answer. `not_shown`: it was not listed before.',
    },
    run: async ({ sessions, id, approval, body, source }) =>
      ok(await sessions.decide(id, approval, body as ApiValue<'Decision'>, source)),
  },
  {
    name: 'listQuestions',
    method: 'GET',
    path: '/api/sessions/{id}/questions',
    about: 'The questions of the model, or of a server, that wait for an answer.',
    answers: { 200: { about: 'The open questions.', of: 'Questions', isList: true } },
    run: async ({ sessions, id }) => ok(await sessions.questions(id)),
  },
  {
    name: 'answerQuestions',
    method: 'POST',
    path: '/api/sessions/{id}/questions/{questions}',
    about: 'Answer questions, or decline to.',
    body: 'Reply',
    answers: { 200: { about: '`answered` or `declined`.', of: 'Done' } },
    refuses: {
      400: 'The request is not as described, or a value does not fit its field.',
      409: '`changed`: the questions are not those that were shown. `answered`: they have their answer. `not_shown`: they were not listed before.',
    },
    run: async ({ sessions, id, questions, body, source }) =>
      ok(await sessions.reply(id, questions, body as ApiValue<'Reply'>, source)),
  },
];

async function readEvents({ sessions, id, query, request, response }: ApiCall): Promise<ApiAnswer | null> {
  const isStream = (request.headers.accept ?? '').toLowerCase().includes('text/event-stream');
  const given = Number(query.after ?? 0);
  const lastId = request.headers['last-event-id'];
  // A browser that connects again asks with the same address, and says in a header what it has.
  const after = isStream && typeof lastId === 'string' && lastId !== '' ? integerOf('Last-Event-ID', lastId) : given;
  if (isStream) {
    await sessions.stream(id, after, query.live === 1, response);
    return null;
  }
  const limit = Number(query.limit ?? defaultEvents);
  const { events, hasMore } = await sessions.events(id, after, limit);
  const last = events.at(-1)?.seq ?? after;
  const next = `</api/sessions/${id}/events?after=${last}&limit=${limit}>; rel="next"`;
  return { status: 200, value: events, ...(hasMore ? { headers: { link: next } } : {}) };
}

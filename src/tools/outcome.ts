import { errorEnvelope, type ErrorCode, type OutputEnvelope } from '../core/envelope.js';
import type { Json } from '../core/json.js';
import { firstLine } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';

/** What a call left behind besides its envelope. */
export type Effects = Pick<ToolOutcome, 'files' | 'diff' | 'changes'>;

export function succeeded(summary: string, envelope: OutputEnvelope, effects: Effects = {}): ToolOutcome {
  return { envelope, summary, ...effects };
}

/** `error` is one sentence for the model: what, with which value, what to try. */
export function failed(code: ErrorCode, error: string, details?: Json): ToolOutcome {
  return { envelope: errorEnvelope(code, error, details), summary: firstLine(error, 120) };
}

/** Runs `work` with one signal for "stop now": the caller's cancel or the tool's own time limit, whichever comes first.
 * The controller is ours and held: in Node 20 a signal of `AbortSignal.any` can be collected before it fires. */
export async function withStop<T>(
  ctx: ToolContext,
  defaultMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const stop = (): void => {
    controller.abort();
  };
  const timer = setTimeout(stop, ctx.limits.timeoutMs ?? defaultMs);
  ctx.signal.addEventListener('abort', stop, { once: true });
  if (ctx.signal.aborted) stop();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    ctx.signal.removeEventListener('abort', stop);
  }
}

/** The outcome of a call that its stop signal ended. */
export function stopped(ctx: ToolContext, what: string): ToolOutcome {
  if (ctx.signal.aborted) return failed('cancelled', `${what} was cancelled before it finished.`);
  return failed(
    'timeout',
    `${what} took too long and was stopped; narrow it down (a folder in path, a more exact pattern).`,
  );
}

/** `1 file`, `2 files`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}

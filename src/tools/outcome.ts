import { errorEnvelope, type ErrorCode, type OutputEnvelope } from '../core/envelope.js';
import type { Json } from '../core/json.js';
import { firstLine } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';

/** What a call leaves besides its envelope. */
export type Effects = Pick<ToolOutcome, 'files' | 'diff' | 'changes'>;

export function succeeded(summary: string, envelope: OutputEnvelope, effects: Effects = {}): ToolOutcome {
  return { envelope, summary, ...effects };
}

/** `error` is one sentence for the model. It says what is wrong, with which value, and what to try. */
export function failed(code: ErrorCode, error: string, details?: Json): ToolOutcome {
  return { envelope: errorEnvelope(code, error, details), summary: firstLine(error, 120) };
}

/** Runs `work` with a signal that aborts when the caller cancels or the time limit of the tool is over. The controller
 * is our own and stays referenced: Node 20 can collect a signal of `AbortSignal.any` before it fires. */
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

/** Returns the outcome of a call that its stop signal ended. */
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

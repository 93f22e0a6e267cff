import type { Fault } from '../core/provider.js';
import { allowanceOf } from './budget.js';
import { compact, windowIsFull } from './compact.js';
import { tokensOf } from './context-size.js';
import { request, type Reply } from './request.js';
import type { TurnDeps } from './turn.js';

/** What one turn remembers of its requests. `overflowed`: a compaction after an overflow was made, and there is no
 * second one. */
export interface Asking {
  overflowed: boolean;
  autoFailed: boolean;
}

/** One answer of the model, with room made for it: the conversation is compacted before a request that would come near
 * the end of the window, and once in a turn after one that was refused as too long. Where the next request must not be
 * sent, a reply with that fault. */
export async function ask(
  d: TurnDeps,
  toolChoice: 'auto' | 'none',
  asking: Asking,
  signal: AbortSignal,
): Promise<Reply> {
  if (!asking.autoFailed && windowIsFull(d)) await compactInTime(d, asking, signal);
  const reply = await requestUnlessRefused(d, toolChoice, signal);
  if (reply.fault?.code !== 'context_overflow' || signal.aborted) return reply;
  if (asking.overflowed) return { ...reply, fault: tooLong(d, reply.fault) };
  asking.overflowed = true;
  const windowTokens = windowSaid(reply.fault.message);
  const compacted = await compact(
    d,
    { trigger: 'overflow', focus: '', ...(windowTokens === null ? {} : { windowTokens }) },
    signal,
  );
  if (signal.aborted) return reply;
  if (!compacted.done) return { ...reply, fault: tooLong(d, reply.fault) };
  const again = await requestUnlessRefused(d, toolChoice, signal);
  return again.fault?.code === 'context_overflow' ? { ...again, fault: tooLong(d, again.fault) } : again;
}

/** A compaction that fails is said once in a turn, which goes on without. */
async function compactInTime(d: TurnDeps, asking: Asking, signal: AbortSignal): Promise<void> {
  const compacted = await compact(d, { trigger: 'auto', focus: '' }, signal);
  if (compacted.done || signal.aborted) return;
  asking.autoFailed = true;
  d.emit({
    type: 'notice',
    level: 'warn',
    code: 'compaction_failed',
    message: `The context window is nearly full and the conversation could not be compacted: ${compacted.reason}.`,
  });
}

async function requestUnlessRefused(d: TurnDeps, toolChoice: 'auto' | 'none', signal: AbortSignal): Promise<Reply> {
  const allowance = signal.aborted ? null : allowanceOf(d);
  if (allowance?.allowed === false)
    return { responseId: '', text: '', calls: [], stop: 'interrupted', fault: allowance.fault };
  return await request(d, toolChoice, signal);
}

/** The window's tokens, where the server's refusal names them (llama-server, vLLM, OpenAI, Anthropic). */
function windowSaid(message: string): number | null {
  const found =
    /context (?:size|length|window|limit)\D{0,20}(\d{3,8})\b|> (\d{3,8}) maximum|maximum prompt length is (\d{3,8})/i.exec(
      message,
    );
  return found === null ? null : Number(found[1] ?? found[2] ?? found[3]);
}

/** Of what is sent, this share belongs to the prompt and the tools where they are what is too long. */
const mostOfIt = 0.75;

/** `said`: the server's refusal, whose figures are kept. */
function tooLong(d: TurnDeps, said: Fault): Fault {
  const { system, tools, messages } = d.projection.conversation();
  const fixed = tokensOf(system) + tokensOf(tools);
  const refusal = `${said.message.replace(/[.\s]+$/, '')}.`;
  if (fixed > (fixed + tokensOf(messages)) * mostOfIt) {
    return {
      ...said,
      message: `${refusal} The system prompt and the tools, which every request carries, take about ${fixed} tokens of it.`,
      hint: 'Give the model a larger window (on a local server its context size), or send less with every request: --tools, --no-tools, shorter instructions.',
    };
  }
  const last = messages.at(-1);
  const alone = last?.role === 'user' ? ` The last message alone has ${last.content.length} characters.` : '';
  return {
    ...said,
    message: `${refusal} Compacting the conversation does not help.${alone}`,
    hint: 'Send less at once, start a new session, or use a model with a larger window.',
  };
}

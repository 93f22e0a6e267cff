import type { Conversation, Message } from '../../core/projection.js';
import type { ModelChunk, ModelRequest, Provider } from '../../core/provider.js';
import { textChunks } from './offline-chunks.js';
import { connectHint, offlineHelp, offlineNote } from './offline-help.js';
import { readRequest, type IsInstalled, type OfflineCall } from './offline-request.js';
import { usesText } from '../quirks.js';
import { summarise } from './offline-summary.js';
import { playTurn } from './script.js';
import { readScript } from './script-file.js';

export interface OfflineDependencies {
  /** Absolute; script paths start here. */
  readonly cwd: string;
  /** Returns early, without an error, once `signal` is aborted. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly isInstalled: IsInstalled;
  /** True where nobody chose this provider and nobody reads along: a request that it does not understand then fails,
   * instead of being answered with help. */
  readonly standsIn?: boolean;
}

/** The embedded provider: no model, no network. The same conversation gives the same answer. A model id that ends in
 * `.json` names a script to play instead (docs/offline-script.md). Source: contracts 7. */
export function createOfflineProvider(d: OfflineDependencies): Provider {
  return {
    async *stream(request) {
      if (!request.ref.model.endsWith('.json')) {
        yield* answer(request, d);
        return;
      }
      const script = await readScript(request.ref.model, d.cwd);
      if (!script.ok) {
        yield { type: 'fault', fault: script.fault };
        return;
      }
      // A script may write its calls as text, like the models that it stands for.
      const step = usesText(request.conversation, {}) ? await textStep(request.conversation) : null;
      for await (const chunk of playTurn(script.script, request, d.sleep)) yield* step === null ? [chunk] : step(chunk);
    },
  };
}

async function textStep(conversation: Conversation): Promise<(chunk: ModelChunk) => readonly ModelChunk[]> {
  const { createTextStep, schemasOf } = await import('../text/text-protocol.js');
  return createTextStep(schemasOf(conversation));
}

const notUnderstood: ModelChunk = {
  type: 'fault',
  fault: {
    code: 'auth',
    message: 'no model is connected, and the built-in offline provider does not understand this request',
    hint: connectHint,
  },
};

function* answer(request: ModelRequest, { isInstalled, standsIn = false }: OfflineDependencies): Generator<ModelChunk> {
  const { conversation } = request;
  const { asked, answers } = lastTurn(conversation.messages);
  const steps = readRequest(asked, isInstalled);
  if (steps === null && standsIn) {
    yield notUnderstood;
    return;
  }
  const next = request.toolChoice === 'none' ? undefined : steps?.[answers.length];
  const missing = next?.find((call) => !conversation.tools.some((tool) => tool.name === call.name));
  if (next !== undefined && missing === undefined) {
    yield* callTools(next, conversation, request.signal);
    return;
  }
  const said =
    missing === undefined
      ? closingWords(answers.at(-1), conversation.messages)
      : `That needs the tool \`${missing.name}\`, which is switched off in this session.`;
  for (const chunk of textChunks('text', said)) {
    if (request.signal.aborted) return;
    yield chunk;
  }
  yield free;
  yield { type: 'end', stop: 'stop' };
}

function closingWords(last: Message | undefined, messages: readonly Message[]): string {
  if (last?.role !== 'assistant') return offlineHelp;
  return summarise(last.calls) + (isFirst(messages) ? `\n\n${offlineNote}` : '');
}

const free: ModelChunk = { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };

function* callTools(
  calls: readonly OfflineCall[],
  conversation: Conversation,
  signal: AbortSignal,
): Generator<ModelChunk> {
  if (signal.aborted) return;
  const made = conversation.messages.reduce(
    (sum, message) => sum + (message.role === 'assistant' ? message.calls.length : 0),
    0,
  );
  for (const [index, call] of calls.entries()) {
    yield {
      type: 'tool_call',
      call: { id: `offline_${made + index + 1}`, name: call.name, arguments: JSON.stringify(call.args) },
    };
  }
  yield free;
  yield { type: 'end', stop: 'tool' };
}

/** The newest request that can be read, and the responses since. What the user adds while a turn runs is a request of
 * its own. */
function lastTurn(messages: readonly Message[]): { readonly asked: string; readonly answers: readonly Message[] } {
  const at = messages.findLastIndex((message) => message.role === 'user');
  const user = messages[at];
  return { asked: user?.role === 'user' ? user.content : '', answers: messages.slice(at + 1) };
}

function isFirst(messages: readonly Message[]): boolean {
  return messages.filter((message) => message.role === 'user').length === 1;
}

import { setImmediate as nextTick } from 'node:timers/promises';
import type { ModelChunk, ModelRequest } from '../../core/provider.js';
import { textChunks } from './offline-chunks.js';
import type { Script, ScriptTurn } from './script-file.js';

/** A long answer lets keys, signals and the screen come in between, as one from a network does. */
const chunksPerTick = 64;
const endOfScript = 'End of script.';
const noTools = 'The script asks for tools here, and this request forbids them.';

/** Plays one turn: turn k answers the request whose conversation holds k responses, so a request that is sent again
 * gets the same turn. After the last turn comes a fixed sentence, or the first turn again where the script loops. */
export async function* playTurn(
  script: Script,
  request: ModelRequest,
  sleep: (delayMs: number, signal: AbortSignal) => Promise<void>,
): AsyncGenerator<ModelChunk> {
  const responses = request.conversation.messages.filter((message) => message.role === 'assistant').length;
  const turn = script.turns[script.loop ? responses % script.turns.length : responses];
  if (turn === undefined) {
    yield* said(endOfScript, request.signal);
    return;
  }
  if (turn.delayMs > 0) await sleep(turn.delayMs, request.signal);
  if (request.signal.aborted) return;
  const withCalls = request.toolChoice !== 'none' || turn.ignoreToolChoice;
  if (!withCalls && turn.calls.length > 0 && turn.text === '') {
    yield* said(noTools, request.signal);
    return;
  }
  yield* spoken(turn, request.signal);
  if (request.signal.aborted) return;
  if (turn.fault !== null) {
    yield { type: 'fault', fault: turn.fault };
    return;
  }
  yield* finish(turn, withCalls, responses);
}

/** Reasoning and text, ending early where the signal aborts. */
async function* spoken(turn: ScriptTurn, signal: AbortSignal): AsyncGenerator<ModelChunk> {
  for (const [index, chunk] of [
    ...textChunks('reasoning', turn.reasoning),
    ...textChunks('text', turn.text),
  ].entries()) {
    if (index % chunksPerTick === chunksPerTick - 1) await nextTick();
    if (signal.aborted) return;
    yield chunk;
  }
}

function* finish(turn: ScriptTurn, withCalls: boolean, responses: number): Generator<ModelChunk> {
  const calls = withCalls ? turn.calls : [];
  for (const [index, call] of calls.entries()) {
    yield {
      type: 'tool_call',
      call: { id: call.id ?? `script_${responses}_${index}`, name: call.name, arguments: call.arguments },
    };
  }
  const { costUsd = 0, ...usage } = turn.usage ?? { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 };
  yield { type: 'usage', usage, costUsd };
  yield { type: 'end', stop: turn.stop ?? (calls.length > 0 ? 'tool' : 'stop') };
}

function* said(text: string, signal: AbortSignal): Generator<ModelChunk> {
  for (const chunk of textChunks('text', text)) {
    if (signal.aborted) return;
    yield chunk;
  }
  yield { type: 'usage', usage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 }, costUsd: 0 };
  yield { type: 'end', stop: 'stop' };
}

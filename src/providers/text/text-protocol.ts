import type { Conversation } from '../../core/projection.js';
import type { Stop } from '../../core/event.js';
import type { ModelChunk, ReceivedCall } from '../../core/provider.js';
import { usesText, type Quirks } from '../quirks.js';
import type { ToolSchemas } from './text-calls.js';
import { createTextPrompt } from './text-prompt.js';
import { createTextScanner } from './text-scanner.js';
import type { Wire, WireChunk } from '../wires/wire.js';

type Chunk = WireChunk | ModelChunk;

/** Puts the text protocol in front of wires. One for each provider, because it keeps what it made of messages. */
export interface TextProtocol {
  /** `wire` itself where the conversation uses native calls, else one that writes tools and calls as text and finds
   * calls in the answer. */
  wire(wire: Wire, conversation: Conversation, quirks: Quirks): Wire;
}

export function createTextProtocol(): TextProtocol {
  const prompt = createTextPrompt();
  return {
    wire(wire, conversation, quirks) {
      if (!usesText(conversation, quirks)) return wire;
      const schemas = schemasOf(conversation);
      return {
        ...wire,
        requestParts: (asked, options) => wire.requestParts(prompt.rewrite(asked, options.toolChoice), options),
        request: (asked, options) => wire.request(prompt.rewrite(asked, options.toolChoice), options),
        decoder: (maxCalls) => {
          const decoder = wire.decoder(maxCalls);
          const step = createTextStep(schemas, maxCalls);
          return {
            push: (event) => decoder.push(event).flatMap((chunk) => step(chunk)),
            end: () => decoder.end().flatMap((chunk) => step(chunk)),
          };
        },
        decodeBody: (body, maxCalls) => {
          const step = createTextStep(schemas, maxCalls);
          return wire.decodeBody(body, maxCalls).flatMap((chunk) => step(chunk));
        },
      };
    },
  };
}

export function schemasOf(conversation: Conversation): ToolSchemas {
  return new Map(conversation.tools.map(({ name, input_schema }) => [name, input_schema]));
}

/** Reads one answer in which calls are text: text without them goes on at once, the calls come right before the end. A
 * new answer (after a retry) needs a new step. Without tools, everything is text; of more than `maxCalls` calls the
 * first are given. */
export function createTextStep(
  tools: ToolSchemas,
  maxCalls?: number,
): <C extends Chunk>(chunk: C) => readonly (C | Extract<Chunk, { type: 'text' | 'reasoning' | 'tool_call' }>)[] {
  const scanner = createTextScanner(tools);
  let held: Extract<Chunk, { type: 'usage' }>[] = [];
  let native = 0;
  return (chunk) => {
    if (tools.size === 0) return [chunk];
    switch (chunk.type) {
      case 'text':
        return scanner.push(chunk.text);
      case 'usage':
        held.push(chunk);
        return [];
      case 'tool_call':
        native++;
        return [chunk];
      case 'end': {
        const { shown, calls: found } = scanner.end(chunk.stop === 'length');
        const calls = found.slice(0, maxCalls);
        const usage = held as unknown as (typeof chunk)[];
        held = [];
        return [
          ...shown,
          ...callChunks(chunk.stop, calls),
          ...usage,
          { ...chunk, stop: settled(chunk.stop, calls.length + native) },
        ];
      }
      case 'fault':
        return [...scanner.end(false).shown, chunk];
      case 'reasoning':
      case 'retry':
      case 'notice':
        return [chunk];
      default:
        return chunk satisfies never;
    }
  };
}

function callChunks(stop: Stop, calls: readonly ReceivedCall[]): readonly Extract<Chunk, { type: 'tool_call' }>[] {
  return stop === 'refusal' || stop === 'content_filter' ? [] : calls.map((call) => ({ type: 'tool_call', call }));
}

function settled(stop: Exclude<Stop, 'interrupted'>, calls: number): Exclude<Stop, 'interrupted'> {
  return stop === 'stop' && calls > 0 ? 'tool' : stop;
}

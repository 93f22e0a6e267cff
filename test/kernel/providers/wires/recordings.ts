import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { loadWire } from '../../../../src/kernel/providers/wires/known-wires.js';
import { SseReader } from '../../../../src/kernel/providers/http/answer-reader.js';
import type { Wire, WireChunk } from '../../../../src/kernel/providers/wires/wire.js';

const folder = pathToFileURL('../shared/fixtures/wire/');

export const wires: Readonly<Record<string, Wire>> = {
  chat: await loadWire('openai-chat'),
  messages: await loadWire('anthropic-messages'),
  responses: await loadWire('openai-responses'),
};

/** What a decoder made of an answer, folded. */
export interface Decoded {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly stop: string | null;
  readonly usage: Extract<WireChunk, { type: 'usage' }> | null;
  readonly kept: readonly unknown[];
  readonly fault: Extract<WireChunk, { type: 'fault' }> | null;
}

export function fold(chunks: readonly WireChunk[]): Decoded {
  const said = (type: 'text' | 'reasoning'): string =>
    chunks.map((chunk) => (chunk.type === type ? chunk.text : '')).join('');
  const end = chunks.find((chunk) => chunk.type === 'end');
  return {
    text: said('text'),
    reasoning: said('reasoning'),
    calls: chunks.flatMap((chunk) => (chunk.type === 'tool_call' ? [chunk.call] : [])),
    stop: end?.stop ?? null,
    usage: chunks.find((chunk) => chunk.type === 'usage') ?? null,
    kept: end?.reasoning ?? [],
    fault: chunks.find((chunk) => chunk.type === 'fault') ?? null,
  };
}

/** Reads an answer whose bytes come in the given pieces. */
export function decode(wire: Wire, pieces: readonly Uint8Array[]): readonly WireChunk[] {
  const reader = new SseReader();
  const decoder = wire.decoder();
  const chunks: WireChunk[] = [];
  for (const piece of pieces) for (const event of reader.push(piece)) chunks.push(...decoder.push(event));
  for (const event of reader.end()) chunks.push(...decoder.push(event));
  chunks.push(...decoder.end());
  return chunks;
}

export interface Entry {
  readonly file: string;
  readonly api: string;
  readonly status: number;
  readonly features: readonly string[];
}

/** The recordings beside the repository, or null where they are absent. */
export function recordings(): {
  readonly entries: readonly Entry[];
  readonly expected: Readonly<Record<string, Expected>>;
  read(file: string): Buffer;
} | null {
  if (!existsSync(new URL('expected.json', folder))) return null;
  const json = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as unknown;
  return {
    entries: json('manifest.json') as readonly Entry[],
    expected: json('expected.json') as Readonly<Record<string, Expected>>,
    read: (file) => readFileSync(new URL(file, folder)),
  };
}

interface Count {
  readonly [name: string]: unknown;
}
export interface Expected {
  readonly api: string;
  readonly fold?: {
    readonly text: string | null;
    readonly reasoning: string | null;
    readonly finish: string | null;
    readonly usage: Count | null;
    readonly calls: readonly ({ readonly id: string; readonly name: string; readonly arguments: string } | null)[];
  };
  readonly sdk?: {
    readonly content?: readonly Count[];
    readonly stop_reason?: string | null;
    readonly usage?: Count;
    readonly output?: readonly Count[];
    readonly status?: string;
  };
  readonly sdkError?: string;
}

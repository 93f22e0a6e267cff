import type { ModelChunk } from '../../core/provider.js';

/** A text as a stream gives it: a few words at a time, cut after spaces and line ends, never inside a character. */
export function* textChunks(type: 'text' | 'reasoning', text: string, size = 24): Generator<ModelChunk> {
  let start = 0;
  while (start < text.length) {
    let end = Math.min(start + size, text.length);
    const space = text.lastIndexOf(' ', end);
    if (end < text.length && space > start) end = space + 1;
    else if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end++;
    yield { type, text: text.slice(start, end) };
    start = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

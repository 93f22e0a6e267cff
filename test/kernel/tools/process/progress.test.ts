import { expect, test } from 'vitest';
import { createSecretGuard, type StreamMask } from '../../../../src/kernel/core/secrets/guard.js';
import {
  createOutputCollector,
  createProgressStream,
  type ProgressStream,
} from '../../../../src/kernel/tools/process/output-collector.js';

/** What the bytes pass through on their way. */
function piped(
  send: (chunk: string) => void,
  mask?: StreamMask,
): Pick<ProgressStream, 'end'> & { add(bytes: Buffer): void } {
  const collector = createOutputCollector(1_000_000);
  const stream = createProgressStream(collector, send, mask);
  return {
    add: (bytes) => {
      collector.add(bytes);
      stream.moved();
    },
    end: stream.end,
  };
}

const secret = 'secret-value-of-the-test';

/** All that reaches the screen of these pieces, each shown before the next comes where it is `apart`. */
async function shown(pieces: readonly string[], apart: boolean): Promise<string> {
  let text = '';
  let told = (): void => undefined;
  const stream = piped(
    (chunk) => {
      text += chunk;
      told();
    },
    createSecretGuard({ forms: [], keys: [{ name: 'hidden', value: secret }], environment: [] }).stream(),
  );
  for (const piece of pieces) {
    const next = new Promise<void>((resolve) => {
      told = resolve;
    });
    stream.add(Buffer.from(piece));
    if (apart) await next;
  }
  stream.end();
  return text;
}

test('a secret that comes in two pieces is hidden, and nothing else is lost', async () => {
  for (let cut = 1; cut < secret.length; cut++)
    expect(await shown([`a ${secret.slice(0, cut)}`, `${secret.slice(cut)} b`], cut % 4 === 0)).toBe(
      'a «redacted:hidden» b',
    );
});

test('where a flood drops the start of a secret, its rest is not shown', async () => {
  for (let more = 8180; more < 8300; more++) {
    const text = await shown([`x${secret}${'ü'.repeat(4)}${'y'.repeat(more)}`], false);
    expect(text.replaceAll(/[xyü\uFFFD]|«?r?e?d?a?c?t?e?d?:?h?i?d?d?e?n?»/g, '')).toBe('');
    expect(text.length).toBeGreaterThan(7500);
  }
});

test('pieces of any size join to what was printed, character by character', async () => {
  const text = 'één zwei 😀 drei '.repeat(40);
  for (const size of [1, 3, 64, 1000]) {
    const bytes = Buffer.from(text);
    const chunks: string[] = [];
    const stream = piped((chunk) => {
      chunks.push(chunk);
    });
    for (let at = 0; at < bytes.length; at += size) stream.add(bytes.subarray(at, at + size));
    stream.end();
    expect(chunks.join('')).toBe(text);
  }
});

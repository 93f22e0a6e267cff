import { expect, test } from 'vitest';
import { envelopeText, parseEnvelope } from '../../src/core/envelope.js';

test('an envelope is read as it was written, long or short, and another of the same length is not taken for it', () => {
  for (const length of [10, 200_000]) {
    const first = { output: `${'a"\n'.repeat(length)}é`, exit_code: 0 };
    const second = { output: `${'b"\n'.repeat(length)}é`, exit_code: 0 };
    const texts = [first, second].map(envelopeText);
    expect(texts).toEqual([first, second].map((envelope) => JSON.stringify(envelope)));
    expect(texts.map(parseEnvelope)).toEqual([first, second]);
  }
});

import { expect, test } from 'vitest';
import { clampEnvelope, envelopeText, outputOfParts, parseEnvelope } from '../../src/core/envelope.js';
import { modelOutput } from '../../src/core/model-output.js';

test('an envelope is read as it was written, long or short, and another of the same length is not taken for it', () => {
  for (const length of [10, 200_000]) {
    const first = { output: `${'a"\n'.repeat(length)}é`, exit_code: 0 };
    const second = { output: `${'b"\n'.repeat(length)}é`, exit_code: 0 };
    const texts = [first, second].map(envelopeText);
    expect(texts).toEqual([first, second].map((envelope) => JSON.stringify(envelope)));
    expect(texts.map(parseEnvelope)).toEqual([first, second]);
  }
});

test('an output put together from parts is stored, cut and sent to a model as its whole would be', () => {
  const cases = [
    ['a"\n', 'b\\'],
    ['日本', '🙂x'],
    ['short', 'b'],
  ].flatMap(([head = '', tail = '']) =>
    [20, 90_000].map((count) => [head.repeat(count), '\n[… 5 bytes omitted …]\n', tail.repeat(count)]),
  );
  for (const parts of cases) {
    const put = outputOfParts(parts, { exit_code: 0, truncated: true, total_bytes: 9_000_000 });
    const plain = { output: parts.join(''), exit_code: 0, truncated: true, total_bytes: 9_000_000 };
    expect(put).toEqual(plain);
    for (const maxBytes of [100, 400_000, 10_000_000])
      expect(clampEnvelope(put, maxBytes)).toEqual(clampEnvelope(plain, maxBytes));
    const stored = envelopeText(put);
    expect(JSON.parse(stored)).toEqual(plain);
    const result = { tool_call_id: 'c', name: 'bash', output: stored, success: true, duration_ms: 1 };
    for (const maxBytes of [100, 3000, 200_000]) {
      envelopeText(put);
      const live = modelOutput(result, 7, '{}', maxBytes);
      envelopeText({ output: 'x'.repeat(80_000) }); // what was written before is forgotten
      expect(live).toBe(modelOutput(result, 7, '{}', maxBytes));
    }
  }
});

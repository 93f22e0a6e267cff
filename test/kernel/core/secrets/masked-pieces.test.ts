import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSecretGuard, type StreamMask } from '../../../../src/kernel/core/secrets/guard.js';
import { propertyRuns } from '../../../property-runs.js';

const hidden = [
  { form: 'key-value-1-longer', mark: '«redacted:LONG»' },
  { form: 'say \\"quoted\\"', mark: '«redacted:QUOTED»' },
  { form: 'say "quoted"', mark: '«redacted:QUOTED»' },
  { form: 'key-value-1', mark: '«redacted:KEY»' },
  { form: '^]-kk', mark: '«redacted:ODD»' },
];
const keys = [
  { name: 'LONG', value: 'key-value-1-longer' },
  { name: 'QUOTED', value: 'say "quoted"' },
  { name: 'KEY', value: 'key-value-1' },
  { name: 'ODD', value: '^]-kk' },
];
const createStreamMask = (): StreamMask => createSecretGuard({ forms: [], keys, environment: [] }).stream();
const whole = (text: string): string => hidden.reduce((masked, { form, mark }) => masked.replaceAll(form, mark), text);

test('however a text is cut into pieces, secrets are hidden and everything else comes through', () => {
  const part = fc.oneof(
    fc.constantFrom(
      ...hidden.map(({ form }) => form),
      'key-',
      'key-value-',
      'say ',
      'k',
      's',
      '^',
      ']',
      '\\',
      '😀',
      '\n',
    ),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 12 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 40 }),
      (parts, sizes) => {
        const text = parts.join('');
        const mask = createStreamMask();
        let shown = '';
        for (let at = 0, n = 0; at < text.length; n++) {
          const size = sizes[n % sizes.length] ?? 1;
          shown += mask.add(text.slice(at, at + size));
          expect(whole(shown)).toBe(shown);
          at += size;
        }
        expect(shown + mask.end()).toBe(whole(text));
      },
    ),
    { numRuns: propertyRuns(2000) },
  );
});

test('a piece that cannot be the start of anything hidden is not held back', () => {
  const mask = createStreamMask();
  expect([mask.add('the key'), mask.add('s, and sa'), mask.add('lt'), mask.end()]).toEqual([
    'the ',
    'keys, and ',
    'salt',
    '',
  ]);
  expect([mask.add('key-val'), mask.skip(), mask.add('ue-1 key-value-1'), mask.end()]).toEqual([
    '',
    undefined,
    'ue-1 ',
    '«redacted:KEY»',
  ]);
});

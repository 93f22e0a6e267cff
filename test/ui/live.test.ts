import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../src/ui/terminal/key-decoder.js';
import { PromptInput } from '../../src/ui/editor/prompt-input.js';
import { createLive, type DisplayState } from '../../src/ui/live.js';
import { createSwitchableTheme } from '../../src/kernel/console/theme.js';
import { emptyView } from '../../src/ui/view.js';
import { propertyRuns } from '../property-runs.js';

const facts = { model: 'm', approval: 'ask', sandbox: 'off', directory: '~' };
const keys = [
  'a',
  'word ',
  ' ',
  '你',
  'é',
  'e\u0301',
  '👩‍👩‍👧',
  '\t',
  '\x7f',
  '\x1b[D',
  '\x1b[C',
  '\x01',
  '\x05',
  '\x1b\r',
  '\x17',
  'x'.repeat(30),
];

test('what a key types is echoed as Ink lays it out', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...keys), { maxLength: 30 }),
      fc.constantFrom(12, 30, 80),
      (typed, columns) => {
        const theme = createSwitchableTheme({ unicode: true, colors: 16, theme: 'dark' });
        const echoing = createLive({ theme, clock: () => 0, status: () => facts });
        const size = { columns, rows: 12 };
        const input = new PromptInput({ commands: () => [], rank: () => [], wantFiles: () => undefined });
        const state: DisplayState = {
          view: emptyView,
          input,
          overlay: null,
          waits: false,
          busySinceMs: null,
          hint: null,
        };
        const decoder = createKeyDecoder();
        echoing.rows(state, size, true);
        for (const key of typed) {
          for (const event of decoder.decode(key)) input.take(event);
          const echoed = echoing.echo(state, size, true);
          const fresh = createLive({ theme, clock: () => 0, status: () => facts });
          expect(echoed).toEqual(fresh.rows(state, size, true));
          fresh.unmount();
        }
        echoing.unmount();
      },
    ),
    { numRuns: propertyRuns(60) },
  );
});

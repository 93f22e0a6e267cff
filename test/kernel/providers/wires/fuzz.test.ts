import { readdirSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Json } from '../../../../src/kernel/core/json.js';
import { decode, wires } from './recordings.js';
import { propertyRuns } from '../../../property-runs.js';

const folder = pathToFileURL('fixtures/');
const streams = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.sse'))
  .sort()
  .map((name) => readFileSync(new URL(name, folder), 'utf8'));

/** Values where a vendor's document has another type. */
const odd = fc.constantFrom('null', '5', '"x"', '[]', '{}', 'true', '[null]', '{"error":null}', '"\\ud83d"');

/** A fixture with some of its JSON values replaced, some of its events dropped, doubled or broken. */
const damaged = fc
  .tuple(
    fc.constantFrom(...streams),
    fc.array(fc.tuple(fc.nat(400), odd), { maxLength: 4 }),
    fc.array(fc.tuple(fc.nat(30), fc.constantFrom('drop', 'double', 'break')), { maxLength: 3 }),
  )
  .map(([stream, values, events]) => {
    let count = 0;
    const swapped = stream.replace(
      /(?<=: )(?:"(?:[^"\\]|\\.)*"|\d+|null|\{\}|\[\])/g,
      (value) => values.find(([at]) => at === count++)?.[1] ?? value,
    );
    return swapped
      .split('\n\n')
      .flatMap((event, index) => {
        switch (events.find(([at]) => at === index)?.[1]) {
          case 'drop':
            return [];
          case 'double':
            return [event, event];
          case 'break':
            return [event.slice(0, -3)];
          default:
            return [event];
        }
      })
      .join('\n\n');
  });

test('a damaged stream never throws and ends exactly once, with calls only before an end', () => {
  let cases = 0;
  fc.assert(
    fc.property(damaged, (stream) => {
      for (const wire of Object.values(wires)) {
        cases++;
        const chunks = decode(wire, [Buffer.from(stream)]);
        const types = chunks.map(({ type }) => type);
        expect(types.filter((type) => type === 'end' || type === 'fault')).toHaveLength(1);
        expect(['end', 'fault']).toContain(types.at(-1));
        if (types.includes('tool_call')) expect(types.at(-1)).toBe('end');
        for (const chunk of chunks)
          if (chunk.type === 'text' || chunk.type === 'reasoning') expect(chunk.text.isWellFormed()).toBe(true);
      }
    }),
    { numRuns: propertyRuns(2000) },
  );
  console.log(`Streams: ${cases} damaged ones read`);
});

test('any JSON is read as a body without throwing and ends exactly once', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('choices', 'content', 'output', 'error'), (value, key) => {
      for (const wire of Object.values(wires)) {
        for (const body of [value, { [key]: value }, { [key]: [value] }] as readonly Json[]) {
          expect(wire.decodeBody(body).filter(({ type }) => type === 'end' || type === 'fault')).toHaveLength(1);
        }
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});

test('JSON nested two hundred thousand deep is refused, not a stack overflow', () => {
  const deep = `${'{"input":'.repeat(200_000)}1${'}'.repeat(200_000)}`;
  for (const wire of Object.values(wires)) {
    expect(wire.decoder().push({ event: '', data: deep })).toMatchObject([
      { type: 'fault', fault: { code: 'stream_incomplete' } },
    ]);
    expect(wire.decodeBody({ content: [{ type: 'tool_use', input: JSON.parse(deep) as Json }] })).toMatchObject([
      { type: 'fault', fault: { code: 'protocol' } },
    ]);
    expect(wire.fault(400, deep)).toMatchObject({ code: 'bad_request' });
  }
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { createProjection, project } from '../../../src/kernel/core/projection.js';
import { logs, makers, number } from '../providers/logs.js';
import { wires } from '../providers/wires/recordings.js';
import { rules, schemaError } from '../providers/wires/request-rules.js';
import { propertyRuns } from '../../property-runs.js';

type Draft = Omit<Event, 'seq' | 'createdAt'>;

const at = fc.integer({ min: -1, max: 40 });
const reverted = { of_seq: 4, changes: [], skipped: [] };
const reshaping: fc.Arbitrary<Draft> = fc.oneof(
  at.map((to_seq) => ({ kind: 'rewind', content: '', data: { to_seq } })),
  fc.tuple(at, at).map(([from_seq, to_seq]) => ({
    kind: 'compaction',
    content: 'Summary of what came before.',
    data: { from_seq, to_seq },
  })),
  fc.array(at).map((seqs) => ({ kind: 'results_omitted', content: '', data: { seqs } })),
  at.map((compaction_seq) => ({ kind: 'compaction_undone', content: null, data: { compaction_seq } })),
  fc
    .constantFrom('undo', 'redo', 'restore')
    .map((kind) => ({ kind, content: '[Note: files are as before]', data: reverted })),
  fc.constantFrom<Draft>(
    { kind: 'rewind', content: '', data: { to_seq: 'x' } },
    { kind: 'compaction', content: 'S', data: { from_seq: 9, to_seq: null } },
    { kind: 'results_omitted', content: '', data: { seqs: 'x' } },
    { kind: 'results_omitted', content: '', data: { seqs: [null, 'x', 4] } },
  ),
);

/** Logs of every kind with such events strewn in. */
const reshaped: fc.Arbitrary<readonly Event[]> = fc
  .tuple(logs, fc.array(fc.tuple(reshaping, fc.nat(50)), { minLength: 1, maxLength: 6 }))
  .map(([events, added]) => {
    const drafts: Draft[] = events.map(({ kind, content, data }) => ({ kind, content, data }));
    for (const [draft, place] of added) drafts.splice(Math.min(place, drafts.length), 0, draft);
    return number(drafts);
  });

const schemas = [
  ['chat', 'openai-chat:request'],
  ['responses', 'openai-responses:request'],
  ['messages', 'anthropic-messages:request'],
] as const;

function broken(events: readonly Event[]): readonly string[] {
  const conversation = project(events);
  return schemas.flatMap(([name, schema]) => {
    const wire = wires[name]!;
    const body = JSON.parse(
      wire.requestParts(conversation, { ...makers[0], toolChoice: 'auto', quirks: {} }).join(''),
    ) as Record<string, unknown>;
    const error = schemaError(schema, body);
    return [...(error === null ? [] : [error]), ...(rules[wire.api]?.(body) ?? ['no rules'])].map(
      (what) => `${name}: ${what}`,
    );
  });
}

test('any prefix of a log with rewinds and compactions gives requests that every vendor accepts', () => {
  fc.assert(
    fc.property(reshaped, fc.nat(60), (events, length) => {
      expect(broken(events)).toEqual([]);
      expect(broken(events.slice(0, Math.min(length, events.length)))).toEqual([]);
    }),
    { numRuns: propertyRuns(600) },
  );
});

test('events added one at a time give the same conversation as all at once, at any moment', () => {
  fc.assert(
    fc.property(reshaped, (events) => {
      const projection = createProjection();
      for (const [index, event] of events.entries()) {
        projection.add(event);
        expect(projection.conversation()).toEqual(project(events.slice(0, index + 1)));
      }
    }),
    { numRuns: propertyRuns(200) },
  );
});

test('a rewind brings back the conversation of that moment, and a rewind to just before it takes it back', () => {
  fc.assert(
    fc.property(reshaped, fc.nat(60), (events, place) => {
      const to_seq = Math.min(place, events.length);
      const rewound = number([...events, { kind: 'rewind', content: '', data: { to_seq } }]);
      const settled = (log: readonly Event[]) =>
        project(log).messages.map((message) =>
          message.role === 'user'
            ? message
            : { ...message, calls: message.calls.map(({ name, arguments: args }) => ({ name, args })) },
        );
      expect(settled(rewound)).toEqual(settled(events.slice(0, to_seq)));
      const back = number([...rewound, { kind: 'rewind', content: '', data: { to_seq: events.length } }]);
      expect(settled(back)).toEqual(settled(events));
    }),
    { numRuns: propertyRuns(500) },
  );
});

test('an undone compaction leaves the conversation as if there had been none', () => {
  fc.assert(
    fc.property(logs, fc.boolean(), at, at, fc.nat(40), (events, isSummary, from_seq, to_seq, place) => {
      const split = Math.min(place, events.length);
      const compaction: Draft = isSummary
        ? { kind: 'compaction', content: 'S', data: { from_seq, to_seq } }
        : { kind: 'results_omitted', content: '', data: { seqs: [from_seq, to_seq] } };
      const undone: Draft = { kind: 'compaction_undone', content: null, data: { compaction_seq: split + 1 } };
      const other: Draft = { kind: 'approval', content: '', data: null };
      const bare = number([...events.slice(0, split), other, ...events.slice(split), other]);
      const log = number([...events.slice(0, split), compaction, ...events.slice(split), undone]);
      expect(project(log)).toEqual(project(bare));
    }),
    { numRuns: propertyRuns(500) },
  );
});

import fc from 'fast-check';
import { project } from '../../../src/kernel/core/projection.js';
import { logs, makers } from '../../kernel/providers/logs.js';
import { wires } from '../../kernel/providers/wires/recordings.js';
import { hasSchemas, loneSurrogates, rules, schemaError } from '../../kernel/providers/wires/request-rules.js';
import { measure, rounds } from './bench.js';

/** `npm run t:orphans`: sessions cut at a random event, as a request of each API, held against its rules of pairing and
 * (where the vendors' schemas are at hand) against its schema. */
const speakers = [
  ['chat', 'openai-chat:request'],
  ['responses', 'openai-responses:request'],
  ['messages', 'anthropic-messages:request'],
] as const;

await measure(async () => {
  const cuts = rounds(1000);
  let rejected = 0;
  fc.sample(fc.tuple(logs, fc.nat(60)), { numRuns: cuts, seed: 7 }).forEach(([events, length]) => {
    const conversation = project(events.slice(0, Math.min(length, events.length)));
    for (const [name, schema] of speakers) {
      const wire = wires[name];
      if (!wire) throw new Error(`no wire ${name}`);
      const body = JSON.parse(
        wire.requestParts(conversation, { ...makers[0], toolChoice: 'auto', quirks: {} }).join(''),
      ) as Record<string, unknown>;
      const wrong = [
        ...(rules[wire.api]?.(body) ?? ['no rules']),
        ...(schemaError(schema, body) === null ? [] : ['schema']),
        ...(loneSurrogates(body) > 0 ? ['lone surrogates'] : []),
      ];
      if (wrong.length > 0) rejected++;
    }
  });
  return Promise.resolve({
    line: `orphans: ${cuts} cuts x ${speakers.length} wires${hasSchemas ? '' : ' (schemas absent)'}, ${rejected} rejected`,
    ok: rejected === 0,
  });
});

import { createHash } from 'node:crypto';
import { type Envelope, isError } from '../../kernel/core/envelope.js';
import { isRecord } from '../../kernel/core/json.js';
import { sanitize } from '../../kernel/core/sanitize.js';

/** Texts that differ from run to run though nothing has changed: dates and times, durations, addresses, ids and
 * temporary files. Other numbers stay: `3 failed` after `5 failed` is progress. */
const changing: readonly RegExp[] = [
  /\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?/g,
  /\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\b/g,
  /\b\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?|[uµn]s)\b/g,
  /\b0x[0-9a-f]+\b/gi,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
  /\b(?:pid|process)[ :=]*\d+/gi,
  /(?:\/private)?\/(?:tmp|var\/folders)\/[^\s'")\]]+/g,
];

/** Returns the SHA-256 (hex) of a failure without what differs from run to run. */
export function failureHash(exitCode: number | null, output: string): string {
  const plain = changing.reduce((text, pattern) => text.replace(pattern, '~'), sanitize(output));
  const lines = plain.split('\n').map((line) => line.trim().replace(/\s+/g, ' '));
  const kept = lines.filter((line) => line !== '').join('\n');
  return createHash('sha256')
    .update(`${exitCode ?? 'none'}\n${kept}`)
    .digest('hex');
}

/** Returns what a command printed, and why it was ended. */
export function printedText(envelope: Envelope): string {
  if (!isError(envelope)) return envelope.output;
  const { details } = envelope;
  const printed = isRecord(details) && typeof details['output'] === 'string' ? details['output'] : '';
  return [printed, `[${envelope.error}]`].filter((part) => part !== '').join('\n');
}

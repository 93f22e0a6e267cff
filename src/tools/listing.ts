import { clampText, type OutputEnvelope, plainMarker } from '../core/envelope.js';
import { utf8Bytes } from '../core/text.js';
import { createSortedSample, type ResultLine } from './byte-order.js';
import { relativePath, shownPath } from './tool-path.js';

/** Collects result lines into the envelope of `glob` and `grep`: sorted, cut to the budget, with true count and
 * size. */
export interface Listing {
  add(line: ResultLine, counts: boolean): void;
  readonly count: number;
  envelope(): OutputEnvelope;
}

const separator = '--';

/** `groups` puts `--` between groups of lines. */
export function createListing(maxBytes: number, groups: boolean): Listing {
  const sample = createSortedSample(maxBytes);
  let count = 0;
  let totalBytes = 0;
  let groupCount = 0;
  return {
    add(line, counts) {
      sample.add(line);
      if (counts) count++;
      if (groups && line.startsGroup) groupCount++;
      totalBytes += utf8Bytes(line.text) + 1;
    },
    get count() {
      return count;
    },
    envelope() {
      const texts = sample
        .sorted()
        .flatMap((line, index) => (groups && line.startsGroup && index > 0 ? [separator, line.text] : [line.text]));
      const total = Math.max(0, totalBytes - 1) + Math.max(0, groupCount - 1) * (separator.length + 1);
      const { text, omittedBytes } = clampText(texts.join('\n'), maxBytes, plainMarker, total);
      return omittedBytes === 0
        ? { output: text, count }
        : { output: text, count, truncated: true, total_bytes: total };
    },
  };
}

/** Ignore files whose rules do not hold, for the result of a search: a model would wonder at what it is shown. */
export interface Refusals {
  add(path: string, reason: string): void;
  facts(): { readonly ignore_files_not_read?: string };
}

const maxNamedRefusals = 5;

/** Paths are shown relative to `cwd`. */
export function createRefusals(cwd: string): Refusals {
  const reasons = new Map<string, string>();
  return {
    add: (path, reason) => {
      reasons.set(path, reason);
    },
    facts() {
      if (reasons.size === 0) return {};
      const named = [...reasons]
        .slice(0, maxNamedRefusals)
        .map(([path, reason]) => `${shownPath(relativePath(cwd, path))}: ${reason}`);
      const more = reasons.size > maxNamedRefusals ? [`and ${reasons.size - maxNamedRefusals} more`] : [];
      return { ignore_files_not_read: [...named, ...more].join('; ') };
    },
  };
}

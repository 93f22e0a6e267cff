import { largestOf } from '../../core/lists.js';
import { type AnswerHeaders, waitUntil } from './waits.js';

/** A limit of a provider, with what its last answer said is left of it. */
export interface RateLimit {
  /** In the words of the provider: `requests`, `input tokens`, `5h`. */
  readonly name: string;
  /** `990 of 1000`, `58%`. */
  readonly left: string;
  /** Unix milliseconds; null: it was not said. */
  readonly resetsAt: number | null;
}

/** Pairs of headers of a limit: what is left, and the others, with the name of the limit in the place of `*`. */
const counted: readonly { readonly left: RegExp; readonly limit: string; readonly reset: string }[] = [
  // Anthropic: rate limits. Read 2026-11.
  {
    left: /^anthropic-ratelimit-(.+)-remaining$/,
    limit: 'anthropic-ratelimit-*-limit',
    reset: 'anthropic-ratelimit-*-reset',
  },
  // OpenAI, Groq, Cerebras, Azure: rate limit headers. Read 2026-11.
  { left: /^x-ratelimit-remaining-(.+)$/, limit: 'x-ratelimit-limit-*', reset: 'x-ratelimit-reset-*' },
];

/** Headers that say how much of a window is used. `whole`: the value where all of it is used. */
const used: readonly { readonly used: RegExp; readonly whole: number; readonly reset: readonly string[] }[] = [
  // Anthropic: plans. The names are those of the windows, `5h` and `7d`.
  {
    used: /^anthropic-ratelimit-unified-(\w+)-utilization$/,
    whole: 1,
    reset: ['anthropic-ratelimit-unified-*-reset'],
  },
  // Codex and ChatGPT plans: `primary` and `secondary`.
  {
    used: /^x-codex-(primary|secondary)-used-percent$/,
    whole: 100,
    reset: ['x-codex-*-reset-at', 'x-codex-*-reset-after-seconds'],
  },
];

/** Returns the limits that the headers of an answer name, in their order. `now`: Unix milliseconds. */
export function rateLimitsIn(headers: AnswerHeaders, now: number): readonly RateLimit[] {
  const resetsAt = (names: readonly string[], name: string): number | null => {
    const value = names.map((pattern) => headers[pattern.replace('*', name)]).find((one) => one !== undefined);
    const waitMs = waitUntil(value, now);
    return waitMs === undefined ? null : now + waitMs;
  };
  return Object.entries(headers).flatMap(([header, value]): readonly RateLimit[] => {
    if (!/^\d+(?:\.\d+)?$/.test(value)) return [];
    for (const { left, limit, reset } of counted) {
      const name = left.exec(header)?.[1];
      const most = name === undefined ? undefined : headers[limit.replace('*', name)];
      if (name !== undefined)
        return [{ name: plain(name), left: most ? `${value} of ${most}` : value, resetsAt: resetsAt([reset], name) }];
    }
    for (const { used: pattern, whole, reset } of used) {
      const name = pattern.exec(header)?.[1];
      if (name === undefined) continue;
      const left = `${Math.max(0, Math.round(100 - (Number(value) / whole) * 100))}%`;
      return [{ name: windowName(headers, name), left, resetsAt: resetsAt(reset, name) }];
    }
    return [];
  });
}

/** Returns the milliseconds until the last window ends that is used up; undefined where none is. */
export function usedUpWaitMs(headers: AnswerHeaders, now: number): number | undefined {
  const waits = Object.entries(headers).flatMap(([header, value]) => {
    for (const { used: pattern, whole, reset } of used) {
      const name = pattern.exec(header)?.[1];
      if (name === undefined || Number(value) < whole) continue;
      const resets = reset.map((one) => waitUntil(headers[one.replace('*', name)], now));
      return resets.find((wait) => wait !== undefined) ?? [];
    }
    return [];
  });
  return waits.length === 0 ? undefined : largestOf(waits);
}

const plain = (name: string): string => name.replaceAll('-', ' ').slice(0, 40);

/** Returns how long a window of Codex is, where its header says it. */
function windowName(headers: AnswerHeaders, name: string): string {
  const minutes = Number(headers[`x-codex-${name}-window-minutes`] ?? Number.NaN);
  if (!Number.isFinite(minutes) || minutes <= 0) return plain(name);
  return minutes % 1440 === 0 ? `${minutes / 1440}d` : minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

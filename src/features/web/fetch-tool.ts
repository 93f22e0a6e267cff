import { headBytes } from '../../kernel/core/text.js';
import type { ArgumentProblem, ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import {
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  outOfBounds,
  succeeded,
  withStop,
} from '../../kernel/tools/define-tool.js';
import { hostOf, maxUrlChars, targetOf, urlProblem } from './addresses.js';
import type { Page, PageFormat } from './fetch-page.js';
import type { Requester } from './guarded-request.js';
import { judgeReading, type JudgeOptions } from './known-hosts.js';
import { WebRefusal } from '../../kernel/tools/web-refusal.js';
import { fetchPage } from './fetch-page.js';

export interface FetchToolOptions extends JudgeOptions {
  readonly request: Requester;
  /** `model_output_size`: the most bytes of one result that a model is sent. */
  readonly modelOutputBytes: number;
  /** The program that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const schema = {
  type: 'object',
  properties: {
    url: { type: 'string' },
    format: { enum: ['markdown', 'text', 'html'] },
    offset: { type: 'integer' },
    limit: { type: 'integer' },
    find: { type: 'string' },
  },
  required: ['url'],
  additionalProperties: false,
} as const;

type FetchArgs = FromSchema<typeof schema>;

export const defaultTimeoutMs = 30_000;

export function fetchTool(options: FetchToolOptions): DefinedTool {
  const cache = createPageCache(options.now);
  const turns = createHostTurns(options.now);
  return defineTool({
    name: 'web_fetch',
    effect: 'network',
    untrusted: true,
    otherNames: ['fetch_url'],
    limits: { timeout_ms: defaultTimeoutMs },
    description: 'Read a web page or PDF. find: only sections with it; offset, limit: characters.',
    schema,
    check: (args) =>
      outOfBounds(args, { url: [1, maxUrlChars], find: [1, 200], offset: [0, Infinity], limit: [1, Infinity] }) ??
      addressProblem(args.url),
    judge: ({ url }, { session }) => judgeReading(new URL(url), session.events(), options),
    run: async (args, ctx) => {
      const url = new URL(args.url);
      const format = args.format ?? 'markdown';
      try {
        const kept = cache.get(format, url);
        if (kept) return pageOutcome(kept, args, ctx, options, true);
        const wait = turns.take(hostOf(url));
        if (wait > 0)
          return failed('rate_limited', `${url.host} was asked ${turnsPerMinute} times within a minute; wait.`, {
            wait_ms: wait,
          });
        const page = await inTime(ctx, url, (signal) => fetchPage(url, format, { ...options, signal }));
        cache.put(format, url, page);
        return pageOutcome(page, args, ctx, options, false);
      } catch (error) {
        return await refused(error, ctx, url);
      }
    },
  });
}

/** Returns the problem of the address of a call that no permission can allow. */
export function addressProblem(text: string): ArgumentProblem | null {
  const problem = urlProblem(text);
  const target = problem === null ? targetOf(new URL(text)) : null;
  if (problem === null && target?.kind !== 'never') return null;
  const reason = target?.kind === 'never' ? target.reason : null;
  return { argument: 'url', problem: problem ?? reason ?? '', expected: 'an http or https address of the Internet' };
}

/** Runs a request within the time of its call. Throws a `WebRefusal` where that is over. */
export async function inTime<T>(ctx: ToolContext, url: URL, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return await withStop(ctx, defaultTimeoutMs, async (signal) => {
    try {
      return await work(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new WebRefusal('timeout', `${url.host} took too long to answer.`);
    }
  });
}

/** Turns what a request threw into an outcome; anything unforeseen is thrown on. */
export async function refused(error: unknown, ctx: ToolContext, url: URL): Promise<ToolOutcome> {
  if (ctx.signal.aborted) return failed('cancelled', `The request to ${url.host} was cancelled.`);
  if (!(error instanceof WebRefusal)) throw error;
  const details = error.details;
  const isText = typeof details === 'object' && details !== null && 'output' in details;
  const outcome = failed(error.code, error.message, details);
  return isText ? { ...outcome, envelope: { ...outcome.envelope, untrusted: true } } : outcome;
}

/** The part of a page that a call asks for, within what one result may hold. */
function pageOutcome(
  page: Page,
  { find, offset = 0, limit }: FetchArgs,
  ctx: ToolContext,
  { modelOutputBytes }: FetchToolOptions,
  cached: boolean,
): ToolOutcome {
  const text = find === undefined ? page.text : sectionsWith(page.text, find);
  if (text === '' && find !== undefined)
    return failed(
      'not_found',
      `No section of the page contains ${JSON.stringify(find)}; its headings are in details.`,
      {
        headings: headingsOf(page.text),
      },
    );
  if (offset > 0 && offset >= text.length)
    return failed('invalid_args', `offset ${offset} is past the end of the page (${text.length} characters).`);
  const room = Math.min(ctx.limits.maxOutputBytes, Math.floor((modelOutputBytes * 15) / 16));
  const output = headBytes(wholeChars(text.slice(offset, limit === undefined ? undefined : offset + limit)), room);
  const next = offset + output.length;
  return succeeded(`${page.title || hostOf(new URL(page.url))}: ${output.length} of ${text.length} characters`, {
    output,
    url: page.url,
    status: page.status,
    content_type: page.contentType,
    title: page.title,
    bytes: page.bytes,
    ...(page.cut ? { incomplete: true } : {}),
    ...(next < text.length ? { truncated: true, total_chars: text.length, next_offset: next } : {}),
    ...(cached ? { cached: true } : {}),
    untrusted: true,
  });
}

/** A cut may have parted a surrogate pair; at least one character stays. */
function wholeChars(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}

/** Returns the sections, from one heading to the next, that hold the words, in any case; of a text without headings its
 * paragraphs. */
function sectionsWith(text: string, find: string): string {
  const wanted = find.toLowerCase();
  const sections = text.split(/^#{1,6} /m.test(text) ? /\n(?=#{1,6} )/ : /\n{2,}/);
  return sections
    .filter((section) => section.toLowerCase().includes(wanted))
    .map((section) => section.trim())
    .join('\n\n');
}

function headingsOf(text: string): readonly string[] {
  return (text.match(/^#{1,6} .*$/gm) ?? []).slice(0, 30).map((heading) => heading.slice(0, 100).toWellFormed());
}

const keptMs = 15 * 60_000;
const keptChars = 10_000_000; // 20 MB

/** Keeps pages for a while, the newest ones, so that the next part of a page costs no request. */
function createPageCache(now: () => number) {
  const pages = new Map<string, { readonly page: Page; readonly until: number }>();
  let chars = 0;
  const drop = (key: string): void => {
    chars -= pages.get(key)?.page.text.length ?? 0;
    pages.delete(key);
  };
  const keyOf = (format: PageFormat, url: URL): string => `${format} ${url.href.replace(/#.*$/s, '')}`;
  return {
    get(format: PageFormat, url: URL): Page | null {
      const kept = pages.get(keyOf(format, url));
      return kept && kept.until > now() ? kept.page : null;
    },
    put(format: PageFormat, url: URL, page: Page): void {
      const key = keyOf(format, url);
      drop(key);
      pages.set(key, { page, until: now() + keptMs });
      chars += page.text.length;
      for (const [old, { until }] of pages) {
        if (chars <= keptChars && until > now()) break;
        drop(old);
      }
    },
  };
}

const turnsPerMinute = 10;

/** Counts requests to each host. `take` returns how many milliseconds are to be waited, 0 where none. */
function createHostTurns(now: () => number) {
  const turns = new Map<string, readonly number[]>();
  return {
    take(host: string): number {
      const recent = (turns.get(host) ?? []).filter((at) => at > now() - 60_000);
      const [oldest] = recent;
      if (oldest !== undefined && recent.length >= turnsPerMinute) return oldest + 60_000 - now();
      turns.set(host, [...recent, now()]);
      return 0;
    },
  };
}

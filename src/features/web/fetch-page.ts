import { replaceDeceptive } from '../../kernel/core/text.js';
import { decodeCharset } from '../../kernel/disk/legacy-encoding.js';
import { decodeText, sniffEncoding } from '../../kernel/disk/text-encoding.js';
import { hostOf, siteOf, targetOf, urlProblem } from './addresses.js';
import type { PageWork, WorkOptions } from '../../kernel/tools/convert-page.js';
import { convertPage } from '../../kernel/tools/convert-page.js';
import { type Requester, type WebAnswer } from './guarded-request.js';
import { WebRefusal } from '../../kernel/tools/web-refusal.js';

export type PageFormat = 'markdown' | 'text' | 'html';

/** A page as it is handed out. */
export interface Page {
  /** The address after all redirects, without the fragment. */
  readonly url: string;
  readonly status: number;
  readonly contentType: string;
  readonly title: string;
  /** Of the body, decompressed. */
  readonly bytes: number;
  /** The body was longer than what is read. */
  readonly cut: boolean;
  readonly text: string;
}

export interface FetchOptions extends WorkOptions {
  readonly request: Requester;
  /** `web.allow_local`. */
  readonly allowLocal: readonly string[];
}

const maxBytes = 5_000_000;
const maxRedirects = 5;
/** Most characters of a page, and how many are cleaned at once: each that is taken out costs memory for a while. */
const maxChars = 2_000_000;
const partChars = 65_536;
const shownChars = 2_000;
const redirects = new Set([301, 302, 303, 307, 308]);

/** Fetches a page and converts it. Throws a `WebRefusal`. */
export async function fetchPage(start: URL, format: PageFormat, options: FetchOptions): Promise<Page> {
  const wanted = { accept: 'text/markdown, text/html;q=0.9, */*;q=0.1', maxBytes };
  const { url, answer } = await fetchAnswer(start, wanted, options);
  return await readPage(url, answer, format, options);
}

/** The last answer of a request that was redirected. */
interface FetchedAnswer {
  readonly url: URL;
  readonly answer: WebAnswer;
}

/** Sends a GET request. Follows at most five redirects, on the same host or between sites of `web.allow_local`. Throws a
 * `WebRefusal`. */
export async function fetchAnswer(
  start: URL,
  wanted: { readonly accept: string; readonly maxBytes: number },
  options: Pick<FetchOptions, 'request' | 'allowLocal' | 'signal'>,
): Promise<FetchedAnswer> {
  const site = siteOf(start);
  // The user allowed one site for this call; the setting allows its own.
  const isAllowedNow = targetOf(start).kind === 'local';
  const allowsLocal = (next: string): boolean => options.allowLocal.includes(next) || (isAllowedNow && next === site);
  let url = start;
  for (let hops = 0; ; hops++) {
    const answer = await options.request(url, {
      method: 'GET',
      headers: {
        accept: wanted.accept,
        'accept-encoding': 'gzip, deflate, br',
        'user-agent': 'Mozilla/5.0 (compatible; agent-shell)',
      },
      maxBytes: wanted.maxBytes,
      allowsLocal: allowsLocal(siteOf(url)),
      signal: options.signal,
    });
    const location = answer.headers['location'];
    if (!redirects.has(answer.status) || location === undefined) return { url, answer };
    if (hops === maxRedirects)
      throw new WebRefusal('execution_failed', `${start.host} redirects more than ${maxRedirects} times.`);
    url = nextOf(url, location, site, options.allowLocal);
  }
}

/** Returns the target of a redirect, if it is followed. */
function nextOf(from: URL, location: string, site: string, allowLocal: readonly string[]): URL {
  const next = URL.canParse(location, from) ? new URL(location, from) : null;
  const problem = next === null ? 'is not a valid address' : urlProblem(next.href);
  if (next === null || problem !== null)
    throw new WebRefusal('permission_denied', `Redirects to an address that ${problem}.`);
  const target = targetOf(next, allowLocal);
  if (target.kind !== 'public' && siteOf(next) !== site)
    throw new WebRefusal('permission_denied', `Redirects to ${siteOf(next)}, which is not followed: ${target.reason}.`);
  const areAllowed = [from, next].every((url) => allowLocal.includes(siteOf(url)));
  if (areAllowed || hostOf(next) === hostOf(from)) return next;
  throw new WebRefusal('execution_failed', `Redirects to ${next.href}; fetch that.`, { location: next.href });
}

async function readPage(url: URL, answer: WebAnswer, format: PageFormat, options: FetchOptions): Promise<Page> {
  const contentType = answer.headers['content-type'] ?? '';
  const kind = bodyKind(contentType, answer.body);
  const shown = `${url.origin}${url.pathname}${url.search}`;
  if (answer.status >= 400) {
    const html =
      kind === 'html' || kind === 'text' ? await decoded(answer.body.subarray(0, 200_000), contentType, kind) : '';
    const work: PageWork = { kind: 'html', html, base: shown, format: 'text' };
    const text = kind === 'html' ? (await convertPage(work, options)).text : html;
    throw new WebRefusal('execution_failed', `${url.host} answered ${answer.status}.`, {
      status: answer.status,
      output: clean(text).slice(0, shownChars).toWellFormed(),
    });
  }
  const named = clean(contentType).slice(0, 100);
  if (kind === 'other')
    throw new WebRefusal(
      'execution_failed',
      `${shown} is ${named === '' ? 'no text' : named}; only text, HTML and PDF can be read.`,
    );
  const { text, title } = await readPageText(kind, answer, shown, format, options);
  const facts = { url: shown, status: answer.status, contentType: named };
  return {
    ...facts,
    title: clean(title),
    bytes: answer.body.length,
    cut: answer.cut || text.length > maxChars,
    text: clean(text),
  };
}

async function readPageText(
  kind: 'html' | 'text' | 'pdf',
  { body, cut, headers }: WebAnswer,
  base: string,
  format: PageFormat,
  options: FetchOptions,
): Promise<{ readonly text: string; readonly title: string }> {
  if (kind === 'pdf') {
    if (cut)
      throw new WebRefusal('execution_failed', `${base} is a PDF of over ${maxBytes / 1e6} MB, which is not read.`);
    return await convertPage({ kind: 'pdf', bytes: body }, options);
  }
  const text = await decoded(body, headers['content-type'] ?? '', kind);
  if (kind === 'text' || format === 'html') return { text, title: '' };
  return await convertPage({ kind: 'html', html: text, base, format }, options);
}

/** Returns the kind of a body by its type, or by its first bytes if the server names none. */
function bodyKind(contentType: string, body: Buffer): 'html' | 'text' | 'pdf' | 'other' {
  const type = (contentType.split(';')[0] ?? '').trim().toLowerCase();
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (type === 'application/pdf') return 'pdf';
  if (/^text\/|[/+](?:json|xml|yaml|x-yaml|toml|csv|javascript|x-ndjson|x-sh|graphql|sql)$/.test(type)) return 'text';
  if (type !== '' && type !== 'application/octet-stream') return 'other';
  const start = body.subarray(0, 1024).toString('latin1');
  if (start.startsWith('%PDF-')) return 'pdf';
  if (start.includes('\0')) return 'other';
  return /^\s*<(?:!doctype html|html)\b/i.test(start) ? 'html' : 'text';
}

const markup = /<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w.:+-]+)|^\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w.:+-]+)/i;
const styleSheet = /^@charset "([\w.:+-]+)";/;

/** Decodes by a byte order mark, then the charset of the header, then what the text says of itself, then what its
 * bytes look like. Source: WHATWG HTML, section 13.2.3.2 "Determining the character encoding". */
export async function decoded(body: Buffer, contentType: string, kind: 'html' | 'text'): Promise<string> {
  const { encoding, bom } = sniffEncoding(body);
  if (bom || encoding !== 'utf-8') return new TextDecoder(encoding).decode(body);
  const label = /charset\s*=\s*["']?\s*([\w.:+-]+)/i.exec(contentType)?.[1];
  for (const one of [label, labelWithin(body, kind)]) {
    const text = one === undefined ? null : await decodeCharset(body, one);
    if (text !== null) return text;
  }
  return (await decodeText(body, null)).text ?? new TextDecoder().decode(body);
}

function labelWithin(body: Buffer, kind: 'html' | 'text'): string | undefined {
  const start = body.subarray(0, 4096).toString('latin1');
  const isMarkup = kind === 'html' || start.trimStart().startsWith('<');
  const found = (isMarkup ? markup : styleSheet).exec(start);
  // Markup that can be read as ASCII is not in UTF-16, whatever it says.
  return (found?.[1] ?? found?.[2])?.replace(/^utf-?16.*$/i, 'utf-8');
}

/** Removes characters that could control a terminal or hide words from the user. */
export function clean(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < Math.min(text.length, maxChars);) {
    let end = at + partChars;
    while (/[\ud800-\udbff\r]/.test(text[end - 1] ?? '')) end++; // no part ends within a pair or a line end
    parts.push(replaceDeceptive(text.slice(at, end).replace(/\r\n?/g, '\n'), () => ''));
    at = end;
  }
  return parts.join('');
}

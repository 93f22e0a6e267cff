import { domainToUnicode } from 'node:url';
import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import type { Event } from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Judged } from '../../kernel/core/tool.js';
import { hostOf, siteOf, targetOf } from './addresses.js';

const readers = new Set(['web_search', 'web_fetch']);
/** A longer path and query that nobody has written may carry something out. */
const maxUnseenChars = 512;

/** Returns the texts that the user wrote and those of searches and pages of this session. */
function seenTexts(events: readonly Event[]): readonly string[] {
  return events.flatMap(({ kind, content, data }) => {
    if (kind === 'user') return isRecord(data) && data['note'] === true ? [] : [content ?? ''];
    if (kind !== 'tool_result' || !isRecord(data) || !readers.has(String(data['name']))) return [];
    const envelope = parseEnvelope(String(data['output']));
    return isError(envelope) ? [] : [envelope.output];
  });
}

/** True where a text names the host as a whole, with or without `www.`. */
function names(text: string, host: string): boolean {
  const wanted = host.replace(/^www\./, '');
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const before = text.slice(Math.max(0, at - 5), at).replace(/(?:^|[^a-z\d.-])www\.$/, ' ');
    const after = text.slice(at + wanted.length, at + wanted.length + 2);
    if (!/[\p{L}\p{N}.-]$/u.test(before) && !/^(?:[\p{L}\p{N}-]|\.[\p{L}\p{N}])/u.test(after)) return true;
  }
  return false;
}

export interface JudgeOptions {
  /** `web.allow_domains`: these and the hosts below them. */
  readonly allowDomains: readonly string[];
  /** `web.allow_local`. */
  readonly allowLocal: readonly string[];
}

function isKnownHost(url: URL, texts: readonly string[], { allowDomains, allowLocal }: JudgeOptions): boolean {
  const host = hostOf(url);
  const spelled = [host, domainToUnicode(host)].filter((name) => name !== '');
  return (
    allowDomains.some((domain) => host === domain || host.endsWith(`.${domain}`)) ||
    allowLocal.includes(siteOf(url)) ||
    texts.some((text) => spelled.some((name) => names(text, name)))
  );
}

/** Judges loading an image whose address the user wrote: a host that the session has not used needs an approval. */
export function judgeImage(url: URL, events: readonly Event[], options: JudgeOptions): Judged {
  const target = targetOf(url, options.allowLocal);
  if (target.kind === 'local') return { risk: 'dangerous', reasons: [target.reason], everyMode: true };
  if (target.kind !== 'public') return { risk: 'dangerous', reasons: [target.reason] };
  const texts = seenTexts(events).map((text) => text.toLowerCase());
  return isKnownHost(url, texts, options)
    ? { risk: 'mutating', reasons: [`loads an image from ${hostOf(url)}`] }
    : { risk: 'dangerous', reasons: [`${hostOf(url)} is new in this session; it learns that you load this image`] };
}

/** Judges reading a page: a host that neither the user nor a search or page of this session has named, or a long
 * address that nobody has written, may be there to carry something out. */
export function judgeReading(url: URL, events: readonly Event[], options: JudgeOptions): Judged {
  const target = targetOf(url, options.allowLocal);
  if (target.kind === 'local') return { risk: 'dangerous', reasons: [target.reason], everyMode: true };
  if (target.kind !== 'public') return { risk: 'dangerous', reasons: [target.reason] };
  const host = hostOf(url);
  const texts = seenTexts(events).map((text) => text.toLowerCase());
  if (!isKnownHost(url, texts, options))
    return { risk: 'dangerous', reasons: [`${host} was not mentioned by you, a page or a search in this session`] };
  const length = url.pathname.length + url.search.length;
  const address = url.href.replace(/#.*$/s, '').toLowerCase();
  if (length > maxUnseenChars && !texts.some((text) => text.includes(address)))
    return {
      risk: 'dangerous',
      reasons: [`${host} would get ${length} characters that appear nowhere in this session`],
    };
  return { risk: 'mutating', reasons: [`web_fetch reads ${host}`] };
}

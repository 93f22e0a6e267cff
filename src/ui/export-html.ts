import { parseJson } from '../kernel/core/json.js';
import { Marked } from 'marked';
import type { AttachmentData, Event } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import type { SessionRow } from '../kernel/core/store.js';

import { type CallBlock, type CallReading, readCall } from './calls/call-readings.js';
import { changedParts, type DiffLine, editedLines, placesOf, type TextPart } from './diff-lines.js';
import { loadHtmlHighlight } from './markdown/highlight.js';
import { localTime, oneLine } from '../kernel/console/line-output.js';
import { escaped, findScript, pageStyle, policyHash, visible } from '../kernel/console/page-look.js';
import { type CallResult, createEntryReader, entriesOf, type ExportEntry, tookText } from './export-entries.js';
import type { PagedSession } from '../kernel/console/stored-session.js';

const policy =
  `default-src 'none'; style-src ${policyHash(pageStyle)}; script-src ${policyHash(findScript)}; ` +
  "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; img-src data:";

/** Marks up a text: Markdown as HTML, code in colours. */
export interface Markup {
  readonly prose: (markdown: string) => string;
  readonly code: (text: string, language: string) => string;
  /** Returns the images and documents of an entry. */
  readonly attached: (attachments: readonly AttachmentData[]) => string;
}

/** Writes a session as one self-contained page: its images are in it, nothing comes from the network, and no script
 * runs but the one for searching: the policy of the page forbids everything else. Recorded text is escaped. */
export async function* htmlOf({ row, pages, blob }: PagedSession): AsyncGenerator<string> {
  const reader = createEntryReader();
  const stored = new Map<string, Uint8Array>();
  const markup = await markupFor(stored);
  const counts = { calls: 0, failed: 0 };
  const blocks = async (entries: readonly ExportEntry[]): Promise<string> => {
    let text = '';
    for (const entry of entries) {
      if (entry.type === 'call') counts.calls += 1;
      if (entry.type === 'call' && entry.result?.success === false) counts.failed += 1;
      await readFiles(entry, stored, blob);
      text += `${entryBlock(entry, markup)}\n`;
      // A map that is cleared keeps its table before alive until all garbage is collected.
      if (stored.size > 0) stored.clear();
    }
    return text;
  };
  let hasBegun = false;
  for await (const events of pages) {
    if (!hasBegun) yield pageStart(row, events);
    hasBegun = true;
    yield await blocks(reader.add(events));
  }
  if (!hasBegun) yield pageStart(row, []);
  yield await blocks(reader.end());
  yield `</div><p>${counts.calls} tool call${counts.calls === 1 ? '' : 's'}, ${counts.failed} failed</p></main><script>${findScript}</script></body></html>\n`;
}

/** Reads the images and documents of an entry. */
async function readFiles(
  entry: ExportEntry,
  stored: Map<string, Uint8Array>,
  blob: PagedSession['blob'],
): Promise<void> {
  const own = 'attachments' in entry ? (entry.attachments ?? []) : [];
  const ofResult = entry.type === 'call' ? (entry.result?.attachments ?? []) : [];
  for (const { sha256 } of [...own, ...ofResult]) {
    const bytes = await blob(sha256);
    if (bytes !== null) stored.set(sha256, bytes);
  }
}

/** `events`: the first ones. */
function pageStart(row: SessionRow, events: readonly Event[]): string {
  const [first] = entriesOf(events).flatMap((entry) => (entry.type === 'user' ? entry.text : []));
  const title = escaped(oneLine(row.title ?? first ?? row.id, 100));
  const model = `${row.provider ?? '?'}/${row.model ?? '?'}`;
  const facts = `${escaped(model)} · ${localTime(row.createdAt)} – ${localTime(row.updatedAt)}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>${title}</title><style>${pageStyle}</style></head>
<body><main><header><h1>${title}</h1>
<p>${facts}</p>
<p><code>${escaped(row.cwd)}</code> · <code>${escaped(row.id)}</code></p></header>
<div class="tools"><input id="find" type="search" placeholder="Find in this session ( / )" aria-label="Find">
<output id="count"></output>
<button id="unfold" type="button">Unfold all</button><button id="fold" type="button">Fold all</button></div>
<div id="entries">
`;
}

/** `stored`: the images and documents by their SHA-256 (hex). */
export async function markupFor(stored: ReadonlyMap<string, Uint8Array>): Promise<Markup> {
  const highlight = await loadHtmlHighlight();
  const code = (text: string, language: string): string => highlight(visible(text), language) ?? escaped(text);
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ raw }) => escaped(raw),
      // The parser takes text behind a tag such as <pre> for HTML already: here no text is.
      text(token) {
        return 'tokens' in token && token.tokens ? this.parser.parseInline(token.tokens) : escapedProse(token.text);
      },
      codespan: ({ text }) => `<code>${escaped(text)}</code>`,
      code: ({ text, lang }) => `<pre><code>${code(text, (lang ?? '').split(/[\s{,:]/)[0] ?? '')}</code></pre>`,
      heading({ tokens, depth }) {
        const level = Math.min(6, depth + 1);
        return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
      },
      image: ({ text, href }) => escaped(text === '' ? href : `${text} (${href})`),
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        return /^(?:https?:|mailto:)/i.test(href)
          ? `<a href="${escaped(href)}" rel="noreferrer noopener">${text}</a>`
          : `${text} (${escaped(href)})`;
      },
    },
  });
  const attached: Markup['attached'] = (attachments) =>
    attachments.map((file) => figure(file, stored.get(file.sha256))).join('');
  return {
    attached,
    code,
    prose: (markdown) => `<div class="text">${marked.parse(visible(markdown), { async: false })}</div>`,
  };
}

/** Escapes text of Markdown. The few entities that people write stay; one for a hidden character does not. */
function escapedProse(text: string): string {
  return escaped(text).replace(/&amp;(amp|lt|gt|quot|nbsp);/g, '&$1;');
}

/** Shows an image in the page, and the name of any other file. */
function figure(
  { name, media_type: type, bytes: size, sha256 }: AttachmentData,
  bytes: Uint8Array | undefined,
): string {
  const about = escaped(`${name} (${type}, ${size} bytes)`);
  if (bytes === undefined || !/^image\/(?:png|jpeg|gif|webp)$/.test(type))
    return `<p class="note">${about} ${escaped(sha256)}</p>`;
  return `<img alt="${about}" title="${about}" src="data:${type};base64,${Buffer.from(bytes).toString('base64')}">`;
}

/** Returns an entry as a part of a page, with its number as its id: `e7`. `isLive`: a call without a result may still
 * be running. */
export function entryBlock(entry: ExportEntry, markup: Markup, isLive = false): string {
  const number = `<a class="number" href="#e${entry.seq}">${entry.seq}</a>`;
  const inside = inner(entry, markup, isLive);
  return `<section class="entry is-${entry.type}" id="e${entry.seq}">${number}${inside}</section>`;
}

function inner(entry: ExportEntry, markup: Markup, isLive: boolean): string {
  switch (entry.type) {
    case 'system':
      return `<details><summary>System prompt</summary>${pre(entry.text)}</details>`;
    case 'user':
      return `<div class="user plain">${escaped(entry.text)}${markup.attached(entry.attachments ?? [])}${fromLine(entry.from)}</div>`;
    case 'note':
      return `<details class="note"><summary>Told the model: ${noteStart(entry.text)}</summary>${pre(entry.text)}</details>`;
    case 'assistant':
      return markup.prose(entry.text);
    case 'call':
      return callBlock(entry, markup, isLive);
    case 'shell':
      return `<details open><summary><code>!! ${escaped(entry.command)}</code></summary>${pre(entry.output)}</details>`;
    case 'side_question':
      return `<details open><summary>Side question, not part of the conversation: ${escaped(entry.question)}</summary>${markup.prose(entry.answer)}</details>`;
    case 'compaction':
      return `<details open><summary>A summary replaces events ${entry.from} to ${entry.to}</summary>${markup.prose(entry.text)}</details>`;
    case 'event':
      return `<div class="event">${escaped(entry.kind)}: ${escaped(entry.text)}</div>`;
    default:
      return entry satisfies never;
  }
}

/** Says where a message came from that was not typed at a terminal. */
function fromLine(from: string | undefined): string {
  return from === undefined ? '' : `<span class="from">${escaped(from)}</span>`;
}

/** Shows a call in its own language, as the terminal does, with its raw arguments folded away. */
function callBlock(
  { arguments: args, result, decision, tool }: Extract<ExportEntry, { type: 'call' }>,
  markup: Markup,
  isLive: boolean,
): string {
  const reading = readCall({ name: tool, arguments: args });
  const { blocks } = reading;
  const language = tool === 'bash' ? 'bash' : '';
  const diff = result?.diff ?? null;
  const shown = [
    decision === null ? '' : `<p class="note">${escaped(decision)}</p>`,
    ...blocks.map((block) => callPart(block, { diff, language }, markup)),
    diff === null ? '' : changeBlock(diff),
    result === null || (diff !== null && result.success) ? '' : outputBlock(result),
    markup.attached(result?.attachments ?? []),
    argumentBlock(args, markup),
  ];
  // What is written for a person to read is open: a plan, a list of steps, a question.
  const isOpen = blocks.some(({ kind }) => kind === 'markdown' || kind === 'prose');
  const head = `${headOf(reading, language, markup)}${stateOf(result, isLive)}`;
  return `<details${isOpen ? ' open' : ''}><summary>${head}</summary>${shown.join('')}</details>`;
}

function headOf({ verb, subject, more }: CallReading, language: string, markup: Markup): string {
  const rest = more.map((text) => ` <span class="more">${escaped(text)}</span>`).join('');
  return `<code><b>${escaped(verb)}</b> ${markup.code(subject, language)}${rest}</code>`;
}

function outputBlock({ newOutput }: CallResult): string {
  return newOutput === '' ? '' : `<pre class="result">${escaped(newOutput)}</pre>`;
}

/** Shows a part of a call. The diff of a result replaces the change that the call asks for. */
function callPart(
  block: CallBlock,
  { diff, language }: { readonly diff: string | null; readonly language: string },
  markup: Markup,
): string {
  switch (block.kind) {
    case 'lines':
      return `${block.name === undefined ? '' : label(escaped(block.name))}<pre>${markup.code(block.text, language)}</pre>`;
    case 'prose':
      return `<div class="plain">${escaped(block.text)}</div>`;
    case 'markdown':
      return markup.prose(block.text);
    case 'change':
      return diff === null ? changeLines([editedLines(block.before ?? '', block.after.replace(/\n$/, ''))]) : '';
    default:
      return block satisfies never;
  }
}

/** Returns the first words of a note for the model. */
function noteStart(text: string): string {
  return escaped(oneLine(text.trim().replace(/^\[Note: ([^]*)\]$/, '$1'), 100));
}

function stateOf(result: CallResult | null, isLive: boolean): string {
  if (result === null && isLive) return '<span class="state">no result yet</span>';
  if (result === null) return '<span class="state failed">no result</span>';
  const [kind, sign] = result.isGood ? ['ok', '✔'] : ['failed', '✘'];
  const summary = escaped(oneLine(result.outcome, 60));
  const took = tookText(result);
  const time = took === '' ? '' : `<span class="state">${took}</span>`;
  return `<span class="state ${kind}">${sign} ${summary}</span>${time}`;
}

/** The arguments as the model sent them. */
function argumentBlock(args: string, markup: Markup): string {
  const parsed = parsedArguments(args);
  const text = parsed === null ? escaped(args) : markup.code(JSON.stringify(parsed, null, 2), 'json');
  return `<details><summary>Arguments</summary><pre>${text}</pre></details>`;
}

function parsedArguments(args: string): Readonly<Record<string, unknown>> | null {
  try {
    const parsed: unknown = parseJson(args);
    return isRecord(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

function changeBlock(diff: string): string {
  const places = placesOf(diff.split('\n'));
  if (places.length === 0) return pre(diff);
  const last = diff.trimEnd().split('\n').at(-1) ?? '';
  const cut = last.startsWith('…') ? `<div class="gap">${escaped(last)}</div>` : '';
  return changeLines(places, cut);
}

function changeLines(places: readonly (readonly DiffLine[])[], end = ''): string {
  const kinds = { '+': ' class="added"', '-': ' class="removed"', ' ': '' } as const;
  const shown = places.map((place) => {
    const marks = changedParts(place);
    return place
      .map(({ sign, number, text }, index) => {
        const words = marks[index] ? marked(text, marks[index]) : escaped(text);
        return `<div${kinds[sign]}><i>${number ?? ''}</i>${sign} ${words}</div>`;
      })
      .join('');
  });
  return `<div class="change">${shown.join('<div class="gap">…</div>')}${end}</div>`;
}

function marked(text: string, { from, to }: TextPart): string {
  return `${escaped(text.slice(0, from))}<b>${escaped(text.slice(from, to))}</b>${escaped(text.slice(to))}`;
}

function label(text: string): string {
  return `<p class="label">${text}</p>`;
}

function pre(text: string): string {
  return `<pre>${escaped(text)}</pre>`;
}

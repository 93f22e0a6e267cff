import { createHash } from 'node:crypto';
import { Marked } from 'marked';
import type { AttachmentData } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { Blob } from '../../core/store.js';
import { replaceDeceptive } from '../../core/text.js';
import { placesOf } from '../../ui/diff-lines.js';
import { loadHtmlHighlight } from '../../ui/markdown/highlight.js';
import { localTime, oneLine } from '../line-output.js';
import { type CallResult, entriesOf, type Entry } from './export-entries.js';
import type { ExportedSession } from './stored-session.js';

/** The colours and shapes of a page with a session on it. */
export const pageStyle = `
:root{color-scheme:light dark;--ink:#1c1e21;--dim:#6b7280;--page:#fbfbfa;--card:#fff;--line:#e4e4e0;--accent:#3b5bdb;
--good:#2b8a3e;--bad:#c92a2a;
--add:#e6f6ea;--del:#fdecec;--keyword:#8250df;--string:#0a6b3d;--number:#a04a00;--name:#0b5cad;--found:#ffe58f}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e3;--dim:#9aa0a6;--page:#16171a;--card:#1e2024;--line:#2f3237;
--accent:#91a7ff;--good:#69db7c;
--bad:#ff8787;--add:#17331f;--del:#3c1d1f;--keyword:#d2a8ff;--string:#8ddb8c;--number:#f0a868;
--name:#79c0ff;--found:#6b5800}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:54rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}
header{border-bottom:1px solid var(--line);padding-bottom:1rem;margin-bottom:1.5rem}
header p{margin:.1rem 0;color:var(--dim);font-size:.875rem}
.tools{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;padding:.5rem 0;
background:var(--page)}
.tools input{flex:1 1 12rem;min-width:0}
.tools input,.tools button{font:inherit;font-size:.875rem;padding:.3rem .6rem;color:inherit;background:var(--card);
border:1px solid var(--line);border-radius:.4rem}
.tools output{color:var(--dim);font-size:.8125rem}.tools output:empty{display:none}
code,pre,.change{font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre,.change{margin:.5rem 0;padding:.75rem;overflow:auto;max-height:32rem;background:var(--page);
border:1px solid var(--line);border-radius:.5rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
.entry{margin:1rem 0;position:relative}
.plain{white-space:pre-wrap;overflow-wrap:anywhere}
.user{background:var(--card);border:1px solid var(--line);border-left:3px solid var(--accent);border-radius:.5rem;
padding:.75rem 1rem;font-weight:500}
.text{overflow-wrap:anywhere}.text>:first-child{margin-top:0}.text>:last-child{margin-bottom:0}
.text code{padding:.1em .3em;background:var(--card);border:1px solid var(--line);border-radius:.25rem}
.text pre code{padding:0;border:0;background:none}
.text table{border-collapse:collapse;display:block;overflow:auto}
.text th,.text td{border:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top;
overflow-wrap:normal}
.text h2,.text h3,.text h4,.text h5,.text h6{line-height:1.3;margin:1.2rem 0 .4rem;font-size:1.1rem}
.text blockquote{margin:.5rem 0;padding-left:1rem;border-left:3px solid var(--line);color:var(--dim)}
.text a{color:var(--accent)}
.is-call+.is-call{margin-top:-.5rem}.is-system summary{color:var(--dim);font-size:.875rem}
.note,.event{color:var(--dim);font-size:.875rem}
details{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.4rem .9rem}
details+details{margin-top:.4rem}details details summary{color:var(--dim);font-size:.8125rem}
summary{cursor:pointer;display:flex;gap:.6rem;align-items:baseline;list-style:none}
summary::-webkit-details-marker{display:none}
summary::before{content:"▸";color:var(--dim)}details[open]>summary::before{content:"▾"}
summary code{flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.state{color:var(--dim);font-size:.8125rem;white-space:nowrap}.ok{color:var(--good)}.failed{color:var(--bad)}
.label{font-size:.75rem;text-transform:uppercase;letter-spacing:.06em;color:var(--dim);margin:.75rem 0 0}
.change div{white-space:pre-wrap;overflow-wrap:anywhere}
.change i{display:inline-block;width:3.5em;color:var(--dim);font-style:normal;user-select:none}
.change .added{background:var(--add)}.change .removed{background:var(--del)}.change .gap{color:var(--dim)}
.hljs-keyword,.hljs-tag,.hljs-selector-tag,.hljs-built_in{color:var(--keyword)}
.hljs-string,.hljs-regexp,.hljs-symbol{color:var(--string)}
.hljs-number,.hljs-literal{color:var(--number)}
.hljs-title,.hljs-name,.hljs-attr,.hljs-attribute,.hljs-variable,.hljs-type{color:var(--name)}
.hljs-comment,.hljs-meta,.hljs-doctag{color:var(--dim);font-style:italic}.hljs-addition{background:var(--add)}
.hljs-deletion{background:var(--del)}
::highlight(found){background:var(--found)}[hidden]{display:none}
img{display:block;max-width:100%;max-height:32rem;margin:.5rem 0;border:1px solid var(--line);
border-radius:.4rem}
.number{position:absolute;left:-3.2rem;color:var(--dim);font-size:.75rem;text-decoration:none}
@media(max-width:64rem){.number{display:none}}@media print{details>*{display:block}pre,.change{max-height:none}
.tools{display:none}}`;

/** Searches and folds entries. The policy of the page lets no other script run. */
export const findScript = `
const find=document.querySelector('#find'),count=document.querySelector('#count');
const fold=(open)=>{for(const part of document.querySelectorAll('details'))part.open=open};
document.querySelector('#unfold').onclick=()=>fold(true);
document.querySelector('#fold').onclick=()=>fold(false);
const mark=(query)=>{
  if(!('highlights' in CSS))return;
  CSS.highlights.delete('found');
  if(query==='')return;
  const ranges=[],walk=document.createTreeWalker(document.querySelector('#entries'),NodeFilter.SHOW_TEXT);
  for(let node=walk.nextNode();node&&ranges.length<5000;node=walk.nextNode()){
    const text=node.data.toLowerCase();
    for(let at=text.indexOf(query);at>=0&&at+query.length<=node.length;at=text.indexOf(query,at+query.length)){
      const range=new Range();range.setStart(node,at);range.setEnd(node,at+query.length);ranges.push(range);
    }
  }
  CSS.highlights.set('found',new Highlight(...ranges));
};
const search=()=>{
  const query=find.value.trim().toLowerCase();
  let hits=0;
  const entries=[...document.querySelectorAll('.entry')];
  for(const entry of entries){
    const hit=query===''||entry.textContent.toLowerCase().includes(query);
    entry.hidden=!hit;
    if(hit)hits++;
    if(hit&&query!=='')for(const part of entry.querySelectorAll('details'))
      if(part.textContent.toLowerCase().includes(query))part.open=true;
  }
  count.textContent=query===''?'':hits+' of '+entries.length;
  mark(query);
};
find.addEventListener('input',search);
addEventListener('keydown',(event)=>{if(event.key==='/'&&document.activeElement!==find){event.preventDefault();
find.focus()}});`;

const scriptHash = createHash('sha256').update(findScript).digest('base64');
const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${scriptHash}'`;
const picturePolicy = `${policy}; img-src data:`;

/** Marks up a text: Markdown as HTML, code in colours. */
export interface Markup {
  readonly prose: (markdown: string) => string;
  readonly code: (text: string, language: string) => string;
  /** The pictures and documents of an entry. */
  readonly attached: (attachments: readonly AttachmentData[]) => string;
}

/** Writes a session as one self-contained page: its pictures are in it, nothing comes from the network, and no script
 * runs but the one above (the policy of the page forbids everything else). Recorded text is escaped. Calls and the
 * system prompt can be folded. */
export async function toHtml({ row, events, blobs = [] }: ExportedSession): Promise<string> {
  const entries = entriesOf(events);
  const calls = entries.filter((entry) => entry.type === 'call');
  const failed = calls.filter((entry) => entry.result?.success === false).length;
  const first = events.find((event) => event.kind === 'user')?.content;
  const title = escaped(oneLine(row.title ?? first ?? row.id, 100));
  const markup = await markupFor(entries, blobs);
  const allowed = blobs.length > 0 ? picturePolicy : policy;
  const model = `${row.provider ?? '?'}/${row.model ?? '?'}`;
  const facts = `${escaped(model)} · ${localTime(row.createdAt)} – ${localTime(row.updatedAt)}`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${allowed}"><title>${title}</title><style>${pageStyle}</style></head>
<body><main><header><h1>${title}</h1>
<p>${facts} · ${calls.length} tool call${calls.length === 1 ? '' : 's'}, ${failed} failed</p>
<p><code>${escaped(row.cwd)}</code> · <code>${escaped(row.id)}</code></p></header>
<div class="tools"><input id="find" type="search" placeholder="Find in this session ( / )" aria-label="Find">
<output id="count"></output>
<button id="unfold" type="button">Unfold all</button><button id="fold" type="button">Fold all</button></div>
<div id="entries">
${entries.map((entry) => entryBlock(entry, markup)).join('\n')}
</div></main><script>${findScript}</script></body></html>
`;
}

export async function markupFor(entries: readonly Entry[], blobs: readonly Blob[]): Promise<Markup> {
  const texts = entries.flatMap((entry) => (entry.type === 'assistant' ? [entry.text] : []));
  const highlight = await loadHtmlHighlight(texts.join('\n'), ['bash', 'json']);
  const code = (text: string, language: string): string => highlight(visible(text), language) ?? escaped(text);
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ raw }) => escaped(raw),
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
  const stored = new Map(blobs.map(({ sha256, bytes }) => [sha256, bytes]));
  const attached: Markup['attached'] = (attachments) =>
    attachments.map((file) => figure(file, stored.get(file.sha256))).join('');
  return {
    attached,
    code,
    prose: (markdown) => `<div class="text">${marked.parse(visible(markdown), { async: false })}</div>`,
  };
}

/** Shows a picture in the page, and names anything else. */
function figure(
  { name, media_type: type, bytes: size, sha256 }: AttachmentData,
  bytes: Uint8Array | undefined,
): string {
  const about = escaped(`${name} (${type}, ${size} bytes)`);
  if (bytes === undefined || !/^image\/(?:png|jpeg|gif|webp)$/.test(type))
    return `<p class="note">${about} ${escaped(sha256)}</p>`;
  return `<img alt="${about}" title="${about}" src="data:${type};base64,${Buffer.from(bytes).toString('base64')}">`;
}

/** Returns an entry as a part of a page, with its number as its id: `e7`. */
export function entryBlock(entry: Entry, markup: Markup): string {
  const number = `<a class="number" href="#e${entry.seq}">${entry.seq}</a>`;
  return `<section class="entry is-${entry.type}" id="e${entry.seq}">${number}${inner(entry, markup)}</section>`;
}

function inner(entry: Entry, markup: Markup): string {
  switch (entry.type) {
    case 'system':
      return `<details><summary>System prompt</summary>${pre(entry.text)}</details>`;
    case 'user':
      return `<div class="user plain">${escaped(entry.text)}${markup.attached(entry.attachments ?? [])}</div>`;
    case 'note':
      return `<div class="note plain">${escaped(entry.text)}</div>`;
    case 'assistant':
      return markup.prose(entry.text);
    case 'call':
      return callBlock(entry, markup);
    case 'shell':
      return `<details open><summary><code>!! ${escaped(entry.command)}</code></summary>${pre(entry.output)}</details>`;
    case 'event':
      return `<div class="event">${escaped(entry.kind)}: ${escaped(entry.text)}</div>`;
    default:
      return entry satisfies never;
  }
}

function callBlock(
  { summary, arguments: args, result, decision, tool }: Extract<Entry, { type: 'call' }>,
  markup: Markup,
): string {
  const state = stateOf(result);
  const title = escaped(summary === '' ? tool : oneLine(summary, 200));
  const note = decision === null ? '' : `<p class="note">${escaped(decision)}</p>`;
  const diff = result?.diff ?? null;
  const change = diff === null ? '' : `${label('Change')}${changeBlock(diff)}`;
  const output = result === null || (diff !== null && result.success) ? '' : `${label('Result')}${pre(result.output)}`;
  const given = argumentBlock(args, diff !== null, markup);
  const shown = markup.attached(result?.attachments ?? []);
  const parts = [note, given, change, output, shown].join('');
  return `<details><summary><code>${title}</code>${state}</summary>${parts}</details>`;
}

function stateOf(result: CallResult | null): string {
  if (result === null) return '<span class="state failed">no result</span>';
  const [kind, sign] = result.success ? ['ok', '✔'] : ['failed', '✘'];
  const summary = escaped(oneLine(result.summary, 60));
  return `<span class="state ${kind}">${sign} ${summary}</span><span class="state">${result.durationMs} ms</span>`;
}

/** Shows a command in colours. Arguments are folded away where the change below says the same. */
function argumentBlock(args: string, told: boolean, markup: Markup): string {
  const parsed = parsedArguments(args);
  if (parsed === null) return `${label('Arguments')}${pre(args)}`;
  const pretty = `<pre>${markup.code(JSON.stringify(parsed, null, 2), 'json')}</pre>`;
  if (told) return `<details><summary>Arguments</summary>${pretty}</details>`;
  if (typeof parsed.command === 'string' && Object.keys(parsed).length === 1)
    return `${label('Command')}<pre>${markup.code(parsed.command, 'bash')}</pre>`;
  return `${label('Arguments')}${pretty}`;
}

function parsedArguments(args: string): Readonly<Record<string, unknown>> | null {
  try {
    const parsed: unknown = JSON.parse(args);
    return isRecord(parsed) ? parsed : null;
  } catch {
    return null;
  }
}

function changeBlock(diff: string): string {
  const places = placesOf(diff.split('\n'));
  if (places.length === 0) return pre(diff);
  const kinds = { '+': ' class="added"', '-': ' class="removed"', ' ': '' } as const;
  const shown = places.map((place) =>
    place.map(({ sign, number, text }) => `<div${kinds[sign]}><i>${number}</i>${sign} ${escaped(text)}</div>`).join(''),
  );
  return `<div class="change">${shown.join('<div class="gap">…</div>')}</div>`;
}

function label(text: string): string {
  return `<p class="label">${text}</p>`;
}

function pre(text: string): string {
  return `<pre>${escaped(text)}</pre>`;
}

/** Replaces hidden characters, and those that HTML does not know, with U+FFFD. */
function visible(text: string): string {
  return replaceDeceptive(text.toWellFormed().replace(/\r\n?/g, '\n'), () => '\ufffd');
}

/** Escapes for text and for quoted attributes. */
export function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return visible(text).replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

import { entriesOf, type Entry } from './export-entries.js';
import type { ExportedSession } from './export-jsonl.js';
import { localTime, oneLine } from './record-opening.js';

const style = `
:root{color-scheme:light dark;--ink:#1c1e21;--dim:#6b7280;--page:#fbfbfa;--card:#fff;--line:#e4e4e0;--accent:#3b5bdb;--good:#2b8a3e;--bad:#c92a2a;--add:#e6f6ea;--del:#fdecec}
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e3;--dim:#9aa0a6;--page:#16171a;--card:#1e2024;--line:#2f3237;--accent:#91a7ff;--good:#69db7c;--bad:#ff8787;--add:#17331f;--del:#3c1d1f}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:54rem;margin:0 auto;padding:2rem 1.25rem 4rem}h1{font-size:1.5rem;line-height:1.25;margin:0 0 .5rem}
header{border-bottom:1px solid var(--line);padding-bottom:1rem;margin-bottom:1.5rem}header p{margin:.1rem 0;color:var(--dim);font-size:.875rem}
code,pre{font:.8125rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}pre{margin:.5rem 0;padding:.75rem;overflow:auto;max-height:32rem;background:var(--page);border:1px solid var(--line);border-radius:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}
.entry{margin:1rem 0;position:relative}.text{white-space:pre-wrap;overflow-wrap:anywhere}.user{background:var(--card);border:1px solid var(--line);border-left:3px solid var(--accent);border-radius:.5rem;padding:.75rem 1rem;font-weight:500}
.text code{padding:.1em .3em;background:var(--card);border:1px solid var(--line);border-radius:.25rem}.is-call+.is-call{margin-top:-.5rem}.is-system summary{color:var(--dim);font-size:.875rem}
.note,.event{color:var(--dim);font-size:.875rem}details{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.4rem .9rem}details+details{margin-top:.4rem}
summary{cursor:pointer;display:flex;gap:.6rem;align-items:baseline;list-style:none}summary::-webkit-details-marker{display:none}summary::before{content:"▸";color:var(--dim)}details[open]>summary::before{content:"▾"}
summary code{flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.state{color:var(--dim);font-size:.8125rem;white-space:nowrap}.ok{color:var(--good)}.failed{color:var(--bad)}
h2{font-size:.75rem;text-transform:uppercase;letter-spacing:.06em;color:var(--dim);margin:.75rem 0 0}ins,del{display:block;text-decoration:none}ins{background:var(--add)}del{background:var(--del)}
.number{position:absolute;left:-3.2rem;color:var(--dim);font-size:.75rem;text-decoration:none}@media(max-width:64rem){.number{display:none}}@media print{details>*{display:block}pre{max-height:none}}`;

/** A session as one page that needs nothing else: no scripts, no pictures, nothing from the network (its own policy forbids it). Everything
 *  recorded is escaped. Calls and the system prompt fold. */
export function toHtml({ row, events }: ExportedSession): string {
  const entries = entriesOf(events);
  const calls = entries.filter((entry) => entry.type === 'call');
  const failed = calls.filter((entry) => entry.result?.success === false).length;
  const title = escaped(oneLine(row.title ?? events.find((event) => event.kind === 'user')?.content ?? row.id, 100));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><title>${title}</title><style>${style}</style></head>
<body><main><header><h1>${title}</h1><p>${escaped(`${row.provider ?? '?'}/${row.model ?? '?'}`)} · ${localTime(row.createdAt)} – ${localTime(row.updatedAt)} · ${calls.length} tool call${calls.length === 1 ? '' : 's'}, ${failed} failed</p>
<p><code>${escaped(row.cwd)}</code> · <code>${escaped(row.id)}</code></p></header>
${entries.map(block).join('\n')}
</main></body></html>
`;
}

function block(entry: Entry): string {
  return `<section class="entry is-${entry.type}" id="e${entry.seq}"><a class="number" href="#e${entry.seq}">${entry.seq}</a>${inner(entry)}</section>`;
}

function inner(entry: Entry): string {
  switch (entry.type) {
    case 'system': return `<details><summary>System prompt</summary>${pre(entry.text)}</details>`;
    case 'user': return `<div class="user text">${escaped(entry.text)}</div>`;
    case 'note': return `<div class="note text">${escaped(entry.text)}</div>`;
    case 'assistant': return prose(entry.text);
    case 'call': return callBlock(entry);
    case 'shell': return `<details open><summary><code>!! ${escaped(entry.command)}</code></summary>${pre(entry.output)}</details>`;
    case 'event': return `<div class="event">${escaped(entry.kind)}: ${escaped(entry.text)}</div>`;
    default: return entry satisfies never;
  }
}

function callBlock({ summary, arguments: args, result, decision, tool }: Extract<Entry, { type: 'call' }>): string {
  const state = result === null ? '<span class="state failed">no result</span>'
    : `<span class="state ${result.success ? 'ok' : 'failed'}">${result.success ? '✔' : '✘'} ${escaped(oneLine(result.summary, 60))}</span><span class="state">${result.durationMs} ms</span>`;
  const output = result === null ? '' : `<h2>Result</h2>${pre(result.output)}${result.diff === null ? '' : `<h2>Change</h2><pre>${diff(result.diff)}</pre>`}`;
  return `<details><summary><code>${escaped(summary === '' ? tool : oneLine(summary, 200))}</code>${state}</summary>${decision === null ? '' : `<p class="note">${escaped(decision)}</p>`}<h2>Arguments</h2>${pre(pretty(args))}${output}</details>`;
}

/** Text as it is, with what stands between fences as code. */
function prose(text: string): string {
  return text.split(/^(```[^\n]*\n[\s\S]*?^```[ \t]*)$/m).map((part) => {
    if (!part.startsWith('```')) return part.trim() === '' ? '' : `<div class="text">${marked(escaped(part.trim()))}</div>`;
    return pre(part.slice(part.indexOf('\n') + 1, part.lastIndexOf('```')));
  }).join('');
}

/** Code and strong words within a line of escaped text, as they are written in Markdown. */
function marked(html: string): string {
  return html.split(/(`[^`\n]+`)/).map((part, index) => (index % 2 === 1 ? `<code>${part.slice(1, -1)}</code>` : part.replace(/\*\*(?=\S)([^*\n]+?\S|\S)\*\*/g, '<strong>$1</strong>'))).join('');
}

function diff(text: string): string {
  return text.split('\n').map((line) => {
    if (line.startsWith('+')) return `<ins>${escaped(line)}</ins>`;
    return line.startsWith('-') ? `<del>${escaped(line)}</del>` : `${escaped(line)}\n`;
  }).join('');
}

function pretty(args: string): string {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args;
  }
}

function pre(text: string): string {
  return `<pre>${escaped(text)}</pre>`;
}

/** Fit for text and for quoted attributes; control characters that HTML does not know become U+FFFD, those that turn the direction of text too. */
function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
  return text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '\ufffd').replace(/[&<>"']/g, (char) => entities[char] ?? char);
}

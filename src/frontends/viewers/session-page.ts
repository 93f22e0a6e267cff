import { counted } from '../../kernel/tools/define-tool.js';
import { findScript, pageStyle } from '../../ui/page-look.js';
import { entryBlock, escaped, markupFor, policyHash } from '../../ui/export-html.js';
import { entriesOf, type ExportEntry } from '../../ui/export-entries.js';
import type { ExportedSession } from '../../kernel/console/stored-session.js';
import { distinctTitles, localTime, oneLine } from '../../kernel/console/line-output.js';
import type { Event } from '../../kernel/core/event.js';
import type { Blob, SearchHit, SessionRow, SessionSummary } from '../../kernel/core/store.js';
import { formatCost } from '../../ui/item-lines.js';
import type { FollowerApproval } from '../../app/live/messages.js';

const style = `${pageStyle}
.list {
  list-style: none;
  padding: 0;
}
.list li {
  border-bottom: 1px solid var(--line);
  padding: 0.6rem 0;
}
.list a {
  color: inherit;
  text-decoration: none;
  font-weight: 500;
}
.list a:hover {
  text-decoration: underline;
}
.list p {
  margin: 0.1rem 0;
  color: var(--dim);
  font-size: 0.875rem;
  overflow-wrap: anywhere;
}
mark {
  background: var(--found);
  color: inherit;
}
.back {
  color: var(--dim);
  font-size: 0.875rem;
}
.entry,
#live,
#output {
  isolation: isolate;
}
#asks {
  position: relative;
  z-index: 1;
  background: var(--page);
}
#live {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
#live:empty,
#output:empty,
#asks:empty {
  display: none;
}
#output {
  color: var(--dim);
  max-height: 12rem;
}
.ask {
  background: var(--card);
  border: 1px solid var(--line);
  border-left: 3px solid var(--bad);
  border-radius: 0.5rem;
  padding: 0.75rem 1rem;
  margin: 1rem 0;
}
.ask button {
  font: inherit;
  font-size: 0.875rem;
  padding: 0.35rem 0.8rem;
  margin: 0.25rem 0.5rem 0 0;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
  cursor: pointer;
}
#state {
  color: var(--dim);
  font-size: 0.8125rem;
}`;

/** Puts updates of a session into its page. The server makes and escapes the content; the policy of the page prevents
 * scripts in it. */
const liveScript = `
const box = document.querySelector('#entries');
const live = document.querySelector('#live');
const output = document.querySelector('#output');
const asks = document.querySelector('#asks');
const state = document.querySelector('#state');
const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
const keepEnd = (change) => {
  const stay = atEnd();
  change();
  if (stay) scrollTo(0, document.documentElement.scrollHeight);
};
const source = new EventSource(location.pathname + '/events?after=' + box.dataset.last);
const on = (name, take) => source.addEventListener(name, (event) => keepEnd(() => take(JSON.parse(event.data))));
on('entries', (entries) => {
  for (const { seq, html } of entries) {
    const part = document.createElement('template');
    part.innerHTML = html;
    const old = document.getElementById('e' + seq);
    if (old) {
      const open = [...old.querySelectorAll('details')].map((each) => each.open);
      [...part.content.querySelectorAll('details')].forEach((each, index) => {
        each.open = open[index] ?? each.open;
      });
      old.replaceWith(part.content);
      continue;
    }
    let before = box.lastElementChild;
    while (before && Number(before.id.slice(1)) > seq) before = before.previousElementSibling;
    if (before) before.after(part.content);
    else if (!box.firstElementChild) box.append(part.content);
  }
});
on('text', (text) => {
  live.textContent = text;
});
on('output', (text) => {
  output.textContent = text;
});
on('state', (text) => {
  state.textContent = text;
});
on('asks', (html) => {
  asks.innerHTML = html;
});
source.onerror = () => {
  state.textContent = 'not connected';
};
asks.addEventListener('click', async (event) => {
  const { id, answer, shown } = event.target.dataset;
  if (!answer) return;
  for (const button of asks.querySelectorAll('button')) button.disabled = true;
  const reply = await fetch(location.pathname + '/answer', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id, answer, shown }),
  });
  if (!reply.ok) {
    state.textContent = await reply.text();
    for (const button of asks.querySelectorAll('button')) button.disabled = false;
  }
});`;

/** Returns the Content-Security-Policy of our pages: they load nothing from elsewhere, use only our scripts and styles,
 * and cannot be framed. `forms`: where a form may go; the page of a session has none. */
function policyFor(forms: "'none'" | "'self'"): string {
  return (
    `default-src 'none'; img-src data:; style-src ${policyHash(style)}; ` +
    `script-src ${policyHash(findScript)} ${policyHash(liveScript)}; ` +
    `connect-src 'self'; form-action ${forms}; base-uri 'none'; frame-ancestors 'none'`
  );
}

export const pagePolicy = policyFor("'none'");
/** For the pages with a search form. */
export const searchPolicy = policyFor("'self'");

function page(title: string, body: string, after: readonly string[] = []): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer"><title>${escaped(title)}</title><style>${style}</style></head>
<body><main>${body}</main>${after.map((script) => `<script>${script}</script>`).join('')}</body></html>
`;
}

function searchForm(query: string): string {
  const value = query === '' ? '' : ` value="${escaped(query)}"`;
  return `<form class="tools" action="./" method="get">
<input type="search" name="q"${value} placeholder="Search all sessions" aria-label="Search">
<button>Search</button></form>`;
}

/** The name of each session by its id. */
function namesOf(rows: readonly SessionSummary[]): ReadonlyMap<string, string> {
  const titles = distinctTitles(rows);
  return new Map(rows.map(({ id }, index) => [id, titles[index] || id]));
}

/** The sessions, newest first. */
export function listPage(rows: readonly SessionSummary[], total: number): string {
  const names = namesOf(rows);
  const items = rows.map((row) => {
    const name = names.get(row.id) ?? row.id;
    const cost = row.costUsd === null ? '' : ` · ${formatCost(row.costUsd)}`;
    const facts = `${modelOf(row)} · ${localTime(row.updatedAt)} · ${counted(row.events, 'event')}${cost}`;
    return `<li><a href="s/${escaped(row.id)}">${escaped(name)}</a><p>${escaped(facts)}</p>
<p><code>${escaped(row.cwd)}</code></p></li>`;
  });
  const shown =
    rows.length < total ? `<p class="note">The newest ${rows.length} of ${total}. Search to find others.</p>` : '';
  const list =
    items.length === 0 ? '<p class="note">There are no sessions yet.</p>' : `<ul class="list">${items.join('')}</ul>`;
  return page('Sessions', `<header><h1>Sessions</h1></header>${searchForm('')}${list}${shown}`);
}

/** Returns the page of search hits. `rows`: sessions whose first words are known. */
export function foundPage(query: string, hits: readonly SearchHit[], rows: readonly SessionSummary[]): string {
  const names = namesOf(rows);
  const items = hits.map((hit) => {
    const name = names.get(hit.sessionId) ?? oneLine(hit.title ?? hit.sessionId, 120);
    const facts = `${hit.kind}, event ${hit.seq} · ${localTime(hit.createdAt)} · ${hit.cwd}`;
    return `<li><a href="s/${escaped(hit.sessionId)}?from=${hit.seq}#e${hit.seq}">${escaped(name)}</a>
<p>${marked(hit)}</p><p>${escaped(facts)}</p></li>`;
  });
  const list =
    items.length === 0
      ? '<p class="note">No session contains all of these words.</p>'
      : `<ul class="list">${items.join('')}</ul>`;
  return page(
    `Search: ${query}`,
    `<header><a class="back" href="./">All sessions</a><h1>Search</h1></header>${searchForm(query)}${list}`,
  );
}

function marked({ snippet, matches }: SearchHit): string {
  let at = 0;
  let html = '';
  for (const [start, end] of matches) {
    html += `${escaped(snippet.slice(at, start))}<mark>${escaped(snippet.slice(start, end))}</mark>`;
    at = end;
  }
  return html + escaped(snippet.slice(at));
}

/** The most entries of a session that are shown at once. */
const mostEntries = 500;

function modelOf({ provider, model }: Pick<SessionRow, 'provider' | 'model'>): string {
  return `${provider ?? '?'}/${model ?? '?'}`;
}

function titleOf({ title, id }: SessionRow, events: readonly Event[]): string {
  return oneLine(title ?? events.find(({ kind }) => kind === 'user')?.content ?? id, 100);
}

/** The entries that a page shows: up to `mostEntries` from event `from`, or the newest. */
function shownOf(
  all: readonly ExportEntry[],
  from: number | null,
): { readonly start: number; readonly entries: readonly ExportEntry[] } {
  const found = from === null ? all.length - mostEntries : all.findIndex(({ seq }) => seq >= from) - 5;
  const start = Math.max(0, found);
  return { start, entries: all.slice(start, start + mostEntries) };
}

/** Returns the page of a session, which is updated live. `from`: the first event shown; null for the newest ones.
 * `blobs`: its images and documents. */
export async function sessionPage({ row, events, blobs = [] }: ExportedSession, from: number | null): Promise<string> {
  const all = entriesOf(events);
  const { start, entries } = shownOf(all, from);
  const markup = await markupFor(blobs);
  const title = titleOf(row, events);
  const earlier = all[Math.max(0, start - mostEntries)]?.seq ?? 1;
  const before = start === 0 ? '' : `<p class="note"><a href="?from=${earlier}">${start} earlier entries</a></p>`;
  const isEnd = start + mostEntries >= all.length;
  const behind = isEnd ? '' : '<p class="note"><a href="?">The newest entries</a></p>';
  const facts = `${modelOf(row)} · started ${localTime(row.createdAt)}`;
  return page(
    title,
    `<header><a class="back" href="../">All sessions</a><h1>${escaped(title)}</h1>
<p>${escaped(facts)} · <span id="state"></span></p>
<p><code>${escaped(row.cwd)}</code> · <code>${escaped(row.id)}</code></p></header>
<div class="tools"><input id="find" type="search" placeholder="Find in this session ( / )" aria-label="Find">
<output id="count"></output>
<button id="unfold" type="button">Unfold all</button><button id="fold" type="button">Fold all</button></div>
${before}<div id="entries" data-last="${events.at(-1)?.seq ?? 0}">
${entries.map((entry) => entryBlock(entry, markup, isEnd)).join('\n')}
</div>${behind}<pre id="output"></pre><div id="live"></div><div id="asks"></div>`,
    isEnd ? [findScript, liveScript] : [findScript],
  );
}

/** The entries of these events as parts of a page. A call comes with all its events so far. */
export async function entryParts(
  events: readonly Event[],
  blobs: readonly Blob[],
): Promise<readonly { readonly seq: number; readonly html: string }[]> {
  const entries = entriesOf(events);
  const markup = await markupFor(blobs);
  return entries.map((entry) => ({ seq: entry.seq, html: entryBlock(entry, markup, true) }));
}

/** The open questions, with a button for each answer. */
export function askBlocks(questions: readonly FollowerApproval[]): string {
  return questions.map(askBlock).join('');
}

function askBlock({ id, head, rows, reasons, targets, rules, shown }: FollowerApproval): string {
  const button = (answer: string, text: string): string =>
    `<button type="button" data-id="${escaped(id)}" data-shown="${shown}" data-answer="${answer}">${escaped(text)}</button>`;
  const inSession = `Yes, and don't ask again for ${rules ?? 'this exact call'} in this session`;
  const why = [...reasons.map((reason) => `! ${reason}`), ...targets.map((target) => `→ ${target}`)];
  return `<section class="ask"><strong>${escaped(head)}</strong>
<pre>${escaped(rows.join('\n'))}</pre>${why.map((line) => `<p class="note">${escaped(line)}</p>`).join('')}
${button('once', 'Yes')}${button('session', inSession)}${button('deny', 'No')}</section>`;
}

import { counted } from '../../kernel/tools/define-tool.js';
import { escaped, findScript, policyHash } from '../../kernel/console/page-look.js';
import { entryBlock, markupFor } from '../../ui/export-html.js';
import { entriesOf, type ExportEntry } from '../../ui/export-entries.js';
import type { ExportedSession } from '../../kernel/console/stored-session.js';
import { distinctTitles, localTime, oneLine } from '../../kernel/console/line-output.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { Blob, SearchHit, SessionRow, SessionSummary } from '../../kernel/core/store.js';
import { formatCost } from '../../ui/item-lines.js';
import type { FollowerApproval, FollowerField, FollowerForm, OwnerFacts } from '../../app/live/messages.js';
import { listScript, liveScript } from './page-scripts.js';
import { viewerStyle as style } from './viewer-style.js';

/** Returns the Content-Security-Policy of our pages: they load nothing from elsewhere, use only our scripts and styles,
 * and cannot be framed. `forms`: where a form may go; the page of a session has none. */
function policyFor(forms: "'none'" | "'self'"): string {
  return (
    `default-src 'none'; img-src data:; style-src ${policyHash(style)}; ` +
    `script-src ${[findScript, listScript, liveScript].map(policyHash).join(' ')}; ` +
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

interface ListedSessions {
  readonly rows: readonly SessionSummary[];
  readonly running: readonly OwnerFacts[];
  readonly total: number;
  /** The directory of new sessions. */
  readonly cwd: string;
}

/** The sessions: those that run first, then the newest. */
export function listPage({ rows, running, total, cwd }: ListedSessions): string {
  const names = namesOf(rows);
  const facts = new Map(running.map((owner) => [owner.session_id, owner]));
  const items = rows
    .toSorted((one, other) => Number(facts.has(other.id)) - Number(facts.has(one.id)))
    .map((row) => listItem(row, names.get(row.id) ?? row.id, facts.get(row.id)));
  const shown =
    rows.length < total ? `<p class="note">The newest ${rows.length} of ${total}. Search to find others.</p>` : '';
  const list =
    items.length === 0 ? '<p class="note">There are no sessions yet.</p>' : `<ul class="list">${items.join('')}</ul>`;
  const body = `<header><h1>Sessions</h1></header>${newSession(cwd, rows)}${searchForm('')}
<div id="list">${list}${shown}</div>`;
  return page('Sessions', body, [listScript]);
}

/** The states of a session, as the list shows them. */
const stateNames: Readonly<Record<OwnerFacts['state'], string>> = {
  working: 'working',
  waiting_for_approval: 'waiting for approval',
  waiting_for_limit: 'waiting for a usage limit',
  idle: 'idle',
};

function listItem(row: SessionSummary, name: string, owner: OwnerFacts | undefined): string {
  const costUsd = owner && owner.cost_usd > 0 ? owner.cost_usd : row.costUsd;
  const cost = costUsd === null ? '' : ` · ${formatCost(costUsd)}`;
  const model = owner?.model ?? modelOf(row);
  const facts = `${model} · ${localTime(row.updatedAt)} · ${counted(row.events, 'event')}${cost}`;
  const badge = owner ? `<span class="badge is-${owner.state}">${stateNames[owner.state]}</span>` : '';
  return `<li><a href="s/${escaped(row.id)}">${escaped(name)}</a>${badge}<p>${escaped(facts)}</p>
<p><code>${escaped(row.cwd)}</code></p></li>`;
}

const attachButton = `<label class="attach">Attach<input type="file" multiple aria-label="Attach files"></label>`;

/** A session is started where `agent serve` was, or in a directory of another session. */
function newSession(cwd: string, rows: readonly SessionSummary[]): string {
  const places = [...new Set([cwd, ...rows.map((row) => row.cwd)])].slice(0, 20);
  const models = [...new Set(rows.flatMap((row) => (row.model === null ? [] : [modelOf(row)])))].slice(0, 20);
  const options = (texts: readonly string[]): string =>
    texts.map((text) => `<option value="${escaped(text)}"></option>`).join('');
  return `<details id="new"><summary>New session</summary><form class="write" autocomplete="off">
<textarea name="prompt" rows="3" placeholder="What is to be done" aria-label="First message" required></textarea>
<label class="field">Directory<input type="text" name="cwd" list="places" placeholder="${escaped(cwd)}"></label>
<label class="field">Model<input type="text" name="model" list="models" placeholder="as configured"></label>
<label class="field">Title<input type="text" name="title" placeholder="none" maxlength="200"></label>
<datalist id="places">${options(places)}</datalist><datalist id="models">${options(models)}</datalist>
<div class="files"></div>${attachButton}<output class="said"></output><button class="main">Start</button></form></details>`;
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

/** The part below the entries of a page that follows a session. */
const following = `<pre id="output"></pre><div id="live"></div><div id="asks" aria-live="polite"></div>
<div id="foot"><ul id="queued"></ul><form class="write" autocomplete="off">
<textarea name="text" rows="2" placeholder="Message" aria-label="Message" title="Enter sends. Shift+Enter: a new line. Esc interrupts."></textarea>
<div class="files"></div>${attachButton}<output class="said"></output>
<button id="interrupt" type="button" hidden>Interrupt</button><button class="main">Send</button></form></div>`;

/** Returns the page of a session, which is updated live. `from`: the first event shown; null for the newest ones.
 * `blobs`: its images and documents. */
export async function sessionPage({ row, events, blobs = [] }: ExportedSession, from: number | null): Promise<string> {
  const all = entriesOf(events);
  const { start, entries } = shownOf(all, from);
  const markup = await markupFor(new Map(blobs.map(({ sha256, bytes }) => [sha256, bytes])));
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
</div>${behind}${isEnd ? following : ''}`,
    isEnd ? [findScript, liveScript] : [findScript],
  );
}

/** The entries of these events as parts of a page. A call comes with all its events so far. */
export async function entryParts(
  events: readonly Event[],
  blobs: readonly Blob[],
): Promise<readonly { readonly seq: number; readonly html: string; readonly ref?: string }[]> {
  const entries = entriesOf(events);
  const markup = await markupFor(new Map(blobs.map(({ sha256, bytes }) => [sha256, bytes])));
  const refs = new Map(events.flatMap((event) => refOf(event) ?? []));
  return entries.map((entry) => {
    const ref = refs.get(entry.seq);
    return { seq: entry.seq, html: entryBlock(entry, markup, true), ...(ref === undefined ? {} : { ref }) };
  });
}

/** The reference of a message that another process sent. */
function refOf(event: Event): readonly [readonly [seq: number, ref: string]] | null {
  const known = event.kind === 'user' ? knownEvent(event) : null;
  const ref = known?.kind === 'user' ? known.data?.message_id : undefined;
  return ref === undefined ? null : [[event.seq, ref]];
}

/** The open questions, with a button for each answer. */
export function askBlocks(questions: readonly FollowerApproval[]): string {
  return questions.map(askBlock).join('');
}

function askBlock({ id, head, rows, reasons, targets, rules, shown }: FollowerApproval): string {
  const button = (answer: string, text: string): string =>
    `<button type="button" data-answer="${answer}">${escaped(text)}</button>`;
  const inSession = `Yes, and don't ask again for ${rules ?? 'this exact call'} in this session`;
  const why = [...reasons.map((reason) => `! ${reason}`), ...targets.map((target) => `→ ${target}`)];
  return `<section class="ask" data-id="${escaped(id)}" data-shown="${escaped(shown)}"><strong>${escaped(head)}</strong>
<pre>${escaped(rows.join('\n'))}</pre>${why.map((line) => `<p class="note">${escaped(line)}</p>`).join('')}
${button('once', 'Yes')}${button('session', inSession)}${button('deny', 'No')}
<input type="text" placeholder="With “No”: what the agent should do instead" aria-label="Reason"></section>`;
}

/** The open questions of the model and of servers, as forms. */
export function formBlocks(forms: readonly FollowerForm[]): string {
  return forms.map(formBlock).join('');
}

function formBlock({ id, from, title, message, fields, shown }: FollowerForm): string {
  const asker = title ?? `Questions of ${from}`;
  const about = message === '' ? '' : `<pre>${escaped(message)}</pre>`;
  return `<section class="ask" data-form="${escaped(id)}" data-shown="${escaped(shown)}"><strong>${escaped(asker)}</strong>
${about}${fields.map((field) => fieldBlock(field, `${id} ${field.name}`)).join('')}
<button type="button" data-answer="answer">Answer</button><button type="button" data-answer="decline">Decline</button></section>`;
}

/** `group`: the name that the options share. */
function fieldBlock(field: FollowerField, group: string): string {
  const { name, question, label, kind, several } = field;
  const legend = [label ?? '', question].filter((part) => part !== '').map(escaped);
  const facts = `data-name="${escaped(name)}" data-kind="${kind}"${several ? ' data-several="1"' : ''}`;
  return `<fieldset ${facts}><legend>${legend.join(': ')}</legend>${fieldInputs(field, escaped(group))}</fieldset>`;
}

function fieldInputs({ kind, options, several, free, preset, question }: FollowerField, group: string): string {
  const choice = (value: string, label: string, about: string | null): string => {
    const type = several ? 'checkbox' : 'radio';
    const isPreset = String(preset) === value;
    return `<label><input type="${type}" name="${group}" value="${escaped(value)}"${isPreset ? ' checked' : ''}> ${escaped(label)}${about === null ? '' : ` <span class="note">${escaped(about)}</span>`}</label>`;
  };
  const typed = (type: 'text' | 'number', placeholder: string, value: string): string =>
    `<input type="${type}" class="own" value="${escaped(value)}" placeholder="${placeholder}" aria-label="${escaped(question)}"${kind === 'number' ? ' step="any"' : ''}>`;
  switch (kind) {
    case 'boolean':
      return choice('true', 'Yes', null) + choice('false', 'No', null);
    case 'choice':
      return (
        options.map(({ value, label, about }) => choice(value, label, about)).join('') +
        (free ? typed('text', 'Other words', '') : '')
      );
    case 'text':
      return typed('text', 'Answer', preset === null ? '' : String(preset));
    case 'number':
    case 'integer':
      return typed('number', 'Number', preset === null ? '' : String(preset));
    default:
      return kind satisfies never;
  }
}

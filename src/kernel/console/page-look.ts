import { createHash } from 'node:crypto';
import { replaceDeceptive } from '../core/text.js';

/** The colours and shapes of a page with a session on it: one that is exported, or shown to a browser. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --ink: #1c1e21;
  --dim: #6b7280;
  --page: #fbfbfa;
  --card: #fff;
  --band: #eceef5;
  --line: #e4e4e0;
  --accent: #3b5bdb;
  --good: #2b8a3e;
  --bad: #c92a2a;
  --add: #e6f6ea;
  --del: #fdecec;
  --add-word: #abf2bc;
  --del-word: #ffc1ba;
  --keyword: #8250df;
  --string: #0a6b3d;
  --number: #a04a00;
  --name: #0b5cad;
  --found: #ffe58f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e6e3;
    --dim: #9aa0a6;
    --page: #16171a;
    --card: #1e2024;
    --band: #2a2d3a;
    --line: #2f3237;
    --accent: #91a7ff;
    --good: #69db7c;
    --bad: #ff8787;
    --add: #17331f;
    --del: #3c1d1f;
    --add-word: #20623a;
    --del-word: #7c282e;
    --keyword: #d2a8ff;
    --string: #8ddb8c;
    --number: #f0a868;
    --name: #79c0ff;
    --found: #6b5800;
  }
}
* {
  box-sizing: border-box;
}
body {
  margin: 0;
  background: var(--page);
  color: var(--ink);
  font:
    16px/1.55 system-ui,
    sans-serif;
}
main {
  max-width: 54rem;
  margin: 0 auto;
  padding: 2rem 1.25rem 4rem;
}
h1 {
  font-size: 1.5rem;
  line-height: 1.25;
  margin: 0 0 0.5rem;
}
header {
  border-bottom: 1px solid var(--line);
  padding-bottom: 1rem;
  margin-bottom: 1.5rem;
}
header p {
  margin: 0.1rem 0;
  color: var(--dim);
  font-size: 0.875rem;
}
.tools {
  position: sticky;
  top: 0;
  z-index: 1;
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem;
  align-items: center;
  padding: 0.5rem 0;
  background: var(--page);
}
.tools input {
  flex: 1 1 8rem;
  min-width: 0;
}
.tools input,
.tools button {
  font: inherit;
  font-size: 0.875rem;
  padding: 0.3rem 0.6rem;
  color: inherit;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
.tools output {
  color: var(--dim);
  font-size: 0.8125rem;
}
.tools output:empty {
  display: none;
}
code,
pre,
.change {
  font:
    0.8125rem/1.5 ui-monospace,
    SFMono-Regular,
    Menlo,
    Consolas,
    monospace;
}
pre,
.change {
  margin: 0.5rem 0;
  padding: 0.75rem;
  overflow: auto;
  max-height: 32rem;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 0.5rem;
}
pre {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.entry {
  margin: 1rem 0;
  position: relative;
}
.plain {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.user {
  background: var(--band);
  border-radius: 0.5rem;
  padding: 0.75rem 1rem;
  font-weight: 500;
}
.text {
  overflow-wrap: anywhere;
}
.text > :first-child {
  margin-top: 0;
}
.text > :last-child {
  margin-bottom: 0;
}
.text code {
  padding: 0.1em 0.3em;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.25rem;
}
.text pre code {
  padding: 0;
  border: 0;
  background: none;
}
.text table {
  border-collapse: collapse;
  display: block;
  overflow: auto;
}
.text th,
.text td {
  border: 1px solid var(--line);
  padding: 0.25rem 0.6rem;
  text-align: left;
  vertical-align: top;
  overflow-wrap: normal;
}
.text h2,
.text h3,
.text h4,
.text h5,
.text h6 {
  line-height: 1.3;
  margin: 1.2rem 0 0.4rem;
  font-size: 1.1rem;
}
.text blockquote {
  margin: 0.5rem 0;
  padding-left: 1rem;
  border-left: 3px solid var(--line);
  color: var(--dim);
}
.text a {
  color: var(--accent);
}
.is-call + .is-call {
  margin-top: -0.5rem;
}
.is-system summary {
  color: var(--dim);
  font-size: 0.875rem;
}
.note,
.event {
  color: var(--dim);
  font-size: 0.875rem;
}
details {
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.5rem;
  padding: 0.4rem 0.9rem;
}
details + details {
  margin-top: 0.4rem;
}
details details summary {
  color: var(--dim);
  font-size: 0.8125rem;
}
summary {
  cursor: pointer;
  display: flex;
  gap: 0.6rem;
  align-items: baseline;
  list-style: none;
}
summary::-webkit-details-marker {
  display: none;
}
summary::before {
  content: '▸';
  color: var(--dim);
}
details[open] > summary::before {
  content: '▾';
}
summary code {
  flex: 1;
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
.state {
  color: var(--dim);
  font-size: 0.8125rem;
  white-space: nowrap;
}
.ok {
  color: var(--good);
}
.failed {
  color: var(--bad);
}
.more,
.result {
  color: var(--dim);
}
details[open] > summary code {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.label {
  font-size: 0.75rem;
  text-transform: uppercase;
  letter-spacing: 0.06em;
  color: var(--dim);
  margin: 0.75rem 0 0;
}
.change div {
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}
.change i {
  display: inline-block;
  width: 3.5em;
  color: var(--dim);
  font-style: normal;
  user-select: none;
}
.change .added {
  background: var(--add);
}
.change .removed {
  background: var(--del);
}
.change b {
  font-weight: inherit;
}
.change .added b {
  background: var(--add-word);
}
.change .removed b {
  background: var(--del-word);
}
.change .gap {
  color: var(--dim);
}
.hljs-keyword,
.hljs-tag,
.hljs-selector-tag,
.hljs-built_in {
  color: var(--keyword);
}
.hljs-string,
.hljs-regexp,
.hljs-symbol {
  color: var(--string);
}
.hljs-number,
.hljs-literal {
  color: var(--number);
}
.hljs-title,
.hljs-name,
.hljs-attr,
.hljs-attribute,
.hljs-variable,
.hljs-type {
  color: var(--name);
}
.hljs-comment,
.hljs-meta,
.hljs-doctag {
  color: var(--dim);
  font-style: italic;
}
.hljs-addition {
  background: var(--add);
}
.hljs-deletion {
  background: var(--del);
}
::highlight(found) {
  background: var(--found);
}
[hidden] {
  display: none;
}
img {
  display: block;
  max-width: 100%;
  max-height: 32rem;
  margin: 0.5rem 0;
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
.number {
  position: absolute;
  left: -3.2rem;
  color: var(--dim);
  font-size: 0.75rem;
  text-decoration: none;
}
@media (max-width: 64rem) {
  .number {
    display: none;
  }
}
@media (max-width: 36rem) {
  summary {
    flex-wrap: wrap;
    row-gap: 0;
  }
  summary code {
    flex-basis: 80%;
  }
  summary code + .state {
    margin-left: 1.3rem;
  }
}
@media print {
  details > * {
    display: block;
  }
  pre,
  .change {
    max-height: none;
  }
  .tools {
    display: none;
  }
}`;

/** Searches and folds entries. The policy of the page lets no other script run. */
export const findScript = `
const find = document.querySelector('#find');
const count = document.querySelector('#count');
const fold = (open) => {
  for (const part of document.querySelectorAll('details')) part.open = open;
};
document.querySelector('#unfold').onclick = () => fold(true);
document.querySelector('#fold').onclick = () => fold(false);
const mark = (query) => {
  if (!('highlights' in CSS)) return;
  CSS.highlights.delete('found');
  if (query === '') return;
  const ranges = [];
  const walk = document.createTreeWalker(document.querySelector('#entries'), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node && ranges.length < 5000; node = walk.nextNode()) {
    const text = node.data.toLowerCase();
    for (
      let at = text.indexOf(query);
      at >= 0 && at + query.length <= node.length;
      at = text.indexOf(query, at + query.length)
    ) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      ranges.push(range);
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
};
const search = () => {
  const query = find.value.trim().toLowerCase();
  let hits = 0;
  const entries = [...document.querySelectorAll('.entry')];
  for (const entry of entries) {
    const hit = query === '' || entry.textContent.toLowerCase().includes(query);
    entry.hidden = !hit;
    if (hit) hits++;
    if (hit && query !== '')
      for (const part of entry.querySelectorAll('details'))
        if (part.textContent.toLowerCase().includes(query)) part.open = true;
  }
  count.textContent = query === '' ? '' : hits + ' of ' + entries.length;
  mark(query);
};
find.addEventListener('input', search);
addEventListener('keydown', (event) => {
  if (event.key === '/' && !event.target.closest?.('input, textarea')) {
    event.preventDefault();
    find.focus();
  }
});`;

/** The name by which a policy allows exactly this script or style. */
export function policyHash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Replaces hidden characters, and those that HTML does not know, with U+FFFD. */
export function visible(text: string): string {
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

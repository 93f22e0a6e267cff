import { pageStyle } from '../../kernel/console/page-look.js';

/** The colours and shapes of the pages of `agent serve`. */
export const viewerStyle = `${pageStyle}
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
}
.ask button:disabled,
.write button:disabled {
  opacity: 0.5;
  cursor: default;
}
.ask fieldset {
  border: 0;
  margin: 0.5rem 0 0;
  padding: 0;
}
.ask legend {
  padding: 0;
  font-weight: 600;
}
.ask label {
  display: block;
  margin: 0.25rem 0 0;
}
.ask input:is([type='radio'], [type='checkbox']) {
  width: auto;
}
.ask input {
  font: inherit;
  font-size: 0.875rem;
  width: 100%;
  margin: 0.5rem 0 0;
  padding: 0.35rem 0.6rem;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
.write {
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem;
  align-items: center;
  padding: 0.75rem;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.6rem;
}
.write textarea {
  flex: 1 1 100%;
  min-height: 2.6rem;
  max-height: 40vh;
  resize: vertical;
}
.write textarea,
.write input[type='text'] {
  font: inherit;
  min-width: 0;
  padding: 0.45rem 0.6rem;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
}
.write label.field {
  flex: 1 1 12rem;
  min-width: 0;
  color: var(--dim);
  font-size: 0.8125rem;
}
.write label.field input {
  display: block;
  width: 100%;
  color: var(--ink);
}
.write button,
.write .attach {
  font: inherit;
  font-size: 0.875rem;
  padding: 0.4rem 0.9rem;
  color: inherit;
  background: var(--page);
  border: 1px solid var(--line);
  border-radius: 0.4rem;
  cursor: pointer;
}
.write .attach:focus-within {
  outline: 2px solid var(--accent);
}
.write .attach input {
  position: absolute;
  width: 1px;
  height: 1px;
  opacity: 0;
}
.write .main {
  color: var(--page);
  background: var(--accent);
  border-color: var(--accent);
}
.write .said {
  flex: 1;
  min-width: 0;
  color: var(--dim);
  font-size: 0.8125rem;
  overflow-wrap: anywhere;
}
.files {
  flex: 1 1 100%;
  display: flex;
  flex-wrap: wrap;
  gap: 0.4rem;
}
.files:empty {
  display: none;
}
.files button {
  font-size: 0.8125rem;
  padding: 0.2rem 0.6rem;
  overflow-wrap: anywhere;
}
#foot {
  position: sticky;
  bottom: 0;
  z-index: 2;
  margin-top: 1rem;
  padding: 0.5rem 0 0.75rem;
  background: var(--page);
}
#queued {
  margin: 0 0 0.4rem;
  padding: 0;
  list-style: none;
  color: var(--dim);
  font-size: 0.8125rem;
}
#queued li {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}
#new {
  margin-bottom: 1rem;
}
#new .write {
  margin: 0.6rem 0 0.4rem;
}
.badge {
  display: inline-block;
  margin-left: 0.5rem;
  padding: 0 0.5rem;
  color: var(--dim);
  border: 1px solid var(--line);
  border-radius: 1rem;
  font-size: 0.75rem;
  white-space: nowrap;
}
.badge.is-working {
  color: var(--good);
  border-color: var(--good);
}
.badge.is-waiting_for_approval,
.badge.is-waiting_for_limit {
  color: var(--bad);
  border-color: var(--bad);
}
@media (max-width: 36rem) {
  main {
    padding: 1rem 0.9rem 0;
  }
  .write label.field {
    flex-basis: 100%;
  }
}`;

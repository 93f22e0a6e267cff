/** Past inputs and the present place among them. Browsing keeps the draft. Pure. */
export interface InputHistory {
  /** Oldest first. */
  readonly entries: readonly string[];
  /** Index of what is shown; `entries.length` is the draft. */
  readonly at: number;
  readonly draft: string;
}

const mostEntries = 5_000;

export function createHistory(entries: readonly string[]): InputHistory {
  const kept = entries.filter((entry, index) => entry !== '' && entry !== entries[index - 1]).slice(-mostEntries);
  return { entries: kept, at: kept.length, draft: '' };
}

export function remember(history: InputHistory, text: string): InputHistory {
  return createHistory([...history.entries, text]);
}

/** Returns the entry before or after the shown one, and keeps `current` if that was the draft; null at either end. */
export function browse(
  history: InputHistory,
  direction: -1 | 1,
  current: string,
): { readonly history: InputHistory; readonly text: string } | null {
  const at = history.at + direction;
  if (at < 0 || at > history.entries.length) return null;
  const draft = history.at === history.entries.length ? current : history.draft;
  return { history: { ...history, at, draft }, text: history.entries[at] ?? draft };
}

/** Returns the index of the newest entry before `from` that contains `query`; -1 if there is none. Case is ignored if
 * `query` has no capitals. */
export function findEntry(history: InputHistory, query: string, from: number): number {
  const exact = query !== query.toLowerCase();
  for (let i = Math.min(from, history.entries.length) - 1; i >= 0; i--) {
    const entry = history.entries[i] ?? '';
    if ((exact ? entry : entry.toLowerCase()).includes(query)) return i;
  }
  return -1;
}

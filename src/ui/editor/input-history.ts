/** Past inputs and where in them one stands. Browsing keeps what was being written. Pure. */
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

/** The entry before or after the one shown, `current` kept where that was the draft; null at either end. */
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

/** The newest entry before index `from` that contains `query`, case ignored where `query` has no capitals; -1 where
 * there is none. */
export function findEntry(history: InputHistory, query: string, from: number): number {
  const exact = query !== query.toLowerCase();
  for (let i = Math.min(from, history.entries.length) - 1; i >= 0; i--) {
    const entry = history.entries[i] ?? '';
    if ((exact ? entry : entry.toLowerCase()).includes(query)) return i;
  }
  return -1;
}

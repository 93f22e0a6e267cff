import { isRecord, type Json } from '../core/json.js';

/** What of a response's reasoning items a person can read; empty where there is nothing, or only what is encrypted. */
export function reasoningText(items: readonly Json[]): string {
  return items
    .map(itemText)
    .filter((text) => text.trim() !== '')
    .join('\n\n');
}

/** `thinking` (Messages), `content` or else `summary` as lists of texts (Responses), `text` or `summary` (Chat
 * Completions and OpenRouter). */
function itemText(item: Json): string {
  if (!isRecord(item)) return '';
  const { thinking, text, content, summary } = item;
  for (const said of [thinking, text, content, summary]) {
    const whole = Array.isArray(said)
      ? said.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n\n')
      : said;
    if (typeof whole === 'string' && whole.trim() !== '') return whole.trim();
  }
  return '';
}

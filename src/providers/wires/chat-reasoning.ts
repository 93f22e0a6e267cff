import { isRecord, type Json } from '../../core/json.js';

type Item = Readonly<Record<string, Json>>;

/** What a Chat Completions answer says of its reasoning, as the items that are sent back. */
export interface ReasoningPieces {
  /** Takes a delta (or a whole message). Returns what of it is to be shown. */
  add(delta: Readonly<Record<string, unknown>>): string;
  /** `{type: "reasoning_content", text}` where it came as text, else the `reasoning_details` with the pieces of one
   * item joined. */
  items(): readonly Json[];
}

/** `reasoning_content` (DeepSeek, Moonshot and others), `reasoning` (Groq, Ollama) or `reasoning_details`
 * (OpenRouter). */
export function reasoningPieces(): ReasoningPieces {
  const details: Item[] = [];
  let plain = '';
  return {
    add(delta) {
      const found = Array.isArray(delta.reasoning_details)
        ? ((delta.reasoning_details as readonly unknown[]).filter(isRecord) as readonly Item[])
        : [];
      for (const detail of found) addDetail(details, detail);
      const said = text(delta.reasoning_content) || text(delta.reasoning);
      plain += said;
      return said === '' ? found.map((detail) => text(detail.text) || text(detail.summary)).join('') : said;
    },
    items() {
      if (details.length > 0) return details;
      return plain === '' ? [] : [{ type: 'reasoning_content', text: plain }];
    },
  };
}

/** The text of one item comes in pieces with the same `index`; its signature may come with any of them. Encrypted items
 * come whole. */
function addDetail(details: Item[], piece: Item): void {
  const last = details.at(-1);
  const field = piece.type === 'reasoning.text' ? 'text' : 'summary';
  if (
    last === undefined ||
    last.type !== piece.type ||
    last.index !== piece.index ||
    piece.type === 'reasoning.encrypted'
  ) {
    details.push(piece);
    return;
  }
  const given = Object.fromEntries(Object.entries(piece).filter(([, value]) => value !== null && value !== ''));
  details[details.length - 1] = { ...last, ...given, [field]: text(last[field]) + text(piece[field]) };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

import { type TurnFields, fieldsOf, numberIn, nonEmptyText, type Turn } from './neutral-turns.js';

/** The parts of a content of Gemini CLI and of programs derived from it. */
export interface PartsOf {
  readonly texts: readonly string[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly results: readonly Omit<Extract<Turn, { kind: 'result' }>, 'kind' | 'at'>[];
  /** The names of parts that are not imported. */
  readonly dropped: readonly string[];
}

/** Sorts the parts of a content, which is a text, a part or a list of parts. A call without an id has `otherId`.
 * Source: `Content` in @google/genai 1.x. */
export function partsOf(content: unknown, otherId: string): PartsOf {
  const parts = typeof content === 'string' ? [{ text: content }] : Array.isArray(content) ? content : [content];
  const texts: string[] = [];
  const calls: PartsOf['calls'][number][] = [];
  const results: PartsOf['results'][number][] = [];
  const dropped: string[] = [];
  for (const item of parts) {
    const part = typeof item === 'string' ? { text: item } : fieldsOf(item);
    const { functionCall: call, functionResponse: response } = part;
    const text = nonEmptyText(part['text']);
    if (part['thought'] === true) dropped.push('reasoning');
    else if (text !== null) texts.push(text);
    else if (call !== undefined) calls.push(callOf(fieldsOf(call), otherId));
    else if (response !== undefined) results.push(responseOf(fieldsOf(response), otherId));
    else if (part['inlineData'] !== undefined || part['fileData'] !== undefined) dropped.push('files');
  }
  return { texts, calls, results, dropped };
}

/** Returns a call from its fields `id`, `name` and `args`. */
export function callOf({ id, name, args }: TurnFields, otherId: string): PartsOf['calls'][number] {
  return { id: nonEmptyText(id) ?? otherId, name: nonEmptyText(name) ?? '', arguments: JSON.stringify(args ?? {}) };
}

function responseOf({ id, response }: TurnFields, otherId: string): PartsOf['results'][number] {
  const { output, error } = fieldsOf(response);
  const isError = error !== undefined;
  const said = isError ? error : (output ?? response);
  const text = typeof said === 'string' ? said : JSON.stringify(said ?? '');
  const exitCode = numberIn(text.slice(-500), lastLines);
  return { callId: nonEmptyText(id) ?? otherId, text, isError, ...(exitCode === undefined ? {} : { exitCode }) };
}

/** Both programs end the output of a command with a few lines of status. */
const lastLines =
  /\nExit Code: (\d{1,3})(?:\n(?:Signal|Background PIDs|Process Group PGID): .*){0,3}(?:\n<\/untrusted_context>)?\s*$/;

/** Returns the summary in what the program says for the user after it has compacted; null for anything else. */
export function summaryIn(text: string): string | null {
  return /^\s*<state_snapshot>/.test(text) ? text : null;
}

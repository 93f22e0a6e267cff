import type { Socket } from 'node:net';
import { isRecord, parseJson } from '../../kernel/core/json.js';

/** No line of either side is longer. */
const longestLine = 8 * 1024 * 1024;

/** Calls back with each line of a socket, and ends it where one is too long. Lines end at LF alone. */
export function onLines(socket: Socket, take: (line: string) => void): void {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  let length = 0;
  socket.on('data', (chunk) => {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    length += first.length;
    for (const part of others) {
      take(parts.join(''));
      parts = [part];
      ({ length } = part);
    }
    if (length > longestLine) socket.destroy();
  });
}

/** Returns the message of a line, if it is an object with a type. */
export function parseMessage(line: string): (Readonly<Record<string, unknown>> & { readonly type: string }) | null {
  try {
    const value: unknown = parseJson(line);
    return isRecord(value) && typeof value.type === 'string' ? { ...value, type: value.type } : null;
  } catch {
    return null;
  }
}

export function toLine(message: object): string {
  return `${JSON.stringify(message)}\n`;
}

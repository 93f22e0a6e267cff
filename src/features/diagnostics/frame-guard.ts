const maxHeaderBytes = 4_096;
const maxBodyBytes = 32 * 1024 * 1024;

/** Lets the output of a language server through as long as it consists of messages. */
export interface FrameGuard {
  /** Returns null where a chunk is fine, else what is wrong with it. Nothing after that may be read. */
  check(chunk: Buffer): string | null;
}

/** More than this within a second is a flood. */
const mostBytes = 16 * 1024 * 1024;
const mostMessages = 5_000;

/** Makes a guard that follows the headers and lengths of messages without keeping their contents. `now`: milliseconds
 * from a clock that never goes back. */
export function createFrameGuard(now: () => number): FrameGuard {
  let header = '';
  let bodyLeft = 0;
  let second = { since: now(), bytes: 0, messages: 0 };
  const isFlood = (bytes: number): boolean => {
    const time = now();
    if (time - second.since > 1_000) second = { since: time, bytes: 0, messages: 0 };
    second.bytes += bytes;
    return second.bytes > mostBytes || second.messages > mostMessages;
  };
  const problemOf = (length: number | undefined): string | null => {
    if (length === undefined) return 'it writes what is no message';
    return length > maxBodyBytes ? `it writes a message of ${length} bytes` : null;
  };
  return {
    check(chunk) {
      if (isFlood(chunk.length)) return 'it writes without end';
      for (let at = 0; at < chunk.length;) {
        if (bodyLeft > 0) {
          const taken = Math.min(bodyLeft, chunk.length - at);
          bodyLeft -= taken;
          at += taken;
          continue;
        }
        const rest = chunk.subarray(at, at + maxHeaderBytes + 4 - header.length).toString('latin1');
        const end = (header + rest).indexOf('\r\n\r\n');
        if (end < 0) {
          header += rest;
          at += rest.length;
          if (header.length > maxHeaderBytes || !isHeaderStart(header)) return problemOf(undefined);
          continue;
        }
        const length = lengthIn((header + rest).slice(0, end));
        const problem = problemOf(length);
        if (problem !== null) return problem;
        at += end + 4 - header.length;
        header = '';
        bodyLeft = length ?? 0;
        second.messages++;
      }
      return null;
    },
  };
}

function isHeaderStart(text: string): boolean {
  const known = 'content-';
  const start = text.slice(0, known.length).toLowerCase();
  return known.startsWith(start);
}

function lengthIn(header: string): number | undefined {
  if (!header.split('\r\n').every((line) => /^content-(?:length|type): /i.test(line))) return undefined;
  const length = /^content-length: (\d{1,12})$/im.exec(header)?.[1];
  return length === undefined ? undefined : Number(length);
}

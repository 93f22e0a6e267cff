import { inflateSync } from 'node:zlib';

/** The most that is decoded of one PDF. */
const pdfLimits = { decodedBytes: 64 * 1024 * 1024, streams: 20_000 } as const;

/** Returns why a PDF is not read, as the end of a sentence; null where its parts are within the limits. It decodes each
 * compressed stream once, in a bounded buffer and apart from the reader, which would hold all of them. */
export function pdfProblem(bytes: Uint8Array): string | null {
  const pdf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let decoded = 0;
  let streams = 0;
  for (let at = pdf.indexOf('stream'); at >= 0; at = pdf.indexOf('stream', at + 6)) {
    if (pdf.toString('latin1', Math.max(0, at - 3), at) === 'end') continue;
    if (++streams > pdfLimits.streams) return `it has more than ${pdfLimits.streams} streams`;
    decoded += decodedBytes(pdf, at, pdfLimits.decodedBytes - decoded);
    if (decoded > pdfLimits.decodedBytes)
      return `its streams have more than ${pdfLimits.decodedBytes / (1024 * 1024)} MB when decoded`;
  }
  return null;
}

/** Returns the bytes that the filters of the stream at `at` make of it, up to `most` and one more. */
function decodedBytes(pdf: Buffer, at: number, most: number): number {
  const head = pdf.toString('latin1', Math.max(0, at - 400), at);
  const rounds = head.slice(head.lastIndexOf('obj')).match(/\/(?:FlateDecode|Fl)\b/g)?.length ?? 0;
  let data: Uint8Array | null = pdf.subarray(pdf[at + 6] === 0x0d ? at + 8 : at + 7);
  let decoded = 0;
  for (let round = 0; round < rounds && data !== null && decoded <= most; round++) {
    data = inflated(data, most - decoded);
    decoded += data?.length ?? 0;
  }
  return decoded;
}

/** Returns a compressed stream when decoded, cut to `most` and one byte; null where it is broken. */
function inflated(compressed: Uint8Array, most: number): Uint8Array | null {
  try {
    return inflateSync(compressed, { maxOutputLength: most + 1 });
  } catch (error) {
    const isLonger = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    return isLonger ? new Uint8Array(most + 1) : null;
  }
}

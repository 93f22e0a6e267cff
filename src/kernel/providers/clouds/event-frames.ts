import { EventStreamCodec } from '@smithy/eventstream-codec';
import { HttpFailure } from '../http/exchange.js';

const framesType = 'application/vnd.amazon.eventstream';
/** A frame is longer by at most this much than the answer that it carries. Source: security 2.42. */
const maxFrameBytes = 16 * 1024 * 1024;
const headBytes = 12;
const utf8 = {
  encode: (text: string): Uint8Array => new TextEncoder().encode(text),
  decode: (bytes: Uint8Array): string => new TextDecoder().decode(bytes),
};

/** Returns an answer whose body is a stream of AWS event frames as one of server-sent events; any other answer as it
 * is. The body fails with an `HttpFailure` where a checksum is wrong or a frame is cut off. Source: AWS, "Event stream
 * encoding" (read 2026-11). */
export function asServerEvents(response: Response, host: string): Response {
  const { body, status, headers } = response;
  if (body === null || !(headers.get('content-type') ?? '').startsWith(framesType)) return response;
  const changed = new Headers(headers);
  changed.set('content-type', 'text/event-stream');
  return new Response(body.pipeThrough(new TransformStream(frameReader(host))), { status, headers: changed });
}

function frameReader(host: string): Transformer<Uint8Array, Uint8Array> {
  const codec = new EventStreamCodec(utf8.decode, utf8.encode);
  let pending = Buffer.alloc(0);
  const damaged = (what: string): HttpFailure =>
    new HttpFailure({ code: 'stream_incomplete', message: `the answer of ${host} ${what}` }, true);
  return {
    transform(chunk, controller) {
      pending = pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([pending, chunk]);
      for (let size = frameSize(pending); size !== null && size <= pending.length; size = frameSize(pending)) {
        if (size < headBytes + 4 || size > maxFrameBytes) throw damaged('has a frame of an impossible length');
        controller.enqueue(utf8.encode(eventIn(pending.subarray(0, size))));
        pending = pending.subarray(size);
      }
      if ((frameSize(pending) ?? 0) > maxFrameBytes) throw damaged('has a frame of an impossible length');
    },
    flush() {
      if (pending.length > 0) throw damaged('ended in the middle of a frame');
    },
  };

  function eventIn(frame: Uint8Array): string {
    try {
      const { headers, body } = codec.decode(frame);
      const named = (name: string): string => String(headers[name]?.value ?? '');
      const text = utf8.decode(body);
      const exception = named(':exception-type') || named(':error-code');
      if (exception === '') return `event: ${named(':event-type')}\ndata: ${oneLine(text)}\n\n`;
      const message = text === '' ? JSON.stringify({ message: named(':error-message') }) : oneLine(text);
      return `event: ${exception}\ndata: ${message}\n\n`;
    } catch (error) {
      throw damaged(`is damaged (${error instanceof Error ? error.message : String(error)})`);
    }
  }
}

/** JSON has no line ends of its own outside of strings that matter. */
function oneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, ' ');
}

function frameSize(bytes: Buffer): number | null {
  return bytes.length < 4 ? null : bytes.readUInt32BE(0);
}

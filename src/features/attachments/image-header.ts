/** The facts in the header of an image. */
export interface PictureFacts {
  readonly mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp';
  /** Pixels as stored, before `orientation` turns them. */
  readonly width: number;
  readonly height: number;
  /** Of a pixel when decoded. */
  readonly pixelBytes: 4 | 8;
  /** EXIF's number: 1 is upright, 5 to 8 change width and height. */
  readonly orientation: number;
  /** It has several frames. */
  readonly moves: boolean;
  /** Its end is there. A file that was cut off may still be decoded in part. */
  readonly whole: boolean;
}

/** Reads the header of an image; null if the bytes are no PNG, JPEG, GIF or WebP. Ignores the file name and the type
 * that a server reports. Source: PNG (W3C, 2025), JFIF 1.02 and EXIF 3.0, GIF89a, RFC 9649. */
export function pictureFacts(bytes: Uint8Array): PictureFacts | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return png(bytes, view) ?? jpeg(bytes, view) ?? gif(bytes, view) ?? webp(bytes, view);
}

export function isPdf(bytes: Uint8Array): boolean {
  return ascii(bytes, 0, 5) === '%PDF-';
}

function png(bytes: Uint8Array, view: DataView): PictureFacts | null {
  if (bytes.length < 24 || view.getUint32(0) !== 0x89504e47 || view.getUint32(4) !== 0x0d0a1a0a) return null;
  if (ascii(bytes, 12, 16) !== 'IHDR') return null;
  let orientation = 1;
  let moves = false;
  let whole = false;
  for (let at = 8; at + 12 <= bytes.length;) {
    const length = view.getUint32(at);
    const type = ascii(bytes, at + 4, at + 8);
    const end = at + 12 + length;
    if (type === 'acTL') moves = true;
    if (type === 'eXIf' && end <= bytes.length) orientation = tiffOrientation(bytes, at + 8, at + 8 + length);
    if (type === 'IEND') whole = end <= bytes.length;
    at = end;
  }
  const [width, height] = [view.getUint32(16), view.getUint32(20)];
  const pixelBytes = bytes[24] === 16 ? 8 : 4;
  return { mediaType: 'image/png', width, height, pixelBytes, orientation, moves, whole };
}

/** Start-of-frame markers; the others of this range are tables. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
}

interface Segment {
  readonly marker: number;
  /** Of its two bytes of length. */
  readonly at: number;
  readonly end: number;
}

/** The segments before the pixels. */
function* segments(bytes: Uint8Array, view: DataView): Generator<Segment> {
  for (let at = 2; at + 4 <= bytes.length && bytes[at] === 0xff;) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const end = at + 2 + view.getUint16(at + 2);
    if (marker === 0xda || marker === 0xd9 || end < at + 4) return;
    yield { marker, at: at + 2, end };
    at = end;
  }
}

function jpeg(bytes: Uint8Array, view: DataView): PictureFacts | null {
  if (bytes.length < 4 || view.getUint16(0) !== 0xffd8) return null;
  let orientation = 1;
  for (const { marker, at, end } of segments(bytes, view)) {
    if (marker === 0xe1 && ascii(bytes, at + 2, at + 8) === 'Exif\0\0')
      orientation = tiffOrientation(bytes, at + 8, Math.min(bytes.length, end));
    if (!isFrame(marker) || at + 7 > bytes.length) continue;
    const [height, width] = [view.getUint16(at + 3), view.getUint16(at + 5)];
    const whole =
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf('ffd9', undefined, 'hex') > at;
    return {
      mediaType: 'image/jpeg',
      width,
      height,
      pixelBytes: bytes[at + 2] === 8 ? 4 : 8,
      orientation,
      moves: false,
      whole,
    };
  }
  return null;
}

function gif(bytes: Uint8Array, view: DataView): PictureFacts | null {
  if (bytes.length < 13 || !/^GIF8[79]a$/.test(ascii(bytes, 0, 6))) return null;
  const moves = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 2048)).includes('NETSCAPE2.0');
  const [width, height] = [view.getUint16(6, true), view.getUint16(8, true)];
  return { mediaType: 'image/gif', width, height, pixelBytes: 4, orientation: 1, moves, whole: bytes.at(-1) === 0x3b };
}

function webp(bytes: Uint8Array, view: DataView): PictureFacts | null {
  if (bytes.length < 30 || ascii(bytes, 0, 4) !== 'RIFF' || ascii(bytes, 8, 12) !== 'WEBP') return null;
  const whole = view.getUint32(4, true) + 8 <= bytes.length;
  const size = webpSize(bytes, view);
  if (size === null) return null;
  const flags = ascii(bytes, 12, 16) === 'VP8X' ? (bytes[20] ?? 0) : 0;
  const orientation = (flags & 0x08) === 0 ? 1 : webpOrientation(bytes, view);
  return { mediaType: 'image/webp', ...size, pixelBytes: 4, orientation, moves: (flags & 0x02) !== 0, whole };
}

function webpSize(bytes: Uint8Array, view: DataView): { readonly width: number; readonly height: number } | null {
  const uint24 = (at: number): number => view.getUint16(at, true) + ((bytes[at + 2] ?? 0) << 16);
  switch (ascii(bytes, 12, 16)) {
    case 'VP8 ':
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    case 'VP8L': {
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      return { width: uint24(24) + 1, height: uint24(27) + 1 };
    default:
      return null;
  }
}

function webpOrientation(bytes: Uint8Array, view: DataView): number {
  for (let at = 12; at + 8 <= bytes.length;) {
    const length = view.getUint32(at + 4, true);
    if (ascii(bytes, at, at + 4) === 'EXIF') {
      const from = ascii(bytes, at + 8, at + 14) === 'Exif\0\0' ? at + 14 : at + 8;
      return tiffOrientation(bytes, from, Math.min(bytes.length, at + 8 + length));
    }
    at += 8 + length + (length % 2);
  }
  return 1;
}

/** Reads tag 0x0112 of the first directory of a TIFF block; 1 where it is not there. */
function tiffOrientation(bytes: Uint8Array, from: number, to: number): number {
  const block = new DataView(bytes.buffer, bytes.byteOffset + from, Math.max(0, to - from));
  if (block.byteLength < 14) return 1;
  const little = block.getUint16(0) === 0x4949;
  const directory = block.getUint32(4, little);
  if (directory + 2 > block.byteLength) return 1;
  const count = block.getUint16(directory, little);
  for (let entry = 0; entry < count; entry++) {
    const at = directory + 2 + entry * 12;
    if (at + 12 > block.byteLength) return 1;
    if (block.getUint16(at, little) !== 0x0112) continue;
    const value = block.getUint16(at + 8, little);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

function ascii(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', from, to);
}

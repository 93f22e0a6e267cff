import { deflateSync, crc32 } from 'node:zlib';

/** Writes a PNG of one colour, or of noise that does not compress. `claims` and `depth`: what its header says. */
export function png(
  width: number,
  height: number,
  {
    noise = false,
    claims = [width, height],
    depth = 8,
  }: { readonly noise?: boolean; readonly claims?: readonly number[]; readonly depth?: 8 | 16 } = {},
): Buffer {
  const rows = Buffer.alloc(height * (1 + width * 3), 0x7f);
  let seed = 1;
  for (let row = 0; row < height; row++) rows[row * (1 + width * 3)] = 0;
  if (noise)
    for (let at = 0; at < rows.length; at++) {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) | 0;
      if (at % (1 + width * 3) !== 0) rows[at] = seed >>> 24;
    }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(claims[0] ?? 0, 0);
  header.writeUInt32BE(claims[1] ?? 0, 4);
  header.set([depth, 2, 0, 0, 0], 8);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([
    signature,
    pngChunk('IHDR', header),
    pngChunk('IDAT', deflateSync(rows, { level: 1 })),
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

export function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** A JPEG of 8 by 4 pixels: red above, blue below. */
export const jpeg = Buffer.from(
  '/9j/4AAQSkZJRgABAgAAAQABAAD/wAARCAAEAAgDAREAAhEBAxEB/9sAQwADAgIDAgIDAwMDBAMDBAUIBQUEBAUKBwcGCAwKDAwLCgsLDQ4SEA0OEQ4LCxAWEBETFBUVFQwPFxgWFBgSFBUU/9sAQwEDBAQFBAUJBQUJFA0LDRQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwD4W/4TzXf+f7/yDH/8TX9w/wDEEeAP+hd/5Vr/APyw+r/4i/xv/wBB/wD5To//ACs//9k=',
  'base64',
);
/** The same as WebP. */
export const webp = Buffer.from(
  'UklGRpoAAABXRUJQVlA4TI4AAAAvB8AAEM1VICICHogEAAAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAGADAHggEgAAAAAA598AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAYA8kAAAAAADg/AMAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIw2nQQAA',
  'base64',
);
/** 8 by 4. */
export const gif = Buffer.from('47494638396108000400800000008000ffffff2c00000000080004000002068c8fa9cbed05003b', 'hex');

/** The JPEG with an EXIF block that says how it is to be turned. */
export function turnedJpeg(orientation: number, picture: Uint8Array = jpeg): Buffer {
  const tiff = Buffer.from('49492a0008000000010012010300010000000000000000000000', 'hex');
  tiff.writeUInt16LE(orientation, 18);
  const body = Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]);
  const head = Buffer.from([0xff, 0xe1, 0, 0]);
  head.writeUInt16BE(body.length + 2, 2);
  return Buffer.concat([picture.subarray(0, 2), head, body, picture.subarray(2)]);
}

export const pdf = Buffer.from('%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n', 'latin1');

import { expect, test } from 'vitest';
import { isPdf, pictureFacts } from '../../../src/features/attachments/image-header.js';
import { gif, jpeg, pdf, png, turnedJpeg, webp } from './samples.js';

const facts = { width: 8, height: 4, pixelBytes: 4, orientation: 1, moves: false, whole: true };

test.each([
  ['PNG', png(8, 4), 'image/png'],
  ['JPEG', jpeg, 'image/jpeg'],
  ['GIF', gif, 'image/gif'],
  ['WebP', webp, 'image/webp'],
])('the header of a %s says what it is, and a file that was cut off is told', (_name, bytes, mediaType) => {
  expect(pictureFacts(bytes)).toEqual({ ...facts, mediaType });
  const cut = bytes.subarray(0, bytes.length - 3);
  expect(pictureFacts(cut)).toEqual({ ...facts, mediaType, whole: false });
  for (let length = 0; length < bytes.length; length++)
    expect(pictureFacts(bytes.subarray(0, length))?.whole ?? false).toBe(false);
});

test('EXIF says how a JPEG is turned; a value that is none counts for nothing', () => {
  expect([1, 3, 6, 8, 0, 9].map((value) => pictureFacts(turnedJpeg(value))?.orientation)).toEqual([1, 3, 6, 8, 1, 1]);
});

test('what is not a picture is none, whatever it is called', () => {
  for (const text of ['', 'GIF8', '<svg xmlns="http://www.w3.org/2000/svg"/>', '\x89PNG', 'RIFF....WEBPVP9 '.repeat(4)])
    expect(pictureFacts(Buffer.from(text, 'latin1'))).toBeNull();
  expect([isPdf(pdf), isPdf(jpeg)]).toEqual([true, false]);
});

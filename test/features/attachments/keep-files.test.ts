import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PhotonImage } from '@silvia-odwyer/photon-node';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepFiles } from '../../../src/features/attachments/keep-files.js';
import { scalePicture } from '../../../src/features/attachments/scale-picture.js';
import { gif, jpeg, pdf, png, pngChunk, turnedJpeg, webp } from './samples.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-pictures-'));
const worker = pathToFileURL(join(folder, 'scale-worker.mjs'));
const photon = createRequire(import.meta.url).resolve('@silvia-odwyer/photon-node');
beforeAll(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL('../../../src/features/attachments/scale-worker.ts', import.meta.url))],
    outfile: fileURLToPath(worker),
    bundle: true,
    format: 'esm',
    platform: 'node',
    alias: { '@silvia-odwyer/photon-node': photon },
    external: [photon],
    logLevel: 'error',
  });
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const keep = (bytes: Uint8Array, name = 'a.png', mediaType = '') =>
  keepFiles([{ name, bytes, mediaType }], (picture) => scalePicture(picture, worker));
const noScale = () => Promise.reject(new Error('nothing is to be scaled'));

test.each([
  ['png', png(1568, 3), { media_type: 'image/png', width: 1568, height: 3 }],
  ['jpeg', jpeg, { media_type: 'image/jpeg', width: 8, height: 4 }],
  ['gif', gif, { media_type: 'image/gif', width: 8, height: 4 }],
  ['webp', webp, { media_type: 'image/webp', width: 8, height: 4 }],
  ['pdf', pdf, { media_type: 'application/pdf' }],
])('what is within the limits is kept byte for byte: %s', async (name, bytes, facts) => {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  expect(await keepFiles([{ name, bytes }], noScale)).toEqual({
    attachments: [{ sha256, ...facts, bytes: bytes.length, name }],
    blobs: [{ sha256, bytes }],
    refused: [],
  });
});

test('an image that is too long or too heavy is made small once', async () => {
  const long = await keep(png(9000, 100));
  expect(long.attachments).toMatchObject([{ media_type: 'image/png', width: 1568, height: 17 }]);
  const heavy = await keep(png(1500, 1400, { noise: true }));
  expect(heavy.attachments).toMatchObject([{ media_type: 'image/jpeg', width: 1176, height: 1098 }]);
  for (const { attachments, blobs } of [long, heavy]) {
    const [file] = attachments;
    const [blob] = blobs;
    expect(file?.bytes).toBeLessThanOrEqual(1_500_000);
    expect(blob?.sha256).toBe(file?.sha256);
    expect(
      createHash('sha256')
        .update(blob?.bytes ?? '')
        .digest('hex'),
    ).toBe(file?.sha256);
  }
});

const [red, green, blue, white] = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [255, 255, 255],
] as const;
const names = new Map([red, green, blue, white].map((color, index) => [color.join(), 'RGBW'[index] ?? '']));

/** A JPEG with a colour in each quarter: `RG` above `BW`. */
function quarters(): Buffer {
  const [width, height] = [64, 32];
  const rgba = new Uint8Array(width * height * 4).fill(255);
  for (let at = 0; at < width * height; at++) {
    const [right, below] = [at % width >= width / 2, at >= (width * height) / 2];
    rgba.set(below ? (right ? white : blue) : right ? green : red, at * 4);
  }
  return Buffer.from(new PhotonImage(rgba, width, height).get_bytes_jpeg(95));
}

/** The colours of the quarters, row by row. */
function corners(bytes: Uint8Array): string {
  const image = PhotonImage.new_from_byteslice(bytes);
  const [width, height, pixels] = [image.get_width(), image.get_height(), image.get_raw_pixels()];
  const nearest = (x: number, y: number): string => {
    const at = (Math.floor(y * height) * width + Math.floor(x * width)) * 4;
    const rounded = [...pixels.slice(at, at + 3)].map((channel) => (channel > 127 ? 255 : 0));
    return names.get(rounded.join()) ?? '?';
  };
  return `${nearest(0.25, 0.25)}${nearest(0.75, 0.25)} ${nearest(0.25, 0.75)}${nearest(0.75, 0.75)}`;
}

test.each([
  [2, 64, 32, 'GR WB'],
  [3, 64, 32, 'WB GR'],
  [4, 64, 32, 'BW RG'],
  [5, 32, 64, 'RB GW'],
  [6, 32, 64, 'BR WG'],
  [7, 32, 64, 'WG BR'],
  [8, 32, 64, 'GW RB'],
])('an image that EXIF says is turned (%i) is kept upright', async (orientation, width, height, colours) => {
  const { attachments, blobs } = await keep(turnedJpeg(orientation, quarters()), 'a.jpg');
  expect(attachments).toMatchObject([{ media_type: 'image/jpeg', width, height }]);
  expect(corners(blobs[0]?.bytes ?? Buffer.alloc(0))).toBe(colours);
});

test('what is transparent is white where a JPEG is made of it', async () => {
  const rgba = new Uint8Array(1500 * 1500 * 4);
  for (let at = 0; at < rgba.length; at++) rgba[at] = at % 4 === 3 ? 0 : (at * 7919) % 251;
  const { blobs } = await keep(new PhotonImage(rgba, 1500, 1500).get_bytes());
  expect(blobs).toHaveLength(1);
  expect(corners(blobs[0]?.bytes ?? Buffer.alloc(0))).toBe('WW WW');
});

test.each([
  ['over 50 megapixels', png(8, 4, { claims: [10_000, 6000] }), '10000x6000 are 60 megapixels, over 50'],
  [
    '49.7 megapixels of 16 bits',
    png(8, 4, { claims: [7050, 7050], depth: 16 }),
    '7050x7050 are 49.7 megapixels, over 25 for an image of 16 bits a channel',
  ],
  ['a header that lies', png(8, 4, { claims: [7000, 7000] }), 'it cannot be decoded'],
  ['no pixels', png(8, 4, { claims: [0, 4] }), 'it has no pixels'],
  ['cut off', png(300, 200, { noise: true }).subarray(0, 9000), 'it cannot be decoded, its end is missing'],
  ['over 20 MB', Buffer.alloc(21 * 1024 * 1024), 'it has 21 MB, over 20 MB'],
])('an image is refused with a sentence: %s', async (_case, bytes, why) => {
  expect(await keep(bytes)).toEqual({ attachments: [], blobs: [], refused: [`a.png is not attached: ${why}.`] });
});

const le = (value: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  bytes.writeUIntLE(value, 0, length);
  return bytes;
};
const riff = (...chunks: readonly Buffer[]): Buffer => {
  const body = Buffer.concat([Buffer.from('WEBP'), ...chunks]);
  return Buffer.concat([Buffer.from('RIFF'), le(body.length, 4), body]);
};
const riffChunk = (type: string, ...parts: readonly Buffer[]): Buffer => {
  const data = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), le(data.length, 4), data, Buffer.alloc(data.length % 2)]);
};
const canvas = (flags: number, width: number, height: number): Buffer =>
  riffChunk('VP8X', Buffer.of(flags, 0, 0, 0), le(width - 1, 3), le(height - 1, 3));

/** A GIF that repeats its picture `frames` times. */
function movingGif(frames: number): Buffer {
  const loop = Buffer.concat([
    Buffer.from('21ff0b', 'hex'),
    Buffer.from('NETSCAPE2.0'),
    Buffer.from('0301000000', 'hex'),
  ]);
  return Buffer.concat([
    gif.subarray(0, 19),
    loop,
    ...Array.from({ length: frames }, () => gif.subarray(19, -1)),
    gif.subarray(-1),
  ]);
}

function movingWebp(frames: number): Buffer {
  const frame = riffChunk('ANMF', le(0, 6), le(7, 3), le(3, 3), le(100, 3), Buffer.of(0), webp.subarray(12));
  return riff(canvas(2, 8, 4), riffChunk('ANIM', le(0, 6)), ...Array.from({ length: frames }, () => frame));
}

function movingPng(frames: number): Buffer {
  const still = png(8, 4);
  const control = (sequence: number): Buffer =>
    pngChunk('fcTL', Buffer.concat([be(sequence), be(8), be(4), be(0), be(0), Buffer.of(0, 1, 0, 10, 0, 0)]));
  const data = still.subarray(41, still.indexOf('IEND') - 8);
  const more = Array.from({ length: frames }, (_item, index) => [
    control(index * 2 + 1),
    pngChunk('fdAT', Buffer.concat([be(index * 2 + 2), data])),
  ]).flat();
  const start = pngChunk('acTL', Buffer.concat([be(frames + 1), be(0)]));
  const end = still.indexOf('IEND') - 4;
  return Buffer.concat([
    still.subarray(0, 33),
    start,
    control(0),
    still.subarray(33, end),
    ...more,
    still.subarray(end),
  ]);
}

const be = (value: number): Buffer => le(value, 4).swap32();

function claimedJpeg(width: number, height: number, components = 3): Buffer {
  const bytes = Buffer.from(jpeg);
  const frame = bytes.indexOf('ffc0', 0, 'hex');
  bytes.writeUInt16BE(height, frame + 5);
  bytes.writeUInt16BE(width, frame + 7);
  bytes[frame + 9] = components;
  return bytes;
}

function claimedGif(width: number, height: number): Buffer {
  return Buffer.concat([gif.subarray(0, 6), le(width, 2), le(height, 2), gif.subarray(10)]);
}

test.each([
  ['GIF', movingGif(20_000)],
  ['WebP', movingWebp(5_000)],
  ['PNG', movingPng(5_000)],
])('of a %s with many frames the first is kept', async (_name, bytes) => {
  const { attachments, refused } = await keep(bytes);
  expect(refused).toEqual([]);
  expect(attachments).toMatchObject([{ media_type: 'image/png', width: 8, height: 4 }]);
  expect(attachments[0]?.bytes).toBeLessThan(1_000);
});

const manyPixels = /^a\.png is not attached: \d+x\d+ are [\d,.]+ megapixels, over 50\.$/;
const undecoded = /^a\.png is not attached: it cannot be decoded(?:, its end is missing)?\.$/;

test.each([
  ['a JPEG of 65,535 by 65,535', claimedJpeg(65_535, 65_535), manyPixels],
  ['a GIF of 65,535 by 65,535', claimedGif(65_535, 65_535), manyPixels],
  ['a WebP of 16 million by 16 million', riff(canvas(0, 1 << 24, 1 << 24), webp.subarray(12)), manyPixels],
  ['a WebP whose frame is larger than it says', riff(canvas(2, 8, 4), hugeFrame()), undecoded],
  ['a JPEG of four colours without their data', claimedJpeg(2_000, 2_000, 4), undecoded],
  ['a JPEG that is cut off', jpeg.subarray(0, 300), undecoded],
  ['a GIF that is cut off', gif.subarray(0, 22), undecoded],
  ['a WebP that is cut off', webp.subarray(0, 60), undecoded],
  ['many frames that are cut off in the first', movingPng(9).subarray(0, 90), undecoded],
])('%s is refused with one sentence', async (_name, bytes, sentence) => {
  expect(await keep(bytes)).toEqual({ attachments: [], blobs: [], refused: [expect.stringMatching(sentence)] });
});

function hugeFrame(): Buffer {
  const inner = Buffer.from(webp.subarray(12));
  inner.writeUInt32LE(0x3fff | (0x3fff << 14), 9);
  return Buffer.concat([
    riffChunk('ANIM', le(0, 6)),
    riffChunk('ANMF', le(0, 6), le(16_383, 3), le(16_383, 3), le(100, 3), Buffer.of(0), inner),
  ]);
}

test('what is not a picture is what its source says, unless it says it is an image', async () => {
  const type = async (claimed: string) => (await keep(Buffer.from('abc'), 'a', claimed)).attachments[0]?.media_type;
  expect([await type('audio/wav'), await type(''), await type('application/pdf'), await type('a b')]).toEqual([
    'audio/wav',
    'application/octet-stream',
    'application/octet-stream',
    'application/octet-stream',
  ]);
  expect((await keep(Buffer.from('<svg/>'), 'a', 'image/svg+xml')).refused).toEqual([
    'a is not attached: it is not a PNG, JPEG, GIF or WebP.',
  ]);
});

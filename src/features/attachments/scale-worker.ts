import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { PhotonImage, resize, SamplingFilter } from '@silvia-odwyer/photon-node';
import type { Scaled, ToScale } from './keep-files.js';

// A separate program, run as a worker: it makes one image small and upright and answers with its bytes, or with null if
// it cannot decode it. The worker is discarded with the hundreds of megabytes that this takes.

interface Pixels {
  /** RGBA. */
  readonly rgba: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** Smaller and smaller, until the bytes suffice. */
const shares = [1, 0.75, 0.5, 0.25];
const qualities = [85, 70, 50];

/** The part of sharp that is used, where somebody has installed it. */
type Sharp = (bytes: Uint8Array, options: object) => SharpImage;
interface SharpImage {
  autoOrient(): SharpImage;
  resize(options: object): SharpImage;
  flatten(options: object): SharpImage;
  png(): SharpImage;
  jpeg(options: object): SharpImage;
  toBuffer(): Promise<Uint8Array>;
}

async function scale(work: ToScale): Promise<Scaled | null> {
  const sharp = installedSharp();
  return (sharp === null ? null : await bySharp(sharp, work).catch(() => null)) ?? byPhoton(work);
}

function installedSharp(): Sharp | null {
  try {
    return createRequire(import.meta.url)('sharp') as Sharp;
  } catch {
    return null;
  }
}

async function bySharp(sharp: Sharp, { bytes, mediaType, side, maxBytes }: ToScale): Promise<Scaled | null> {
  for (const share of shares) {
    const most = Math.round(side * share);
    const small = (): SharpImage =>
      sharp(bytes, { failOn: 'error' })
        .autoOrient()
        .resize({ width: most, height: most, fit: 'inside', withoutEnlargement: true });
    const png = mediaType === 'image/jpeg' ? null : await small().png().toBuffer();
    if (png !== null && png.length <= maxBytes) return { bytes: png, mediaType: 'image/png' };
    for (const quality of qualities) {
      const jpeg = await small().flatten({ background: '#fff' }).jpeg({ quality }).toBuffer();
      if (jpeg.length <= maxBytes) return { bytes: jpeg, mediaType: 'image/jpeg' };
    }
  }
  return null;
}

function byPhoton({ bytes, mediaType, orientation, side, maxBytes }: ToScale): Scaled | null {
  let image = PhotonImage.new_from_byteslice(bytes);
  for (const share of shares) {
    image = shrunk(image, side * share);
    const pixels = { rgba: image.get_raw_pixels(), width: image.get_width(), height: image.get_height() };
    const upright = turned(pixels, orientation);
    const png = mediaType === 'image/jpeg' ? null : photonOf(upright).get_bytes();
    if (png !== null && png.length <= maxBytes) return { bytes: png, mediaType: 'image/png' };
    const opaque = photonOf({ ...upright, rgba: onWhite(upright.rgba) });
    for (const quality of qualities) {
      const jpeg = opaque.get_bytes_jpeg(quality);
      if (jpeg.length <= maxBytes) return { bytes: jpeg, mediaType: 'image/jpeg' };
    }
  }
  return null;
}

function photonOf({ rgba, width, height }: Pixels): PhotonImage {
  return new PhotonImage(rgba, width, height);
}

function shrunk(image: PhotonImage, side: number): PhotonImage {
  const [width, height] = [image.get_width(), image.get_height()];
  const factor = side / Math.max(width, height);
  if (factor >= 1) return image;
  const small = (length: number): number => Math.max(1, Math.round(length * factor));
  const made = resize(image, small(width), small(height), SamplingFilter.Triangle);
  image.free();
  return made;
}

/** Returns the place in the stored image of a pixel of the upright one. Source: EXIF 3.0, tag 0x0112. */
const sources: Readonly<
  Record<number, (x: number, y: number, w: number, h: number) => readonly [x: number, y: number]>
> = {
  2: (x, y, w) => [w - 1 - x, y],
  3: (x, y, w, h) => [w - 1 - x, h - 1 - y],
  4: (x, y, _w, h) => [x, h - 1 - y],
  5: (x, y) => [y, x],
  6: (x, y, _w, h) => [y, h - 1 - x],
  7: (x, y, w, h) => [w - 1 - y, h - 1 - x],
  8: (x, y, w) => [w - 1 - y, x],
};

function turned(pixels: Pixels, orientation: number): Pixels {
  const source = sources[orientation];
  if (source === undefined) return pixels;
  const { width: w, height: h } = pixels;
  const [width, height] = orientation >= 5 ? [h, w] : [w, h];
  const from = new Uint32Array(pixels.rgba.slice().buffer);
  const to = new Uint32Array(width * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [sourceX, sourceY] = source(x, y, w, h);
      to[y * width + x] = from[sourceY * w + sourceX] ?? 0;
    }
  return { rgba: new Uint8Array(to.buffer), width, height };
}

/** A JPEG has no transparency: what shows through is white. */
function onWhite(rgba: Uint8Array): Uint8Array {
  const opaque = new Uint8Array(rgba);
  for (let at = 0; at < opaque.length; at += 4) {
    const alpha = (opaque[at + 3] ?? 255) / 255;
    if (alpha === 1) continue;
    for (let channel = at; channel < at + 3; channel++)
      opaque[channel] = Math.round((opaque[channel] ?? 0) * alpha + 255 * (1 - alpha));
    opaque[at + 3] = 255;
  }
  return opaque;
}

scale(workerData as ToScale).then(
  (result) => {
    parentPort?.postMessage(result, []);
  },
  () => {
    parentPort?.postMessage(null, []);
  },
);

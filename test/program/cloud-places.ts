import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Place } from '../e2e/program.js';

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Writes an image of one pixel, `one.png`. */
export function onePixel(at: Place): void {
  writeFileSync(join(at.work, 'one.png'), Buffer.from(pixel, 'base64'));
}

/** Everything that the program has written below its home. */
export function writtenBelow(at: Place): string {
  const folder = join(at.home, '.agent');
  return readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'config.json')
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n');
}

import { isInside } from '../paths.js';
import { pathsOf } from './shell-findings.js';
import type { Scan } from './shell-types.js';

const fetching = /(?:^|\s)(?:curl|wget|http|https|xh|aria2c)\s/;
const everything = '/*';

/** Whether the text that a command is given comes from the network. */
export function comesFromNetwork(input: string): boolean {
  return fetching.test(input);
}

/** Remembers that all below the folder `text` was fetched: a clone, or an archive that was unpacked there. */
export function keepFetchedFolder(text: string, scan: Scan): void {
  for (const path of pathsOf(text, scan)) scan.fetched.add(path + everything);
}

/** True for a file that the script itself has fetched. */
export function isFetched(text: string, scan: Scan): boolean {
  const folders = [...scan.fetched]
    .filter((path) => path.endsWith(everything))
    .map((path) => path.slice(0, -everything.length));
  return pathsOf(text, scan).some((path) => scan.fetched.has(path) || folders.some((folder) => isInside(path, folder)));
}

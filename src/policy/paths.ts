/** The path `text` means from `base`, absolute, without `.`, `..` and doubled slashes. `~` and `~/` are the home
 * directory. */
export function resolvePath(base: string, text: string, home: string): string {
  const expanded = text === '~' || text.startsWith('~/') ? home + text.slice(1) : text;
  return normalise(expanded.startsWith('/') ? expanded : `${base}/${expanded}`);
}

/** An absolute path in its shortest spelling, by text alone; links are not followed. */
export function normalise(path: string): string {
  const kept: string[] = [];
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    if (name === '..') kept.pop();
    else kept.push(name);
  }
  const plain = `/${kept.join('/')}`;
  const throughProcess = /^\/proc\/(?:self|thread-self|\d+)\/root(\/.*)?$/.exec(plain);
  return throughProcess ? (throughProcess[1] ?? '/') : plain;
}

/** True for `directory` itself and everything below it. Both absolute and normalised. */
export function isInside(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`);
}

/** The last name of a path. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

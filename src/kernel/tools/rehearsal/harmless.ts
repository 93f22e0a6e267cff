/** Names of folders in which programs keep what they can make again and nobody needs. */
const cacheNames = new Set(['__pycache__', '.pytest_cache', '.mypy_cache', '.ruff_cache']);
const inHome: readonly string[] = ['.cache', '.npm/_logs', '.npm/_cacache', '.npm/_update-notifier-last-checked'];
const atAnyDepth = /(?:^|\/)node_modules\/\.vite(?:\/vitest|-temp)(?:\/|$)/;
const inTemporary = /^\/tmp\/(?:hsperfdata_[^/]*|node-compile-cache)(?:\/|$)/;

/** Returns true if a write to an absolute path has no consequence, because the file is a cache that a program makes
 * again by itself. Later commands need the files in `target/` and `dist/`, `.tsbuildinfo` and `.eslintcache`, so those
 * count. */
export function isHarmlessPath(path: string, home: string): boolean {
  if (path.split('/').some((name) => cacheNames.has(name))) return true;
  if (inHome.some((name) => path === `${home}/${name}` || path.startsWith(`${home}/${name}/`))) return true;
  return atAnyDepth.test(path) || inTemporary.test(path);
}

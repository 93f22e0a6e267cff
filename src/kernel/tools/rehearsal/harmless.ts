/** Names of folders in which programs keep what they can make again and nobody needs. */
const cacheNames = new Set(['__pycache__', '.pytest_cache', '.mypy_cache', '.ruff_cache']);
const inHome: readonly string[] = ['.cache', '.npm/_logs', '.npm/_cacache', '.npm/_update-notifier-last-checked'];
const atAnyDepth = /(?:^|\/)node_modules\/\.vite(?:\/vitest|-temp)(?:\/|$)/;
const inTemporary = /^\/tmp\/(?:hsperfdata_[^/]*|node-compile-cache)(?:\/|$)/;

/** Whether what is written at an absolute path counts for nothing: a cache that a program makes again by itself. Later
 * commands need what is in `target/`, `dist/`, `.tsbuildinfo` or `.eslintcache`, so those count. */
export function isHarmlessPath(path: string, home: string): boolean {
  if (path.split('/').some((name) => cacheNames.has(name))) return true;
  if (inHome.some((name) => path === `${home}/${name}` || path.startsWith(`${home}/${name}/`))) return true;
  return atAnyDepth.test(path) || inTemporary.test(path);
}

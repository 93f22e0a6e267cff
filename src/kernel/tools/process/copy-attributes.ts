import { loadStartChild } from './load-start-child.js';

const timeoutMs = 10_000;

/** Gives the file `to` the owner, mode, access control list and extended attributes of `from`, as far as we may; the
 * content stays. Node has no calls for them, so GNU `cp` does it. Returns false where that is not possible. */
export async function copyAttributes(from: string, to: string): Promise<boolean> {
  const { runQuietly } = await loadStartChild();
  const args = ['--attributes-only', '--no-dereference', '--preserve=mode,ownership,xattr', '--', from, to];
  return (await runQuietly('cp', args, timeoutMs)) === 0;
}

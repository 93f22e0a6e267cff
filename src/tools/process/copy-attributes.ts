import { randomUUID } from 'node:crypto';
import { createProcessRunner } from './runner.js';

const timeoutMs = 10_000;
const maxTotalBytes = 65_536;

/** Gives the file `to` the owner, mode, access control list and extended attributes of `from`, as far as we may; the
 * content stays. Node has no calls for them, so GNU `cp` does it. Returns false where that is not possible. */
export async function copyAttributes(from: string, to: string): Promise<boolean> {
  const result = await createProcessRunner({ marker: { name: 'AGENT_COPY', value: randomUUID() } }).run({
    file: 'cp',
    args: ['--attributes-only', '--no-dereference', '--preserve=mode,ownership,xattr', '--', from, to],
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs,
    maxTotalBytes,
    onOutput: () => undefined,
  });
  return result.ended === 'exit' && result.exitCode === 0;
}

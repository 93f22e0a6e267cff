import { openStoredKeys, type StoredKeys } from '../../../src/kernel/secrets/stored-keys.js';

/** The keys of a file, on a machine without a keyring. */
export async function storedKeys(file = '/nowhere/keys.json'): Promise<StoredKeys> {
  return await openStoredKeys({
    file,
    ephemeral: file.startsWith('/nowhere'),
    keyring: () => Promise.reject(new Error('there is no keyring')),
    onKey: () => undefined,
    onProblem: () => undefined,
    runCommand: () => Promise.resolve({ failure: 'there are no commands' }),
  });
}

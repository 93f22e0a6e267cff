import { StoreError } from './errors.js';

/** Matches `sqlite:` before a path, absolute or not. A drive letter is not a scheme. */
const schemePattern = /^([a-z][a-z0-9+.-]+):(.*)$/is;

/** The path of the database.
 * Throws a StoreError `scheme` for another kind of store. */
export function databasePath(url: string): string {
  const [, scheme, rest = ''] = schemePattern.exec(url) ?? [];
  if (scheme === undefined) return url;
  const path = rest.replace(/^\/\/(?=\/)/, '');
  if (scheme.toLowerCase() === 'sqlite' && path !== '') return path;
  throw new StoreError(
    'scheme',
    scheme.toLowerCase() === 'sqlite'
      ? 'The store "sqlite:" has no file'
      : `There is no store of the kind "${scheme}:"`,
    'Give the path of a file, or sqlite:<path>.',
  );
}

import { shownPath } from '../files/open-file.js';
import { walkFiles, type WalkRequest } from './file-walk.js';

/** More entries are not looked at to explain an empty result. */
const maxEntries = 20_000;

/** Returns why a search that found nothing had no file to look at, or null if it had one. The request is that of the
 * search. Ends early when the signal aborts. */
export async function explainEmptySearch(request: WalkRequest, filter: string | null): Promise<string | null> {
  if ((await firstFile(request)) !== null) return null;
  if (!request.includeIgnored) {
    const ignored = await firstFile({ ...request, includeIgnored: true });
    if (ignored !== null)
      return `Ignore files hide every match, such as ${shownPath(ignored)}; include_ignored: true reads them.`;
  }
  if (filter === null) return null;
  const { override: _, ...unfiltered } = request;
  const other = await firstFile({ ...unfiltered, includeIgnored: true });
  if (other === null) return null;
  return (
    `The filter ${JSON.stringify(filter)} matches no file here (there is ${shownPath(other)}, for example). A filter with / is ` +
    'relative to the working directory, and several endings are written *.{ts,tsx}.'
  );
}

/** Returns one file of a walk as seen from the working directory, or null. */
async function firstFile(request: WalkRequest): Promise<string | null> {
  const stop = new AbortController();
  const cancel = (): void => {
    stop.abort();
  };
  request.signal.addEventListener('abort', cancel, { once: true });
  let entries = 0;
  const pattern = {
    matches: (path: string): boolean => isInBounds() && (request.pattern?.matches(path) ?? true),
    leadsInto: (folder: string): boolean => isInBounds() && (request.pattern?.leadsInto(folder) ?? true),
  };
  const isInBounds = (): boolean => ++entries <= maxEntries;
  let first: string | null = null;
  await walkFiles({ ...request, pattern, signal: stop.signal, unreadable: () => undefined }, (path) => {
    first ??= (request.shown ?? '') + path;
    cancel();
  });
  request.signal.removeEventListener('abort', cancel);
  return first;
}

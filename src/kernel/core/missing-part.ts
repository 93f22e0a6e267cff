/** Returns the message for a part of the program that could not be loaded; null for any other error. Parts are loaded
 * when they are needed, so an upgrade while the program runs shows late: files of another version have other names. */
export function missingPart(error: unknown): { readonly message: string; readonly hint: string } | null {
  if (!(error instanceof Error)) return null;
  if (!('code' in error) || (error.code !== 'MODULE_NOT_FOUND' && error.code !== 'ERR_MODULE_NOT_FOUND')) return null;
  const file = /'(?:[^']*[/\\])?([^'/\\]+)'/.exec(error.message)?.[1] ?? '';
  return {
    message: `a part of the program is missing or of another version: ${file}`,
    hint: 'It was changed or removed while agent ran, or is not fully installed: start agent again (continue with agent -c), or install it again.',
  };
}

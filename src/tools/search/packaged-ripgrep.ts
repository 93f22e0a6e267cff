/** Where the package of this platform has ripgrep; null where it is not installed. A file of its own, and small: the
 * package is an ES module, and files that are kept compiled (src/cli/compiled-files.ts) cannot import one. */
export async function packagedRipgrep(): Promise<string | null> {
  return await import('@vscode/ripgrep').then(
    (found) => found.rgPath,
    () => null,
  );
}

/** Where the package of this platform has ripgrep; null where it is not installed. */
export async function packagedRipgrep(): Promise<string | null> {
  return await import('@vscode/ripgrep').then(
    (found) => found.rgPath,
    () => null,
  );
}

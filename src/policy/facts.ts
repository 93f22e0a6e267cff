/** What policy needs to know of the machine. It never touches a file itself; cli implements this with node:fs. */
export interface PathFacts {
  /** The user's home directory, absolute. */
  readonly home: string;
  /** The directory the session works in, absolute and with links resolved: what "inside the workspace" means. */
  readonly workspace: string;
  /** Absolute directories and files of the program's own configuration, store and log. */
  readonly ownPaths: readonly string[];
  /** Where the kernel would land on an absolute path that may hold `.`, `..` and links: links are followed one
   * component at a time (`link/../x` is beside the link's target), and names that do not exist are kept as they are
   * behind the last directory that does. Null where that cannot be told (a loop, no permission, a name too long). Never
   * rejects. */
  landing(path: string): Promise<string | null>;
  /** A regular file that is no link and has at most `maxBytes`; `refused` for whatever else is there. Never rejects. */
  readWhole(path: string, maxBytes: number): Promise<Uint8Array | 'missing' | 'refused'>;
}

/** What policy needs to know of the machine. It never touches a file itself; cli implements this with node:fs. */
export interface PathFacts {
  /** The user's home directory, absolute. */
  readonly home: string;
  /** The directory the session works in, absolute and with links resolved: what "inside the workspace" means. */
  readonly workspace: string;
  /** Absolute directories and files of the program's own configuration, store and log. */
  readonly ownPaths: readonly string[];
  /** Where the kernel would land on an absolute path that may hold `.`, `..` and links: links are followed one component at a time
   *  (`link/../x` is beside the link's target), and names that do not exist are kept as they are behind the last directory that does.
   *  Null where that cannot be told (a loop, no permission, a name too long). Never rejects. */
  landing(path: string): Promise<string | null>;
  /** The text of a small regular file, at most `maxBytes` of it; null where there is none or it cannot be read. Never rejects. */
  readText(path: string, maxBytes: number): Promise<string | null>;
}

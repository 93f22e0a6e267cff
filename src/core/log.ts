/** The program's own log file. Never on stdout; keys and headers are never passed to it. */
export type Log = (entry: { readonly at: string; readonly message: string; readonly [extra: string]: unknown }) => void;

export type StoreErrorCode =
  | 'scheme'
  | 'driver'
  | 'sqlite_version'
  | 'newer'
  | 'foreign'
  | 'unwritable'
  | 'damaged'
  | 'busy'
  | 'disk_full'
  | 'io'
  | 'no_session'
  | 'exists'
  | 'seq_taken'
  | 'in_use'
  | 'rejected'
  | 'closed'
  | 'unreachable'
  | 'refused'
  | 'tls'
  | 'uninitialised'
  | 'older'
  | 'forbidden'
  | 'slow';

/** An error for the user: `message` says what is wrong (one sentence, no full
 * stop), `hint` what to do about it. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  readonly hint: string;

  constructor(code: StoreErrorCode, message: string, hint: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StoreError';
    this.code = code;
    this.hint = hint;
  }
}

/** The result code of an error SQLite raised (`SQLITE_BUSY`,
 * `SQLITE_IOERR_FSYNC`), or null for any other error. */
export function sqliteCode(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'SqliteError') return null;
  const code: unknown = Reflect.get(error, 'code');
  return typeof code === 'string' ? code : null;
}

/** True when the file is at fault and not the request. Damage of the search
 * index alone (`SQLITE_CORRUPT_VTAB`) does not count. */
export function isDamage(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'damaged';
  const code = sqliteCode(error);
  return code !== null && /^SQLITE_(CORRUPT(?!_VTAB)|NOTADB)/.test(code);
}

/** True when another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error) ?? '');
}

const explanations: readonly (readonly [RegExp, StoreErrorCode, (file: string) => string, string])[] = [
  [
    /^SQLITE_(BUSY|LOCKED)/,
    'busy',
    (file) => `The session database ${file} is locked by another process`,
    'Wait for the other program, or stop it.',
  ],
  [
    /^SQLITE_FULL/,
    'disk_full',
    (file) => `The disk is full: ${file} cannot grow`,
    'Free some space; unsaved events are retried.',
  ],
  [
    /^SQLITE_(READONLY|CANTOPEN|PERM|AUTH)/,
    'unwritable',
    (file) => `The session database ${file} cannot be written`,
    'Check the owner and the mode of the file and its folder, or use --ephemeral.',
  ],
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    'damaged',
    (file) => `The session database ${file} is damaged`,
    'Start the program again: it moves the file aside and saves what can be read.',
  ],
  [
    /^SQLITE_IOERR/,
    'io',
    (file) => `The session database ${file} could not be read or written: the disk reports an error`,
    'Check the disk and the system log, then start the program again.',
  ],
];

/** Turns SQLite's result codes into sentences. A StoreError stays as it is. */
export function asStoreError(error: unknown, file: string): StoreError {
  if (error instanceof StoreError) return error;
  const code = sqliteCode(error) ?? '';
  const found = explanations.find(([pattern]) => pattern.test(code));
  if (found) return new StoreError(found[1], found[2](file), found[3], error);
  const message = error instanceof Error ? error.message : String(error);
  return new StoreError(
    'rejected',
    `The session database refused the change (${message})`,
    'Run again with --debug for the details.',
    error,
  );
}

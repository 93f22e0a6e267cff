import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isSessionId, ulid } from '../../core/store.js';
import { StoreError } from '../../store/errors.js';
import { CliError, type CommandLine, exit, type Verb } from '../command.js';
import { oneLine } from '../line-output.js';
import { type ExportedSession, readJsonl } from './session-lines.js';

interface ImportOptions {
  readonly asNew?: boolean;
}

export const importSession: Verb = {
  line: {
    example: 'agent sessions import session.jsonl',
    options: (command) => command.option('--as-new', 'under an id of its own'),
    run: (line, [file = ''], options: ImportOptions) => importFile(line, file, options),
  },
};

/** Imports a whole session from JSON Lines or nothing. The session keeps its id unless `--as-new` is given. */
async function importFile(
  { out, guards, withStore }: CommandLine,
  file: string,
  options: ImportOptions,
): Promise<number> {
  return await withStore(async ({ store, settings }) => {
    const read = readSession(resolve(settings.cwd, file), file);
    if (!options.asNew && !isSessionId(read.row.id)) {
      throw new CliError(
        exit.usage,
        `${file}: \`${oneLine(read.row.id)}\` is no session id: it is neither a ULID nor a UUID of version 7`,
        '--as-new imports it under an id of its own.',
      );
    }
    const row = options.asNew ? { ...read.row, id: ulid(Date.now(), randomBytes(16)) } : read.row;
    try {
      const guard = await guards.session(read.events);
      await store.adopt(
        row,
        read.events.map((event) => guard.event(event)),
      );
    } catch (error) {
      if (error instanceof StoreError && error.code === 'exists')
        throw new CliError(
          exit.session,
          `session ${row.id} is in the store already`,
          '--as-new imports it under an id of its own.',
        );
      throw error;
    }
    out.print(`${row.id}\n`);
    if (row.provider !== null && row.provider !== 'offline')
      out.error(`agent: ${untrusted(row.provider, read.writtenAddress)}\n`);
    return exit.done;
  });
}

/** A file may name any server: the texts of a session go only where the user's own settings or command line say. */
function untrusted(provider: string, address: string | undefined): string {
  const named =
    address === undefined
      ? 'An imported session has no address'
      : `The address in the file, ${oneLine(address)}, is not trusted`;
  return `${named}: the session goes on where \`${oneLine(provider)}\` is configured to be, or where --base-url says.`;
}

function readSession(path: string, shown: string): ExportedSession {
  try {
    return readJsonl(path === '/dev/stdin' ? readFileSync(0, 'utf8') : readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      exit.usage,
      `${shown}: ${reason}`,
      'agent sessions export <session> --format jsonl writes what can be imported.',
    );
  }
}

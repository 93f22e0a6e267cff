import { exit } from '../../kernel/console/command.js';
import { CliError } from '../../kernel/console/command.js';
import { isSessionId } from '../../kernel/core/store.js';
import type { TeamLog } from './team.js';

/** The session on the server whose id is `text` or begins with it; null where there is none. Throws a `CliError` (7)
 * where several do. */
export async function idOnServer({ sessions }: Pick<TeamLog, 'sessions'>, text: string): Promise<string | null> {
  if (isSessionId(text)) return text.toUpperCase();
  const start = text.toUpperCase();
  // Four characters or more: fewer stand for a day that all ids of some years have.
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{3,}$/.test(start)) return null;
  const [first, second] = (await sessions(start, 2)).map(({ id }) => id).filter((id) => id.startsWith(start));
  if (first === undefined || second === undefined) return first ?? null;
  throw new CliError(
    exit.session,
    `several sessions on the server begin with \`${text}\``,
    `Give more of the id: ${first}, ${second}`,
  );
}

import { maxMatches, type SessionCatalogue, type SessionRow } from '../../core/store.js';
import { CliError, exit } from '../command.js';

/** Finds a session by id, unique prefix or title. Throws a `CliError` with exit code 7 otherwise. */
export async function findSession(store: SessionCatalogue, text: string): Promise<SessionRow> {
  const match = await store.find(text);
  switch (match.found) {
    case 'one':
      return match.session;
    case 'many':
      throw new CliError(
        exit.session,
        `${match.sessions.length < maxMatches ? '' : 'at least '}${match.sessions.length} sessions match \`${text}\``,
        `Give more of the id: ${match.sessions
          .slice(0, 5)
          .map((row) => row.id)
          .join(', ')}`,
      );
    case 'none':
      throw new CliError(
        exit.session,
        `there is no session \`${text}\``,
        match.nearest.length > 0 ? `Nearest: ${match.nearest.join(', ')}` : 'agent sessions list shows them.',
      );
    default:
      return match satisfies never;
  }
}

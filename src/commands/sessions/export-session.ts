import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { SecretGuard } from '../../core/secrets/guard.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import { CliError, exit } from '../cli-error.js';
import type { CommandLine, Repl, Verb } from '../command.js';
import { toMarkdown, toScript } from './export-text.js';
import { type ExportedSession, toJsonl } from './session-lines.js';
import { findSession } from './stored-session.js';

interface Options {
  readonly format?: string;
  readonly output?: string;
  readonly redact?: boolean;
}

const toHtml = async (session: ExportedSession): Promise<string> => (await import('./export-html.js')).toHtml(session);

const formats: Readonly<Record<string, (session: ExportedSession) => string | Promise<string>>> = {
  md: toMarkdown,
  jsonl: toJsonl,
  html: toHtml,
  script: (session) => toScript(session.events),
};

/** `agent sessions export`, and `/export` for the session on the screen. */
export const exportSession: Verb = {
  line: {
    example: 'agent sessions export 0198 --format html -o session.html',
    options: (command) =>
      command
        .option('--format <md|jsonl|html|script>', 'default: what the name of the file says, else md')
        .option('-o, --output <file>', 'into this file (mode 0600)')
        .option('--no-redact', 'leave keys as they are'),
    run: (line, [id = ''], options: Options) => exportStored(line, id, options),
  },
  slash: exportShown,
};

/** On stdout, or into a file (0600) with `-o`. Keys are masked unless `--no-redact`. */
async function exportStored({ out, guards, withStore }: CommandLine, id: string, options: Options): Promise<number> {
  const name = options.format ?? formatOfFile(options.output) ?? 'md';
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (!format)
    throw new CliError(
      exit.usage,
      `--format: unknown format \`${name}\``,
      `${didYouMean(name, Object.keys(formats))} Known: ${Object.keys(formats).join(', ')}`.trim(),
    );
  return await withStore(async ({ store, settings }) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    const guard = options.redact === false ? null : await guards.export();
    const text = await format(guard === null ? { row, events } : redacted({ row, events }, guard));
    if (options.output === undefined) out.data(name === 'jsonl' ? escapedJson(text) : text);
    else write(resolve(settings.cwd, options.output), text);
    const masked = guard?.count() ?? 0;
    if (masked > 0)
      out.error(
        `agent: ${masked} value${masked === 1 ? '' : 's'} that looked like keys ${masked === 1 ? 'was' : 'were'} masked; --no-redact leaves them\n`,
      );
    return exit.done;
  });
}

/** Masks what looks like a secret in what texts say, also inside JSON. What a provider sealed for itself (`reasoning`)
 * loses only the values that are known: another change would make it worthless. */
function redacted({ row, events }: ExportedSession, guard: SecretGuard): ExportedSession {
  return {
    row: { ...row, title: row.title === null ? null : guard.text(row.title) },
    events: events.map((event) => guard.event(event)),
  };
}

function formatOfFile(path: string | undefined): string | undefined {
  return /\.(md|jsonl|html)$/i.exec(path ?? '')?.[1]?.toLowerCase();
}

function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600 });
  } catch (error) {
    throw new CliError(
      exit.failed,
      `cannot write ${path}: ${error instanceof Error ? error.message : String(error)}`,
      'Give another path to -o.',
    );
  }
}

/** Keys are masked. A file that is there is not written over. */
async function exportShown(argument: string, { screen, sessions, settings, line }: Repl): Promise<void> {
  const { row, session } = sessions.current();
  const events = session.events();
  if (events.length === 0) {
    screen.notice('info', 'There is nothing to export yet.');
    return;
  }
  const name = argument === '' ? `session-${row.id.slice(0, 13)}.md` : argument;
  const guard = await line.guards.export();
  const format = /\.jsonl$/i.test(name) ? toJsonl : /\.html?$/i.test(name) ? toHtml : toMarkdown;
  const text = await format(redacted({ row, events }, guard));
  try {
    writeFileSync(resolve(settings.cwd, name), text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    screen.notice('error', `${name} was not written: ${error instanceof Error ? error.message : String(error)}`);
    return;
  }
  const masked = guard.count();
  screen.notice(
    'info',
    `This session is in ${name}.${masked > 0 ? ` ${masked} value${masked === 1 ? '' : 's'} that looked like keys ${masked === 1 ? 'is' : 'are'} masked in it.` : ''}`,
  );
}

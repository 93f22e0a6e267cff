import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { findSession } from '../../cli/session/find-session.js';
import type { RootOptions } from '../../cli/options.js';
import { printData, printError } from '../../cli/print.js';
import { exportGuard, type Secret } from '../../cli/secrets.js';
import type { Event } from '../../core/event.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import { CliError, exit } from '../cli-error.js';
import { withStore } from '../record/record-opening.js';
import { toHtml } from './export-html.js';
import { toMarkdown, toScript } from './export-text.js';
import { type ExportedSession, toJsonl } from './session-lines.js';

type Options = RootOptions & { readonly format?: string; readonly output?: string; readonly redact?: boolean };

const formats: Readonly<Record<string, (session: ExportedSession) => string | Promise<string>>> = {
  md: toMarkdown,
  jsonl: toJsonl,
  html: toHtml,
  script: (session) => toScript(session.events),
};

/** `agent sessions export <session>`: on stdout, or into a new file (0600) with `-o`. Keys are masked unless
 * `--no-redact`. */
export async function exportSession(id: string, options: Options): Promise<number> {
  const name = options.format ?? formatOfFile(options.output) ?? 'md';
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (!format)
    throw new CliError(
      exit.usage,
      `--format: unknown format \`${name}\``,
      `${didYouMean(name, Object.keys(formats))} Known: ${Object.keys(formats).join(', ')}`.trim(),
    );
  return await withStore(options, async (store, setup) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    const redactor = options.redact === false ? null : createRedactor(setup.env, setup.secrets);
    const session: ExportedSession =
      redactor === null
        ? { row, events }
        : {
            row: { ...row, title: row.title === null ? null : redactor.text(row.title) },
            events: events.map((event) => redactor.event(event)),
          };
    const text = await format(session);
    if (options.output === undefined) printData(name === 'jsonl' ? escapedJson(text) : text);
    else write(resolve(setup.cwd, options.output), text);
    const masked = redactor?.count() ?? 0;
    if (masked > 0)
      printError(
        `agent: ${masked} value${masked === 1 ? '' : 's'} that looked like keys ${masked === 1 ? 'was' : 'were'} masked; --no-redact leaves them\n`,
      );
    return exit.done;
  });
}

function formatOfFile(path: string | undefined): string | undefined {
  const ending = /\.(md|jsonl|html)$/i.exec(path ?? '')?.[1]?.toLowerCase();
  return ending;
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

export interface Redactor {
  text(value: string): string;
  event(event: Event): Event;
  /** How many places were masked so far. */
  count(): number;
}

/** Masks the given values, those of variables that are named like secrets, and whatever looks like one, as a session
 * does: in what texts say, also inside JSON. What a provider sealed for itself (`reasoning`) loses only the given
 * values: another change would make it worthless. */
export function createRedactor(
  env: Readonly<Record<string, string | undefined>>,
  secrets: readonly Secret[],
): Redactor {
  const guard = exportGuard(env, secrets, '[redacted]');
  return { text: (value) => guard.text(value), event: (event) => guard.event(event), count: () => guard.count() };
}

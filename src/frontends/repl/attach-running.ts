import { setTimeout as wait } from 'node:timers/promises';
import { connectOwner, listOwners } from '../../app/live/connect-owner.js';
import type { OwnerFacts } from '../../app/live/messages.js';
import { chosenRow } from '../../app/find-session.js';
import { openRecord } from '../../app/open-record.js';
import { readSettings } from '../../app/settings.js';
import { askLine } from '../../kernel/console/ask.js';
import { CliError, exit } from '../../kernel/console/command.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { outputIsTerminal, printError } from '../../kernel/console/print.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { findSession } from '../../kernel/console/stored-session.js';
import { directoryId } from '../../kernel/disk/directory-id.js';
import { type EarlyFrame, rowAbove } from '../../ui/early-frame.js';
import { printErrorWrapped, printWrapped } from './print-wrapped.js';
import { shortId } from './short-id.js';
import { type Attached, attachTerminal } from './attach-client.js';

/** The end after an attached terminal, or a conversation in this process. */
export type After = { readonly exitCode: number } | { readonly options: RootOptions };

/** A session whose process was killed is looked for this long: another client may continue it at this moment. */
const takeOverMs = 5_000;
const betweenMs = 100;
/** The process of a lost session is asked this long whether it still runs. */
const longestLookMs = 500;

/** Attaches to the session that these options continue, if another process runs it. Null: none does. */
export async function attachIfRunning(
  settings: Settings,
  options: RootOptions,
  words: readonly string[],
  early: EarlyFrame | null,
): Promise<After | null> {
  const id = await runningId(settings, options, early);
  return id === null ? null : await attachTo(settings, id, options, words, early);
}

/** Attaches to a session that another process runs, or began to run a moment ago. Null: none does. */
export async function attachInUse(settings: Settings, id: string, options: RootOptions): Promise<After | null> {
  const begun = performance.now();
  for (;;) {
    const after = await attachTo(settings, id, options, [], null);
    if (after !== null || performance.now() - begun > takeOverMs) return after;
    await wait(betweenMs);
  }
}

/** Returns the id of the session that `-c` or `-r` name; null where they name none. */
async function runningId(settings: Settings, options: RootOptions, early: EarlyFrame | null): Promise<string | null> {
  const { store } = await openRecord(settings, () => undefined, rowAbove(early));
  try {
    const choice = {
      continueNewest: options.continue === true,
      resume: typeof options.resume === 'string' ? options.resume : null,
      fork: false,
    };
    const { cwd } = settings;
    return (await chosenRow(store, choice, { cwd, directoryId: directoryId(cwd) ?? undefined }))?.id ?? null;
  } catch {
    return null; // Opening the session says what is wrong.
  } finally {
    await store.close();
  }
}

async function attachTo(
  settings: Settings,
  id: string,
  options: RootOptions,
  words: readonly string[],
  early: EarlyFrame | null,
): Promise<After | null> {
  const text = words.join(' ').trim();
  const attached = await attachTerminal(settings, id, () => {
    // The owner draws the screen from here on.
    const typed = early?.withdraw() ?? [];
    return text === '' ? typed : [`\x1b[200~${text}\x1b[201~`, '\r', ...typed];
  });
  return attached === null ? null : await afterwards(attached, settings, id, options);
}

async function afterwards(attached: Attached, settings: Settings, id: string, options: RootOptions): Promise<After> {
  switch (attached.type) {
    case 'ended':
      if (attached.text !== '') printWrapped(attached.text);
      return { exitCode: attached.exitCode };
    case 'refused':
      throw new CliError(exit.session, `session ${id} cannot be shown here`, attached.text);
    case 'silent':
      throw new CliError(
        exit.session,
        `the process that runs session ${id} does not answer`,
        `agent stop ${id} ends it; then agent -r ${id} continues the session.`,
      );
    case 'lost':
      printErrorWrapped(
        (await runs(settings, id, attached.pid))
          ? 'agent: the process of this session has closed the connection, because this terminal did not read. Attaching again.'
          : 'agent: the process of this session has ended unexpectedly. The session continues here.',
      );
      return { options: continued(options, { resume: id }) };
    case 'open':
      return { options: continued(options, optionsOf(attached.arguments)) };
    default:
      return attached satisfies never;
  }
}

/** Returns true if the process still runs the session. */
async function runs(settings: Settings, id: string, pid: number): Promise<boolean> {
  const client = await connectOwner(settings.config.files, id, { client: 'ps', timeoutMs: longestLookMs }).catch(
    () => null,
  );
  client?.close();
  return client?.state.facts.pid === pid;
}

type Chosen = Pick<RootOptions, 'resume' | 'fork' | 'at'>;

/** Returns the options of a conversation that follows in this process. */
function continued(options: RootOptions, chosen: Chosen): RootOptions {
  const { continue: _newest, resume: _session, fork: _fork, at: _at, sessionId: _id, name: _name, ...kept } = options;
  return { ...kept, ...chosen };
}

function optionsOf(words: readonly string[]): Chosen {
  const valueOf = (name: string): string | undefined => {
    const at = words.indexOf(name);
    return at < 0 ? undefined : words[at + 1];
  };
  const [resume, at] = [valueOf('-r'), valueOf('--at')];
  return {
    ...(resume === undefined ? {} : { resume }),
    ...(words.includes('--fork') ? { fork: true } : {}),
    ...(at === undefined ? {} : { at }),
  };
}

/** `agent attach`. `session`: an id, the beginning of one, or a title; null: the one that runs in this directory, else a
 * choice. */
export async function attachSession(options: RootOptions, session: string | null): Promise<After> {
  if (!process.stdin.isTTY || !outputIsTerminal())
    throw new CliError(exit.usage, 'attach needs a terminal', 'Follow the session with agent watch instead.');
  const settings = await readSettings(options);
  const { owners } = await listOwners(settings.config.files);
  const id =
    session === null ? await chosenOwner(settings, owners) : await namedOwner(settings, owners, session.trim());
  const after = await attachTo(settings, id, options, [], null);
  if (after) return after;
  throw notRunning(id);
}

function notRunning(id: string): CliError {
  return new CliError(exit.session, `session ${id} does not run`, `agent -r ${id} continues it.`);
}

async function namedOwner(settings: Settings, owners: readonly OwnerFacts[], name: string): Promise<string> {
  const ids = owners.map(({ session_id: id }) => id);
  const named = ids.filter(
    (id) => id === name.toUpperCase() || (name.length >= 4 && id.startsWith(name.toUpperCase())),
  );
  const [only] = named;
  if (only !== undefined && named.length === 1) return only;
  const { store } = await openRecord(settings, () => undefined);
  try {
    return (await findSession(store, name)).id;
  } finally {
    await store.close();
  }
}

async function chosenOwner({ cwd }: Settings, owners: readonly OwnerFacts[]): Promise<string> {
  const here = owners.filter((owner) => owner.cwd === cwd);
  const offered = here.length > 0 ? here : owners;
  const [first] = offered;
  if (!first)
    throw new CliError(
      exit.session,
      'no session runs on this machine',
      'agent --bg "the prompt" starts one; agent -c continues the newest one here.',
    );
  if (here.length === 1) return first.session_id;
  const rows = offered.map(
    ({ session_id: id, state, title, cwd: folder }, index) =>
      `${index + 1}  ${shortId(id)}  ${state.replaceAll('_', ' ')}  ${title ?? '(no title)'}  ${folder}`,
  );
  printError(`${rows.join('\n')}\n`);
  const answer = (await askLine('Number of the session: ')).trim();
  const chosen = offered[Number(answer) - 1];
  if (chosen) return chosen.session_id;
  throw new CliError(exit.usage, `\`${answer}\` is not in the list`, 'Name the session: agent attach <id>.');
}

import { openingFrame } from '../../ui/opening-frame.js';
import type { Greeting, ReplOptions } from '../../ui/repl-options.js';
import type { StatusFacts } from '../../ui/components/status-line.js';
import type { Workbench } from '../open/workbench.js';
import { keepFrame, stateOf, type FileState } from './kept-frame.js';
import type { SessionDesk } from './session-desk.js';

/** What a REPL opened with. */
export interface Opened {
  readonly options: ReplOptions;
  readonly greeting: Greeting | null;
  readonly status: StatusFacts;
}

/** What the next start will find in the input, and the file it stands in. */
interface Draft {
  readonly file: FileState;
  readonly text: string;
}

/** Keeps a frame; to be called when the database is closed. */
type Keep = () => void;

/** Makes the frames with which the next start like this one opens, and the next that goes on with this session. What it
 * gives keeps them: the second holds while the database has not changed. Never rejects: a REPL that ends has nothing to
 * lose by it. */
export async function prepareNextStart(bench: Workbench, desk: SessionDesk, opened: Opened): Promise<Keep> {
  const nothing = (): void => {
    /* Nothing is kept. */
  };
  // Line by line there is nothing to paint.
  if (opened.options.facts.plain || bench.options.ephemeral) return nothing;
  return await prepared(bench, desk, opened).catch((error: unknown) => {
    bench.setup.log({ at: 'next-start', message: String(error) });
    return nothing;
  });
}

async function prepared(bench: Workbench, desk: SessionDesk, opened: Opened): Promise<Keep> {
  // In this order: what is written in between makes the frame void.
  const file = stateOf(`${bench.setup.config.files.history}.draft`);
  const draft = { file, text: (await opened.options.history.loadDraft?.())?.text ?? '' };
  const keeps = [
    keepGreeting(bench, opened, draft),
    ...((await isContinuable(bench, desk)) ? [keepExchange(bench, desk, opened, draft)] : []),
  ];
  return () => {
    for (const keep of keeps) keep();
  };
}

function keepGreeting({ setup }: Workbench, { options, greeting, status }: Opened, draft: Draft): Keep {
  if (!greeting)
    return () => {
      /* It opened with an exchange. */
    };
  const frame = openingFrame(
    { ...options, status: () => ({ ...status, branch: options.status().branch, mode: firstMode(options) }) },
    { greeting, events: [], draft: draft.text },
  );
  return () => {
    keepFrame({ ...startOf(setup.env, options), argv: process.argv.slice(2) }, [draft.file], frame);
  };
}

function keepExchange(
  { setup, options: given }: Workbench,
  desk: SessionDesk,
  { options }: Opened,
  draft: Draft,
): Keep {
  const { database } = setup.config.files;
  const frame = openingFrame(
    { ...options, status: () => ({ ...options.status(), mode: firstMode(options) }) },
    { greeting: null, events: desk.current().session.events(), draft: draft.text },
  );
  return () => {
    keepFrame(
      { ...startOf(setup.env, options), argv: given.continue ? process.argv.slice(2) : ['-c'] },
      [stateOf(database), stateOf(`${database}-wal`), draft.file],
      frame,
    );
  };
}

/** Whether `-c` goes on with this session, right here. */
async function isContinuable({ setup, options, durable, store }: Workbench, desk: SessionDesk): Promise<boolean> {
  const { session } = desk.current();
  if (!durable || session.events().length === 0 || options.fork || options.at !== undefined) return false;
  return (
    (options.continue === true || setup.cwd === process.cwd()) && (await store.newest(setup.cwd))?.id === session.id
  );
}

function startOf(
  env: NodeJS.ProcessEnv,
  { output: { columns = 0, rows = 0 } }: ReplOptions,
): { readonly env: NodeJS.ProcessEnv; readonly columns: number; readonly rows: number } {
  return { env, columns, rows };
}

/** The mode that vim's keys begin in. */
function firstMode({ keys }: ReplOptions): string | null {
  return keys === 'vim' ? 'insert' : null;
}

import { counted } from '../kernel/tools/define-tool.js';
import { parseJson } from '../kernel/core/json.js';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { withoutRepeats } from '../kernel/agent/loop-detection.js';
import { type ChangeData, type Event, knownEvent } from '../kernel/core/event.js';
import { isRecord, type Json } from '../kernel/core/json.js';
import type { SecretGuard } from '../kernel/core/secrets/guard.js';
import type { SessionRow, Store } from '../kernel/core/store.js';
import { type BoundCall, noSession, type Registry, type ToolContext } from '../kernel/core/tool.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { type FinishedCall, finishedCallRows } from '../ui/calls/call-rows.js';
import type { ItemStyle } from '../ui/item-style.js';
import { renderMarkdown } from '../ui/markdown/incremental.js';
import { emptyView, reduce } from '../ui/view.js';
import { createTheme } from '../kernel/console/theme.js';
import { CliError, type CommandLine, exit, type Printer, type CommandHandler } from '../kernel/console/command.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { columns, oneLine, printListing } from '../kernel/console/line-output.js';
import { entriesOf, type ExportEntry, shownOutput } from '../ui/export-entries.js';
import { findSession } from '../kernel/console/stored-session.js';

interface Options {
  readonly speed?: string;
  readonly instant?: boolean;
  readonly verify?: boolean;
  readonly json?: boolean;
}

/** A replay never waits longer than this for the next line. */
const longestWaitMs = 3000;
const maxResultLines = 10;

export const replay: CommandHandler = {
  line: {
    example: 'agent replay 0198 --speed 4',
    options: (command) =>
      command
        .option('--speed <n>', 'so many times as fast as it was', '1')
        .option('--instant', 'without waiting')
        .option(
          '--verify',
          'run its file and search calls again in a scratch copy of its directory and say where results differ',
        )
        .option('--json', 'with --verify: one JSON array'),
    run: (line, [id = ''], options: Options) => replaySession(line, id, options),
  },
};

/** Shows a session again, without model or tools, at its own speed or `--speed` times that. */
async function replaySession(line: CommandLine, id: string, options: Options): Promise<number> {
  const speed = Number(options.speed ?? 1);
  if (!(speed > 0))
    throw new CliError(
      exit.usage,
      `--speed: \`${options.speed ?? ''}\` is not a number above 0`,
      'For example --speed 4, or --instant.',
    );
  const { out } = line;
  return await line.withStore(async ({ store }) => {
    const row = await findSession(store, id);
    const events = await store.load(row.id);
    if (options.verify) {
      return await verifyReplay(line, { row, events, blob: (sha256) => store.blob(sha256) }, options.json === true);
    }
    const look = lookOf(out, await line.settings());
    return await show(out, events, options.instant === true || !out.isTerminal ? Infinity : speed, look);
  });
}

async function show(out: Printer, events: readonly Event[], speed: number, look: Look): Promise<number> {
  let before: number | null = null;
  const calls = finishedCalls(events);
  for (const entry of entriesOf(events)) {
    const at = finishedAt(entry);
    if (speed !== Infinity && before !== null) await wait(Math.min(longestWaitMs, Math.max(0, at - before) / speed));
    before = at;
    const call = calls.get(entry.seq);
    const text = call ? finishedCallRows(call, look).join('\n') : sanitize(lines(entry));
    out.print(`${text.trimEnd()}\n\n`, { colors: look.theme.colors });
  }
  return exit.done;
}

/** Returns the calls that have ended, by the number of the event of the call. */
function finishedCalls(events: readonly Event[]): ReadonlyMap<number, FinishedCall> {
  const seqs = new Map<string, number>();
  const calls = new Map<number, FinishedCall>();
  let view = emptyView;
  for (const event of events) {
    view = reduce({ ...view, items: [] }, { type: 'event', event }, 0);
    for (const { callId, seq } of view.calls) seqs.set(callId, seq);
    for (const item of view.items) {
      const seq = item.type === 'result' ? seqs.get(item.result.tool_call_id) : undefined;
      if (item.type === 'result' && seq !== undefined) calls.set(seq, item);
    }
  }
  return calls;
}

type Look = Pick<ItemStyle, 'theme' | 'columns' | 'detail' | 'markdown'>;

/** Without a terminal the output is the same everywhere: it has no colours, and no line is broken. */
function lookOf({ isTerminal, screen }: Printer, { env, config }: Settings): Look {
  const bits = isTerminal ? (screen.getColorDepth?.({ ...env }) ?? 1) : 1;
  const { theme: name } = config.ui;
  const isPlain = bits < 4 || name === 'none';
  const colors = isPlain ? 0 : bits >= 24 ? 16_777_216 : bits >= 8 ? 256 : 16;
  const theme = createTheme({ unicode: true, colors, theme: name === 'light' ? 'light' : 'dark' });
  const columns = isTerminal ? (screen.columns ?? 80) : 1_000_000;
  const detail = { show: config.ui.toolOutput, maxRows: config.ui.toolOutputRows };
  const markdown = (text: string): readonly string[] => renderMarkdown(text, { theme, columns, highlight: () => null });
  return { theme, columns, detail, markdown };
}

/** A call is shown with its result, so at the time of the result. */
function finishedAt(entry: ExportEntry): number {
  return entry.type === 'call' ? entry.at + (entry.result?.durationMs ?? 0) : entry.at;
}

function lines(entry: ExportEntry): string {
  switch (entry.type) {
    case 'system':
      return `(system prompt, ${counted(entry.text.split('\n').length, 'line')})`;
    case 'user':
      return `❯ ${entry.text}${entry.from === undefined ? '' : `\n  (${entry.from})`}`;
    case 'note':
    case 'assistant':
      return entry.text;
    case 'call':
      return `? ${entry.summary}`;
    case 'shell':
      return `!! ${entry.command}\n${indented(entry.output)}`;
    case 'side_question':
      return `(side question: ${entry.question})\n${indented(entry.answer)}`;
    case 'compaction':
      return `(a summary of events ${entry.from} to ${entry.to})\n${indented(entry.text)}`;
    case 'event':
      return `(${entry.kind}: ${entry.text})`;
    default:
      return entry satisfies never;
  }
}

function indented(text: string): string {
  const all = text.trimEnd().split('\n');
  const more = all.length - maxResultLines;
  return [...all.slice(0, maxResultLines), ...(more > 0 ? [`… ${more} more line${more === 1 ? '' : 's'}`] : [])]
    .map((line) => `    ${line}`)
    .join('\n');
}

interface Checked {
  readonly seq: number;
  readonly call: string;
  readonly outcome: 'same' | 'differs' | 'skipped';
  readonly note: string;
}
interface Recorded {
  readonly seq: number;
  readonly name: string;
  readonly args: string;
  readonly summary: string;
  readonly output: string;
  readonly changes: readonly ChangeData[];
}

/** Runs the recorded file and search calls again, in order, in a scratch copy of the session's directory, and says
 * where results differ. Nothing outside the copy is written. Commands are not run again; their changes are put in
 * place where the contents are in the store. Exit 0 where all are the same, else 1. */
export async function verifyReplay(
  { out, tools, guards }: CommandLine,
  { row, events, blob }: Recording,
  json: boolean,
): Promise<number> {
  const scratch = await makeScratch(row.cwd, events, { blob });
  try {
    const { registry } = await tools.open(undefined, false);
    const again: Again = { registry, known: new Map(), secrets: await guards.session(events) };
    const checked: Checked[] = [];
    for (const call of recordedCalls(events)) checked.push(await check(again, call, scratch));
    report(out, checked, json);
    return checked.some((call) => call.outcome === 'differs') ? exit.failed : exit.done;
  } finally {
    scratch.remove();
  }
}

/** A session on record, and the contents that its events refer to. */
interface Recording extends Pick<Store, 'blob'> {
  readonly row: SessionRow;
  readonly events: readonly Event[];
}

/** Shared by the calls that are run again. Secrets get the placeholders that they have on record. */
interface Again {
  readonly registry: Registry;
  readonly known: Map<string, string | null>;
  readonly secrets: SecretGuard;
}

async function check({ registry, known, secrets }: Again, call: Recorded, scratch: Scratch): Promise<Checked> {
  const line = (outcome: Checked['outcome'], note: string): Checked => ({
    seq: call.seq,
    call: call.summary,
    outcome,
    note,
  });
  const isRepeatable = registry.get(call.name)?.repeatable === true;
  const args = isRepeatable ? scratch.args(call.args) : null;
  if (args === null) {
    await scratch.apply(call.changes);
    return line('skipped', isRepeatable ? 'outside the directory' : 'not run again');
  }
  const binding = await registry.bind({ name: call.name, arguments: args });
  if (!binding.ok) return line(binding.error.code === errorCode(call.output) ? 'same' : 'differs', binding.error.error);
  const filled = secrets.restore(binding.bound.args, false);
  if (!filled.ok) {
    await scratch.apply(call.changes);
    return line('skipped', `${filled.placeholders.join(', ')} is not known`);
  }
  const { envelope, files } = await binding.bound.tool.run(filled.value, context(binding.bound, scratch.folder, known));
  for (const file of files ?? []) known.set(file.path, file.sha256);
  const now = JSON.stringify(secrets.envelope(envelope)).replaceAll(scratch.folder, scratch.root);
  const then = withoutRepeats(call.output);
  return now === then ? line('same', '') : line('differs', firstDifference(shownOutput(then), shownOutput(now)));
}

function context({ limits }: BoundCall, cwd: string, known: ReadonlyMap<string, string | null>): ToolContext {
  return {
    cwd,
    session: noSession,
    signal: AbortSignal.timeout(60_000),
    sandbox: 'off',
    limits,
    knownFiles: known,
    eventOutput: () => null,
    progress: () => undefined,
  };
}

function recordedCalls(events: readonly Event[]): readonly Recorded[] {
  const results = new Map<string, { readonly output: string; readonly changes: readonly ChangeData[] }>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'tool_result' && event.data.synthetic !== true)
      results.set(event.data.tool_call_id, { output: event.data.output, changes: changesOf(event) });
  }
  return events.flatMap((raw) => {
    const event = knownEvent(raw);
    const result = event?.kind === 'tool_call' ? results.get(event.data.id) : undefined;
    if (
      event?.kind !== 'tool_call' ||
      result === undefined ||
      /^(denied_by_user|permission_denied|cancelled|interrupted|limit_reached|rate_limited)$/.test(
        errorCode(result.output) ?? '',
      )
    )
      return [];
    return [
      {
        seq: event.seq,
        name: event.data.function.name,
        args: event.data.function.arguments,
        summary: event.content,
        ...result,
      },
    ];
  });
}

function errorCode(output: string): string | null {
  try {
    const envelope: unknown = parseJson(output);
    return isRecord(envelope) && typeof envelope.code === 'string' ? envelope.code : null;
  } catch {
    return null;
  }
}

function firstDifference(then: string, now: string): string {
  const [before, after] = [then.split('\n'), now.split('\n')];
  const at = before.findIndex((line, index) => line !== after[index]);
  const line = at < 0 ? before.length : at;
  return `line ${line + 1}: then ${JSON.stringify(before[line] ?? null)}, now ${JSON.stringify(after[line] ?? null)}`;
}

function report(out: Printer, checked: readonly Checked[], json: boolean): void {
  const count = (outcome: Checked['outcome']): number => checked.filter((call) => call.outcome === outcome).length;
  printListing(out, json, checked, () => [
    ...columns(
      checked
        .filter((call) => call.outcome !== 'same')
        .map((call) => [String(call.seq), call.outcome, oneLine(call.call, 80), oneLine(call.note, 200)]),
    ),
    `${count('same')} same, ${count('differs')} differ, ${count('skipped')} not run again.`,
  ]);
}

const maxFiles = 50_000;
const maxBytes = 500 * 1024 * 1024;
const fileType = 0o170_000;
const regularFile = 0o100_000;

/** A copy of a session's directory in which its calls can be run again. */
export interface Scratch {
  readonly root: string;
  readonly folder: string;
  /** Returns the arguments with their path inside the copy; null where the path leads out of it, by name or by a
   * link. */
  args(text: string): string | null;
  /** Makes the recorded changes of a call that is not run again, as far as the store has their contents. */
  apply(changes: readonly ChangeData[]): Promise<void>;
  remove(): void;
}

/** Copies `cwd` and takes back the recorded changes of the session, as far as the store has their contents: the
 * directory as the session found it. Throws a `CliError` for a directory that is gone or too large. */
async function makeScratch(cwd: string, events: readonly Event[], store: Pick<Store, 'blob'>): Promise<Scratch> {
  if (!existsSync(cwd))
    throw new CliError(
      exit.failed,
      `the session's directory ${cwd} is gone`,
      'agent replay without --verify needs no directory.',
    );
  const root = realpathSync(cwd);
  refuseLarge(root);
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-replay-')));
  cpSync(root, folder, { recursive: true, dereference: false, verbatimSymlinks: true, filter: isCopied });
  const put = async (change: ChangeData, side: 'before' | 'after'): Promise<void> => {
    const path = within(folder, relative(root, change.path));
    const mode = side === 'before' ? change.before_mode : change.after_mode;
    if (path === null || !change.captured || (mode !== undefined && (mode & fileType) !== regularFile)) return;
    const sha256 = change[side];
    const bytes = sha256 === null ? null : await store.blob(sha256);
    if (sha256 === null) rmSync(path, { force: true });
    else if (bytes !== null) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
    }
  };
  for (const event of events.toReversed()) for (const change of changesOf(event)) await put(change, 'before');
  return {
    root,
    folder,
    args: (text) => argumentsIn(text, root, folder),
    apply: async (changes) => {
      for (const change of changes) await put(change, 'after');
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the changes of files that an event records. */
export function changesOf(event: Event): readonly ChangeData[] {
  const changes = isRecord(event.data) ? event.data.changes : undefined;
  return Array.isArray(changes) ? (changes as readonly ChangeData[]) : [];
}

function argumentsIn(text: string, root: string, folder: string): string | null {
  let args: unknown = null;
  try {
    args = parseJson(text);
  } catch {
    /* as received: the registry says what is wrong with it */
  }
  if (!isRecord(args)) return text;
  if (typeof args.pattern === 'string' && args.pattern.split('/').includes('..')) return null;
  if (typeof args.path !== 'string') return text;
  if (/^(~|event:)/.test(args.path)) return null;
  const inside = isAbsolute(args.path) ? relative(root, args.path) : args.path;
  const path = within(folder, inside);
  return path === null
    ? null
    : JSON.stringify({ ...(args as Record<string, Json>), path: isAbsolute(args.path) ? path : args.path });
}

/** Returns the absolute path of `inside` below `folder`; null where it leaves the folder, by name or by a link. */
function within(folder: string, inside: string): string | null {
  const path = resolve(folder, inside);
  if (isAbsolute(inside) || !isBelow(folder, path)) return null;
  let there = path;
  while (!isThere(there)) there = dirname(there);
  try {
    return isBelow(folder, realpathSync(there)) ? path : null;
  } catch {
    return null;
  }
}

/** A path below a file is not there either. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Leaves out sockets, pipes and devices. */
function isCopied(path: string): boolean {
  const stats = lstatSync(path);
  return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink();
}

function refuseLarge(root: string): void {
  let files = 0;
  let bytes = 0;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files++;
    bytes += lstatSync(join(entry.parentPath, entry.name)).size;
    if (files > maxFiles || bytes > maxBytes)
      throw new CliError(
        exit.failed,
        `${root} is too large to be copied (over ${maxFiles} files or ${maxBytes / 1024 / 1024} MiB)`,
        'agent replay without --verify needs no copy.',
      );
  }
}

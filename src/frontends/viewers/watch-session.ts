import { addAll } from '../../kernel/core/lists.js';
import { createInterface } from 'node:readline';
import { CliError, exit } from '../../kernel/console/command.js';
import { findSession } from '../../kernel/console/stored-session.js';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import type { SessionRow, Store } from '../../kernel/core/store.js';
import { decisionText, sanitize } from '../../kernel/core/sanitize.js';
import { lastExchange } from '../../ui/event-text.js';
import { itemLines, noticeLines } from '../../ui/item-lines.js';
import type { ItemStyle } from '../../ui/item-style.js';
import { runningCallRow } from '../../ui/calls/call-rows.js';
import { createHighlighter } from '../../ui/markdown/highlight.js';
import { renderMarkdown } from '../../ui/markdown/incremental.js';
import { defaultDetail } from '../../ui/repl-options.js';
import { createTheme } from '../../kernel/console/theme.js';
import { emptyView, type TranscriptItem, reduce } from '../../ui/view.js';
import { endedFromOutside } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { eraseRows, outputColumns, outputIsTerminal, outputRows, print } from '../../kernel/console/print.js';
import { configuredTheme, terminalFacts } from '../repl/terminal-theme.js';
import { newestHere } from '../../app/find-session.js';
import { directoryId } from '../../kernel/disk/directory-id.js';
import type { FollowerApproval, FollowerForm } from '../../app/live/messages.js';
import { openRecord } from '../../app/open-record.js';
import { readSettings } from '../../app/settings.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { type ChangeNotifier, type Following, followSession, type SessionUpdate } from './follow-session.js';
import { LiveText } from './live-text.js';
import { provided } from '../../app/features.js';
import { openSharedRecord } from '../../kernel/console/shared-record-port.js';

/** Which session to follow, and whether its questions may be answered from here. */
export interface WatchRequest {
  /** An id, a prefix or a title; null: the session of this directory that was written to last. */
  readonly session: string | null;
  readonly answers: boolean;
}

/** Shows a session of another terminal live, until it is ended with Ctrl-C. Returns the exit code. */
export async function watchSession(options: RootOptions, request: WatchRequest): Promise<number> {
  const settings = await readSettings(options);
  const record = await openRecord(settings, () => undefined);
  const { store } = record;
  try {
    const { row, log, bell } = await watched(settings, record, request.session);
    const screen = new WatchScreen(row, await styleOf(settings), request.answers);
    const see = (seen: SessionUpdate): void => {
      screen.see(seen);
    };
    const ended = endedFromOutside();
    let following: Following | null = null;
    const opening = followSession(log, settings.config.files, row.id, see, { client: 'watch', bell }).then((opened) => {
      following = opened;
      screen.attach(opened);
    });
    const code = await Promise.race([ended, opening.then(() => ended)]);
    screen.leave();
    await (following as Following | null)?.close();
    return code;
  } finally {
    await store.close();
  }
}

type Recorded = Pick<Awaited<ReturnType<typeof openRecord>>, 'store' | 'tables'>;

interface Watched {
  readonly row: SessionRow;
  readonly log: Pick<Store, 'load' | 'tail'>;
  readonly bell?: ChangeNotifier;
}

/** The session of this machine, or of the team's server: where none here has the name, and where the one here is a copy
 * that another person or another machine writes. */
async function watched(settings: Settings, record: Recorded, name: string | null): Promise<Watched> {
  const { store, tables } = record;
  const found = await chosen(settings, store, name).catch((error: unknown) => error);
  const here = found instanceof Error ? null : { row: found as SessionRow, log: store };
  const hasServer = settings.config.store.url !== null;
  const shared = hasServer ? await openSharedRecord(provided) : null;
  if (here) return (await shared?.writtenElsewhere(settings, tables, here.row.id)) ?? here;
  const elsewhere = name === null ? null : await shared?.find(settings, name.trim());
  if (!elsewhere) throw found;
  return elsewhere;
}

async function chosen({ cwd }: Settings, store: Store, name: string | null): Promise<SessionRow> {
  if (name !== null) return await findSession(store, name);
  const newest = await newestHere(store, { cwd, directoryId: directoryId(cwd) ?? undefined });
  if (newest) return newest;
  throw new CliError(exit.session, `no session in ${cwd}`, 'Name one; agent sessions list shows them.');
}

async function styleOf(settings: Settings): Promise<ItemStyle> {
  const facts = terminalFacts(settings.env, await configuredTheme(settings));
  const colored = outputIsTerminal() ? facts : { ...facts, colors: 0 as const, theme: 'none' as const };
  const theme = createTheme(colored);
  const columns = outputColumns() ?? 100;
  const highlighter = createHighlighter(theme, () => undefined);
  await highlighter.load('```ts');
  const highlight = highlighter.paint;
  const markdown = (text: string): readonly string[] => renderMarkdown(text, { theme, columns, highlight });
  return { theme, columns, detail: defaultDetail, markdown, highlight };
}

/** Prints what is seen of a session, line after line. */
class WatchScreen {
  readonly #row: SessionRow;
  readonly #style: ItemStyle;
  readonly #answers: boolean;
  readonly #questions = new Map<string, FollowerApproval>();
  /** The ids of the forms that are open. */
  readonly #forms = new Set<string>();
  readonly #past: Event[] = [];
  #following: Following | null = null;
  #stopReading: () => void = () => undefined;
  #view = emptyView;
  readonly #text: LiveText;
  /** Lines to print, all at once. */
  #out: string[] = [];
  #isLive = false;

  constructor(row: SessionRow, style: ItemStyle, answers: boolean) {
    this.#row = row;
    this.#style = style;
    this.#answers = answers;
    this.#text = new LiveText(style, {
      size: () => {
        const [columns, rows] = [outputColumns(), outputRows()];
        return columns === undefined || rows === undefined ? null : { columns, rows };
      },
      print: (text) => {
        print(text, { colors: true });
      },
      eraseRows,
    });
  }

  /** Shows the end of what is on record, and from now on whatever comes. */
  attach(following: Following): void {
    this.#following = following;
    const { items, earlier } = lastExchange(this.#past);
    const { id, title, cwd } = this.#row;
    this.#say('info', `Session ${id}${title === null ? '' : `, ${title}`}, in ${cwd}. Ctrl-C stops watching.`);
    if (earlier > 0) this.#say('info', `${earlier} earlier messages and calls: agent sessions show ${id}`);
    for (const item of items) this.#item(item);
    this.#flush();
    // A call that is open now is known when it starts and ends.
    const before = this.#past.reduce((view, event) => reduce(view, { type: 'event', event }, 0), emptyView);
    this.#view = { ...before, items: [] };
    this.#past.length = 0;
    this.#showRunning();
    this.#flush();
    if (!this.#answers || !process.stdin.isTTY) return;
    const lines = createInterface({ input: process.stdin, terminal: false });
    lines.on('line', (line) => {
      this.#take(line.trim());
      this.#flush();
    });
    this.#stopReading = () => {
      lines.close();
    };
  }

  leave(): void {
    addAll(this.#out, this.#text.stop());
    this.#text.setBelow([]);
    this.#flush();
    this.#stopReading();
  }

  see(seen: SessionUpdate): void {
    this.#show(seen);
    this.#flush();
  }

  #flush(): void {
    this.#text.draw(this.#out.splice(0));
  }

  #show(seen: SessionUpdate): void {
    switch (seen.type) {
      case 'events':
        if (this.#following) for (const event of seen.events) this.#event(event);
        else addAll(this.#past, seen.events);
        return;
      case 'text':
        addAll(this.#out, this.#text.update(seen.text));
        return;
      case 'void':
        this.#voidText();
        return;
      case 'question':
        this.#questions.set(seen.question.id, seen.question);
        this.#ask(seen.question);
        return;
      case 'answered':
        this.#answered(seen.id);
        return;
      case 'live':
        if (!seen.live) addAll(this.#out, this.#text.stop());
        if (seen.live !== this.#isLive)
          this.#say(
            'info',
            seen.live ? 'The session is running.' : 'The session ended. Watching for when it is resumed.',
          );
        this.#isLive = seen.live;
        return;
      case 'form':
        this.#showForm(seen.form);
        return;
      case 'form_closed':
        if (this.#forms.delete(seen.id)) this.#say('info', 'Answered.');
        return;
      case 'output':
      case 'held':
        return;
      default:
        return seen satisfies never;
    }
  }

  #voidText(): void {
    const isShown = this.#text.isShown();
    const rest = this.#text.stop();
    if (!isShown) return;
    addAll(this.#out, rest);
    this.#say('warn', 'The connection was lost in this answer. It is discarded and requested again.');
  }

  #event(event: Event): void {
    const known = event.kind === 'approval' ? knownEvent(event) : null;
    if (known?.kind === 'approval') this.#answered(known.data.tool_call_id);
    this.#view = reduce(this.#view, { type: 'event', event }, 0);
    for (const item of this.#view.items) this.#item(item);
    this.#view = { ...this.#view, items: [] };
    this.#showRunning();
  }

  /** Shows the calls that run below all that is printed, where the output is a terminal. */
  #showRunning(): void {
    const running = this.#view.calls.filter(({ startedAtMs }) => startedAtMs !== null);
    this.#text.setBelow(running.map(({ call }) => runningCallRow(call, 'running', this.#style.theme)));
  }

  #answered(id: string): void {
    if (this.#questions.delete(id)) this.#say('info', 'Answered.');
  }

  #item(item: TranscriptItem): void {
    addAll(this.#out, item.type === 'assistant' ? this.#text.finish(item.text) : itemLines(item, this.#style));
  }

  #ask({ head, rows, reasons, targets, rules }: FollowerApproval): void {
    const about = decisionText(rules ?? 'this exact call', { lines: false });
    const how = this.#answers
      ? `Type y (yes), s (yes, and don't ask again for ${about} in this session) or n (no), and press Enter.`
      : 'Answer it where the session runs, or run agent watch --answer.';
    this.#say('warn', head);
    addAll(this.#out, [
      ...rows.map((row) => `  ${sanitize(row)}`),
      ...reasons.map((reason) => `! ${decisionText(reason, { lines: false })}`),
      ...targets.map((target) => `${this.#style.theme.glyphs.arrow} ${decisionText(target, { lines: false })}`),
    ]);
    this.#say('info', how);
  }

  #showForm({ id, from, title, message, fields }: FollowerForm): void {
    if (this.#forms.has(id)) return;
    this.#forms.add(id);
    const text = (part: string): string => decisionText(part, { lines: false });
    this.#say('warn', title === null ? `Questions of ${text(from)}` : text(title));
    addAll(this.#out, [
      ...(message === '' ? [] : message.split('\n').map((line) => `  ${sanitize(line)}`)),
      ...fields.flatMap(({ question, options }) => [
        `  ${text(question)}`,
        ...options.map(({ label, about }) => `  - ${text(about === null ? label : `${label}: ${about}`)}`),
      ]),
    ]);
    this.#say('info', `Answer in a terminal (agent attach ${this.#row.id}), or in the page of agent serve.`);
  }

  #take(line: string): void {
    const [question] = this.#questions.values();
    const answers = { y: 'once', yes: 'once', s: 'session', n: 'deny', no: 'deny' } as const;
    const answer = Object.entries(answers).find(([word]) => word === line.toLowerCase())?.[1];
    if (!question || !answer) this.#say('info', question ? 'Type y, s or n.' : 'There is nothing to answer now.');
    else void this.#answer(question, answer);
  }

  async #answer({ id, shown }: FollowerApproval, answer: 'once' | 'session' | 'deny'): Promise<void> {
    const done = await this.#following?.request({ type: 'answer', id, shown, answer, source: 'watch' });
    const problem = done ? done.problem : 'No process runs the session now. Nothing was answered.';
    if (problem === undefined) return;
    this.#say('warn', problem);
    this.#flush();
  }

  #say(level: 'info' | 'warn', message: string): void {
    addAll(this.#out, noticeLines(level, message, this.#style));
  }
}

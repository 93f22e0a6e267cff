import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import type { Form, FormAnswer, FormValue } from '../../kernel/core/form.js';
import type { PermissionAnswer } from '../../kernel/core/policy.js';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { withErase, wrapLine, wrapWords } from '../terminal/rows.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import { changeRows } from '../diff-lines.js';
import type { FileChangeText } from '../../kernel/console/slash-command.js';
import type { LivePage, PageOptions } from '../../kernel/console/slash-command.js';
import type { Theme } from '../../kernel/console/theme.js';
import { pauseMs, type Timers } from '../../kernel/core/timers.js';
import type { View } from '../view.js';
import { createApproval } from './approval.js';
import { createBox } from './box.js';
import { createFormDialog } from './form-dialog.js';
import { createHiddenInput } from './hidden-input.js';
import type { Question } from '../../kernel/core/policy.js';
import type { BoxOptions, HiddenQuestion } from '../../kernel/console/slash-command.js';
import type { Highlight } from '../markdown/highlight.js';
import { renderMarkdown } from '../markdown/incremental.js';
import { markWords } from './menu.js';
import { Pages, type RowsOf } from './pages.js';
import { createPicker, type Rank } from './picker.js';
import type { Picking } from '../../kernel/console/slash-command.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** A part of the pause. */
const stepMs = 100;
/** A page that grows is laid out again at most once in this time. */
const livePageMs = 100;

/** The dialogs in the place of the input: questions, pickers, the pager. The last one has the keys; a question waits
 * below what is open. */
export interface Dialogs {
  top(): Overlay | null;
  /** Offers a key to the top dialog. Returns the part of it that belongs to the draft. */
  take(event: InputEvent): InputEvent | null;
  /** Returns whether `overlay` waits for a pause before it takes keys. */
  waits(overlay: Overlay): boolean;
  /** Notes that `overlay` is on the screen. */
  drawn(overlay: Overlay): void;
  /** Returns the number of keys so far. */
  keys(): number;
  /** Opens a dialog for each open question and form and closes those that were answered elsewhere. */
  sync(view: Pick<View, 'questions' | 'forms'>): void;
  /** Opens a picker. `calledAt`: the value of `keys` when the user asked for it; if more keys came since, it opens by
   * itself. */
  pick<T>(options: Picking<T>, calledAt: number): Promise<T | null>;
  /** Opens a form of a command; `signal` closes it. */
  ask(form: Form, calledAt: number, signal: AbortSignal): Promise<Readonly<Record<string, FormValue>> | null>;
  /** Asks for what is not shown. It takes the keys at once, so that no part of the answer gets into the draft, unless
   * it opens by itself. */
  hidden(question: HiddenQuestion): Promise<string | null>;
  /** Opens a pager; `signal` closes it. */
  page(
    title: string,
    text: string,
    calledAt: number,
    options?: PageOptions,
    signal?: AbortSignal,
  ): Promise<string | null>;
  /** Opens a box over the input; `signal` closes it. */
  box(options: BoxOptions, calledAt: number, signal: AbortSignal): Promise<string | null>;
  clear(): void;
}

interface Parts {
  readonly timers: Timers;
  readonly rank: Rank;
  readonly theme: () => Theme;
  /** Colours the code of edits. */
  readonly highlight?: Highlight;
  readonly onAnswer: (id: string, answer: PermissionAnswer | FormAnswer) => void;
  readonly onChange: () => void;
}

export function createDialogs(d: Parts): Dialogs {
  const stack: Overlay[] = [];
  const asked = new Map<Question | string, Overlay>();
  const pause = createPause(d, () => stack.at(-1) ?? null);
  const close = (overlay: Overlay): void => {
    closeOn(stack, overlay);
  };
  const open = <T,>(create: Create<T>, signal?: AbortSignal): Promise<T | null> =>
    openOn(stack, create, d.onChange, signal);
  return {
    top: () => stack.at(-1) ?? null,
    ...pause,
    sync: createSync(d, asked, stack, close),
    pick: (options, calledAt) => {
      const asks = options.confirms === true || calledAt !== pause.keys();
      return open((done) => createPicker({ ...options, asks }, d.rank, done, d.onChange), options.signal);
    },
    ask: (form, calledAt, signal) => {
      const asks = calledAt !== pause.keys();
      return open<Readonly<Record<string, FormValue>>>((done) => createForm(form, asks, done, d), signal);
    },
    hidden: (question) => open((done) => createHiddenInput(question, done, d.onChange), question.signal),
    page: (title, text, calledAt, options = {}, signal) => {
      const { changes, keys = {}, live } = options;
      const asks = calledAt !== pause.keys();
      const rows = changes
        ? pagedChanges(changes, d.theme())
        : textRows(live?.text ?? (() => text), options, d.theme());
      const shownTitle = (): string => sanitize(live?.title() ?? title);
      const pages = new Pages(rows);
      let ended = (): void => undefined;
      const shown = open<string>(
        (done) => createPager({ title: shownTitle, pages, asks, keys, live }, done, d.onChange),
        signal,
      );
      if (live)
        ended = live.follow(() => {
          pages.changed();
          if (!d.timers.has('page')) d.timers.set('page', livePageMs, d.onChange);
        });
      return shown.finally(() => {
        ended();
      });
    },
    box: (options, calledAt, signal) => {
      const asks = calledAt !== pause.keys();
      const layOut = (text: string, columns: number): readonly string[] =>
        renderMarkdown(text, { theme: d.theme(), columns, highlight: d.highlight ?? (() => null), wrap: 'words' });
      return open<string>((done) => createBox({ ...options, asks, layOut }, d.timers, done, d.onChange), signal);
    },
    clear: () => {
      stack.length = 0;
      asked.clear();
    },
  };
}

/** Keeps the dialogs of questions and forms as they are open. A new one waits below the others. */
function createSync(
  { onAnswer, onChange, theme, highlight }: Parts,
  asked: Map<Question | string, Overlay>,
  stack: Overlay[],
  close: (overlay: Overlay) => void,
): Dialogs['sync'] {
  const ask = (key: Question | string, create: (close: () => void) => Overlay): void => {
    if (asked.has(key)) return;
    const overlay = create(() => {
      close(overlay);
    });
    asked.set(key, overlay);
    stack.unshift(overlay);
  };
  return ({ questions, forms }) => {
    // The question itself is the key: a call may be asked about again at once, after a preview that could not be made.
    const open = new Set<Question | string>([...questions, ...forms.map(({ id }) => `form ${id}`)]);
    for (const [key, overlay] of asked) {
      if (open.has(key)) continue;
      asked.delete(key);
      close(overlay);
    }
    for (const question of questions)
      ask(question, (closeIt) => {
        const onDone = (answer: PermissionAnswer): void => {
          closeIt();
          onAnswer(question.callId, answer);
        };
        return createApproval(question, theme(), onDone, onChange, highlight);
      });
    for (const { id, form } of forms)
      ask(`form ${id}`, (closeIt) => {
        const onDone = (answer: FormAnswer): void => {
          closeIt();
          onAnswer(id, answer);
        };
        return createFormDialog(form, onDone, onChange, (text, columns) => renderPlain(text, theme(), columns));
      });
  };
}

/** A form that the user opened: no key of it reaches the input, and it waits only where other keys came first. */
function createForm(
  form: Form,
  asks: boolean,
  onDone: (values: Readonly<Record<string, FormValue>> | null) => void,
  { onChange, theme }: Parts,
): Overlay {
  const dialog = createFormDialog(
    form,
    (answer) => {
      onDone(answer.answer === 'filled' ? answer.values : null);
    },
    onChange,
    (text, columns) => renderPlain(text, theme(), columns),
  );
  return {
    get asks() {
      return asks && dialog.asks;
    },
    element: (size, waits) => dialog.element(size, waits),
    take: (event) => {
      dialog.take(event);
      return null;
    },
  };
}

function renderPlain(text: string, theme: Theme, columns: number): readonly string[] {
  return renderMarkdown(text, { theme, columns, highlight: () => null, wrap: 'words' });
}

type Create<T> = (done: (value: T | null) => void) => Overlay;

/** Puts a dialog on top. It is answered with null once `signal` is aborted. */
function openOn<T>(
  stack: Overlay[],
  create: Create<T>,
  onChange: () => void,
  signal: AbortSignal | undefined,
): Promise<T | null> {
  return new Promise((resolve) => {
    const done = (value: T | null): void => {
      closeOn(stack, overlay);
      resolve(value);
      onChange();
    };
    const overlay: Overlay = create(done);
    const takeBack = (): void => {
      done(null);
    };
    signal?.addEventListener('abort', takeBack, { once: true });
    stack.push(overlay);
    onChange();
    if (signal?.aborted) takeBack();
  });
}

function closeOn(stack: Overlay[], overlay: Overlay): void {
  const at = stack.indexOf(overlay);
  if (at >= 0) stack.splice(at, 1);
}

/** Decides whether a key belongs to a dialog that opened by itself. A program that was held up sees keys late, as if
 * there had been a pause before them. So a pause is counted in steps, and waiting keys are read between two of them. */
function createPause(d: Parts, top: () => Overlay | null): Pick<Dialogs, 'take' | 'waits' | 'drawn' | 'keys'> {
  const drawn = new WeakSet<Overlay>();
  let keys = 0;
  let quietMs = 0;
  /** The overlay that was on the screen through a whole pause. */
  let open: Overlay | null = null;
  /** The overlay that took the last key; the next one is meant for it too. */
  let hearer: Overlay | null = null;
  const waits = (overlay: Overlay): boolean => overlay.asks && overlay !== open && overlay !== hearer;
  const asking = (): Overlay | null => {
    const overlay = top();
    return overlay?.asks === true && drawn.has(overlay) ? overlay : null;
  };
  const step = (): void => {
    const overlay = asking();
    if (overlay === null) return;
    quietMs += stepMs;
    if (quietMs < pauseMs) {
      d.timers.set('pause', stepMs, step);
      return;
    }
    open = overlay;
    d.onChange();
  };
  const restart = (): void => {
    quietMs = 0;
    open = null;
    if (asking() !== null) d.timers.set('pause', stepMs, step);
  };
  return {
    keys: () => keys,
    waits,
    drawn: (overlay) => {
      if (!overlay.asks || drawn.has(overlay)) return;
      drawn.add(overlay);
      restart();
    },
    take: (event) => {
      const overlay = top();
      const hears = overlay !== null && !waits(overlay);
      keys++;
      // This comes before the overlay acts: what it opens or closes is another overlay.
      hearer = hears ? overlay : null;
      const left = hears ? overlay.take(event) : event;
      if (left !== null) hearer = null;
      restart();
      return left;
    },
  };
}

/** The contents of a pager. */
interface PagerProps {
  readonly title: string;
  readonly rows: readonly string[];
  readonly position: string;
  /** A description of the keys besides the one that closes the pager. */
  readonly does: string;
  readonly waits: boolean;
}

function Pager({ title, rows, position, does, waits }: PagerProps): ReactNode {
  const { glyphs } = useTheme();
  return (
    <Box flexDirection="column">
      <Row tone="bold">{title}</Row>
      {rows.map((row, index) => (
        <Row key={index}>{row}</Row>
      ))}
      <KeyHint text={`${position} ${glyphs.dot} ${does} q closes`} waits={waits} />
    </Box>
  );
}

const leavingKeys = new Set(['escape', 'ctrl-c', 'ctrl-o', 'ctrl-d']);

function textRows(text: () => string, options: PageOptions, theme: Theme): RowsOf {
  const { prose = false, at = 0, marked = [] } = options;
  return (columns) => {
    const lines = sanitize(text()).split('\n');
    const layOut = (part: readonly string[]): readonly string[] =>
      part
        .flatMap((line) => (prose ? wrapWords(line, columns, 4) : [line]))
        .flatMap((line) => wrapLine(line, columns).map((row) => markWords(row.text, marked, theme)));
    const above = layOut(lines.slice(0, at));
    return { rows: [...above, ...layOut(lines.slice(at))], at: above.length };
  };
}

function pagedChanges(changes: readonly FileChangeText[], theme: Theme): RowsOf {
  return (columns) => {
    const lines = changes.flatMap((change, index) => [
      ...(index === 0 ? [] : ['']),
      ...changeRows(change, { theme, columns }),
    ]);
    // Rows of a dialog are drawn without what reaches beyond their text.
    const rows = lines.flatMap((line) => wrapLine(line, columns).map((row) => withErase(row.text, true)));
    return { rows, at: 0 };
  };
}

interface PagerParts {
  readonly title: () => string;
  readonly pages: Pages;
  readonly live: LivePage | undefined;
  readonly asks: boolean;
  readonly keys: Readonly<Record<string, string>>;
}

/** A long text to look through in the live region; the scrollback does not get it. Lines are clean already. */
function createPager(
  { title, pages, asks, keys, live }: PagerParts,
  onDone: (key: string | null) => void,
  onChange: () => void,
): Overlay {
  let isAtEnd = live !== undefined;
  const own = Object.entries(keys).map(([key, text]) => `${key} ${text},`);
  const does = own.length === 0 ? 'arrows and page keys scroll,' : own.join(' ');
  const scroll = (name: string): void => {
    const by = pages.distance(name);
    if (by === null) return;
    pages.scroll(by);
    isAtEnd = live !== undefined && pages.isAtEnd();
  };
  /** Letters scroll up to the first that ends it; what follows is the draft's. */
  const read = (text: string): InputEvent | null => {
    const end = text.split('').findIndex((letter) => letter === 'q' || keys[letter] !== undefined);
    for (const letter of end < 0 ? text : text.slice(0, end)) scroll(letter);
    if (end < 0) return null;
    onDone(text[end] === 'q' ? null : (text[end] ?? null));
    return end + 1 < text.length ? { type: 'text', text: text.slice(end + 1) } : null;
  };
  const press = (name: string): void => {
    if (leavingKeys.has(name)) onDone(null);
    else if (keys[name] !== undefined) onDone(name);
    else if (name.length > 1) scroll(name);
  };
  return {
    asks,
    element: (size: ScreenSize, waits: boolean): ReactElement => {
      pages.fit(size);
      if (isAtEnd) pages.scroll(pages.rows.length);
      const { rows, top, height } = pages;
      const end = Math.min(rows.length, top + height);
      return (
        <Pager
          title={title()}
          rows={rows.slice(top, end)}
          does={does}
          position={`lines ${top + 1}-${end} of ${rows.length}`}
          waits={waits}
        />
      );
    },
    take: (event: InputEvent): InputEvent | null => {
      let left: InputEvent | null = null;
      if (event.type === 'text') left = read(event.text);
      else if (event.type === 'key') press(keyName(event));
      onChange();
      return left;
    },
  };
}

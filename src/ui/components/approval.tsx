import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { addAll } from '../../kernel/core/lists.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { fitWidth, textWidth, wrapLine, wrapWords } from '../terminal/rows.js';
import { decisionText } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import { editKey, type Editor, editorText, emptyEditor, paste, type } from '../editor/editor.js';
import { dialogKeys } from '../editor/keybindings.js';
import { paintEdit, type DiffRows } from '../diff-lines.js';
import type { Highlight } from '../markdown/highlight.js';
import { canKeep, promptParts, type PromptParts, rulesAbout } from '../question-lines.js';
import type { Theme } from '../../kernel/console/theme.js';
import { KeyHint, Row, useTheme } from './row.js';
import { type Overlay, roomFor } from './screen.js';

/** The part of a text that is on the screen, and how many rows of it are not. */
export interface BodyPart {
  readonly rows: readonly string[];
  readonly above: number;
  readonly below: number;
}

/** The text that a person decides by, in as many rows as there is room for. */
export class ScrolledBody {
  readonly #lines: readonly string[];
  readonly #edit: ((columns: number) => DiffRows) | null;
  readonly #indent: string;
  /** The rows of the text and of the edit for the last width: a frame must not break a long text again. */
  #wrapped: { readonly columns: number; readonly prose: boolean; readonly parts: readonly DiffRows[] } | null = null;
  #parts: readonly DiffRows[] = [];
  #length = 0;
  #columns = 0;
  #top = 0;
  #height = 1;
  #seen = 0;

  /** `edit`: rows below the lines, which break themselves. `indent`: before each row of a line, so that none of them can
   * look like a row of ours. */
  constructor(
    lines: readonly string[],
    {
      edit = null,
      indent = '',
    }: { readonly edit?: ((columns: number) => DiffRows) | null; readonly indent?: string } = {},
  ) {
    this.#lines = lines;
    this.#edit = edit;
    this.#indent = indent;
  }

  /** Returns the number of rows without what is put behind them. */
  length(columns: number, prose = false): number {
    return this.#rows(columns, prose).reduce((sum, part) => sum + part.length, 0);
  }

  #rows(columns: number, prose: boolean): readonly DiffRows[] {
    if (this.#wrapped?.columns !== columns || this.#wrapped.prose !== prose) {
      const room = columns - this.#indent.length;
      const lines = prose ? this.#lines.flatMap((line) => wrapWords(line, room)) : this.#lines;
      const rows = lines.flatMap((line) => wrapLine(line, room).map(({ text }) => this.#indent + text));
      this.#wrapped = { columns, prose, parts: [rows, this.#edit?.(columns) ?? []] };
    }
    return this.#wrapped.parts;
  }

  /** Breaks the text into rows of `columns`, `prose` at words, and puts `behind` after them. Returns their number. */
  wrap(
    columns: number,
    { prose, behind = [] }: { readonly prose: boolean; readonly behind?: readonly string[] },
  ): number {
    this.#parts = [...this.#rows(columns, prose), behind];
    const length = this.#parts.reduce((sum, part) => sum + part.length, 0);
    if (columns !== this.#columns || length !== this.#length) {
      // Other rows than before: what was seen of the old ones says nothing about them.
      this.#top = 0;
      this.#seen = 0;
    }
    this.#columns = columns;
    this.#length = length;
    return length;
  }

  /** Returns the part that `height` rows show; it counts as seen. */
  part(height: number): BodyPart {
    this.#height = height;
    this.#top = Math.max(0, Math.min(this.#top, this.#length - height));
    const end = Math.min(this.#length, this.#top + height);
    if (this.#top <= this.#seen) this.#seen = Math.max(this.#seen, end);
    const shown: string[] = [];
    let start = 0;
    for (const part of this.#parts) {
      const from = Math.max(0, this.#top - start);
      if (from < part.length && start < end) addAll(shown, part.slice(from, end - start));
      start += part.length;
    }
    return { rows: shown, above: this.#top, below: this.#length - end };
  }

  /** Keys may come faster than frames: no page is left out. */
  page(by: 1 | -1): void {
    this.#top = Math.min(this.#top + by * this.#height, this.#seen);
  }

  /** Something is below the part that is shown. */
  get goesOn(): boolean {
    return this.#top + this.#height < this.#length;
  }

  /** Something of it was not on the screen yet. */
  get isUnseen(): boolean {
    return this.#seen < this.#length;
  }

  /** Scrolls on to a part that was not shown yet. Returns the hint for the user. */
  showMore(): string {
    this.page(1);
    return this.goesOn ? 'There is more: page down first.' : 'This is the rest of it. Choose again.';
  }
}

/** One of the answers. */
interface Choice {
  /** In a low window, with the letter in brackets: `[y]es`. */
  readonly short: string;
  readonly text: string;
  /** Missing: no single letter chooses it. */
  readonly letter?: string;
  /** `why`: the reason is asked for. */
  readonly means: PermissionAnswer | 'why';
}

/** The answers of a question: those that are listed, and those behind Tab. */
interface Choices {
  readonly first: readonly Choice[];
  readonly more: readonly Choice[];
}

const tooSmallHint = 'Make the window larger to say yes';
const yes: Choice = { short: '[y]es', text: 'Yes', letter: 'y', means: { answer: 'once' } };
const once: Choice = { ...yes, short: 'Yes, once', text: 'Yes, once' };
const forReal: Choice = { ...yes, short: '[y]es, run it', text: 'Yes, run it for real' };
const keep: Choice = {
  short: '[k]eep',
  text: 'Yes, apply these changes without running it again',
  letter: 'k',
  means: { answer: 'keep' },
};
const preview: Choice = {
  short: '[p]review',
  text: 'Preview what it would do',
  letter: 'p',
  means: { answer: 'preview' },
};
const no: Choice = { short: '[n]o', text: 'No', letter: 'n', means: { answer: 'deny' } };
const noBecause: Choice = { short: '[t]ell why', text: 'No, and say why…', letter: 't', means: 'why' };

function exactWhat({ call }: Question): string {
  return { bash: 'command', file_edit: 'edit', file_write: 'write' }[call.tool.name] ?? 'call';
}

function exactly(question: Question, letter: string, short: string): Choice {
  return {
    short,
    text: `Yes, and don't ask again for this exact ${exactWhat(question)} (this session)`,
    letter,
    means: { answer: 'session' },
  };
}

/** A question offers rules only where policy found some. What is saved for good has no letter. */
function choicesFor(question: Question): Choices {
  const { canPreview, effects, verdict } = question;
  const shows = canPreview ? [preview] : [];
  const keeps = canKeep(question) ? [keep] : [];
  if (verdict.risk === 'dangerous') {
    // Changes to files that other programs obey are agreed to last.
    if (effects && effects.dangers.length > 0) return { first: [no, noBecause, forReal], more: [] };
    const more = [exactly(question, 'a', 'this exact one')];
    return { first: [...keeps, effects ? forReal : once, ...shows, no, noBecause], more };
  }
  const first = [...keeps, effects ? forReal : yes];
  if ((verdict.rules ?? []).length === 0)
    return { first: [...first, exactly(question, 's', '[s]ession'), no, noBecause], more: shows };
  const about = rulesAbout(question);
  const session: Choice = {
    short: '[s]ession',
    text: `Yes, and don't ask again for ${about} (this session)`,
    letter: 's',
    means: { answer: 'rules', lasts: 'session' },
  };
  const always: Choice = {
    short: 'always',
    text: `Always allow ${about} (saves a rule)`,
    means: { answer: 'rules', lasts: 'always' },
  };
  return {
    first: [...first, ...(keeps.length > 0 ? [] : [session]), no, noBecause],
    more: [...(keeps.length > 0 ? [session] : []), exactly(question, 'a', 'ex[a]ct'), always, ...shows],
  };
}

const whyNot = 'Why not? ';
/** In a narrower window the rows would be cut. */
const leastColumns = 14;
/** With fewer rows for what is approved, the choices are on one row. */
const leastBodyRows = 8;

/** A choice as it is drawn: its rows, or its word in the row of choices. */
interface ShownChoice {
  readonly rows: readonly string[];
  readonly isSelected: boolean;
}

/** The contents of a permission prompt. */
interface ApprovalProps {
  readonly title: string;
  readonly note: string;
  readonly isDangerous: boolean;
  /** Null: there is no room to show what is asked. */
  readonly body: BodyPart | null;
  /** Reasons that are in sight whatever part of the body is. */
  readonly pinned: readonly string[];
  /** Says how much is above and below the shown part; '' where all of it is shown. */
  readonly position: string;
  readonly choices: readonly ShownChoice[];
  readonly isCompact: boolean;
  readonly isAiry: boolean;
  /** The reason that is being written; null where none is. */
  readonly message: string | null;
  readonly hint: string;
  readonly waits: boolean;
}

function ApprovalQuestion(props: ApprovalProps): ReactNode {
  const { title, note, isDangerous, body, pinned, position, choices, isCompact, isAiry, message, hint, waits } = props;
  const { paint } = useTheme();
  const tail = note === '' ? '' : `  ${paint(isDangerous ? 'bad' : 'dim', note)}`;
  const told = <KeyHint text={hint} waits={waits} />;
  return (
    <Box flexDirection="column">
      <Row>{paint('warn', title) + tail}</Row>
      {body?.rows.map((row, index) => (
        <Row key={index}>{row}</Row>
      ))}
      {pinned.map((row) => (
        <Row key={`r${row}`}>{row}</Row>
      ))}
      {position === '' ? null : <Row tone="warn">{position}</Row>}
      {isAiry ? <Row>{''}</Row> : null}
      {message === null ? (
        isCompact ? (
          <>
            {position === '' || waits || hint === tooSmallHint ? told : null}
            <CompactChoices choices={choices} waits={waits} gap={isDangerous ? '  ' : ' '} />
          </>
        ) : (
          <>
            <ListedChoices choices={choices} waits={waits} />
            <KeyHint text={hint} waits={waits} hasCursor />
          </>
        )
      ) : (
        <Row cursor={textWidth(whyNot + message)}>{whyNot + message}</Row>
      )}
    </Box>
  );
}

interface ChoicesProps {
  readonly choices: readonly ShownChoice[];
  readonly waits: boolean;
}

function ListedChoices({ choices, waits }: ChoicesProps): ReactNode {
  const { paint, glyphs } = useTheme();
  return choices.flatMap(({ rows, isSelected }, at) =>
    rows.map((row, index) => {
      const sign = isSelected && index === 0 ? glyphs.prompt : '  ';
      const text = isSelected && !waits ? paint('prompt', sign) + paint('bold', row) : sign + row;
      return <Row key={`${at} ${index}`}>{waits ? paint('dim', text) : text}</Row>;
    }),
  );
}

/** The words of the choices, in as few rows as they fit in. */
function CompactChoices({ choices, waits, gap }: ChoicesProps & { readonly gap: string }): ReactNode {
  const { paint, glyphs } = useTheme();
  const sign = glyphs.prompt.trim();
  const rows = new Map<string, string[]>();
  for (const { rows: words, isSelected } of choices) {
    const [word = '', row = ''] = words;
    const lead = waits ? sign : paint('prompt', sign);
    const marked = isSelected ? lead + (waits ? word : paint('bold', word)) : word;
    rows.set(row, [...(rows.get(row) ?? []), waits ? paint('dim', marked) : marked]);
  }
  const texts = [...rows.values()].map((words) => words.join(gap));
  return texts.map((text, index) => (
    <Row key={index} cursor={index === texts.length - 1 ? textWidth(text) : undefined}>
      {text}
    </Row>
  ));
}

/** `before`: what can be done once all of it was seen. */
export function Body({ body, before }: { readonly body: BodyPart; readonly before: string }): ReactNode {
  const { glyphs } = useTheme();
  const { rows, above, below } = body;
  return (
    <>
      {above > 0 ? <Row tone="dim">{`${glyphs.up} ${above} ${above === 1 ? 'line' : 'lines'} above`}</Row> : null}
      <Box flexDirection="column" paddingLeft={2}>
        {rows.map((row, index) => (
          <Row key={index}>{row}</Row>
        ))}
      </Box>
      {below > 0 ? (
        <Row tone="warn">{`${glyphs.ellipsis} ${below} more ${pageDown(below)} before ${before}`}</Row>
      ) : null}
    </>
  );
}

function pageDown(lines: number): string {
  return lines === 1 ? 'line; page down to see it' : 'lines; page down to see them';
}

/** The rows behind what runs, broken. */
interface BehindRows {
  readonly facts: readonly string[];
  readonly targets: readonly string[];
  readonly reasons: readonly string[];
}

interface ApprovalLayout {
  readonly isCompact: boolean;
  /** There is room for an empty row above the choices. */
  readonly isAiry?: boolean;
  /** The rows that show the body. */
  readonly height: number;
  readonly behind: readonly string[];
  readonly pinned: readonly string[];
  readonly choices: readonly ShownChoice[];
}

const dangerous = 'Dangerous';

interface ApprovalBodies {
  readonly body: ScrolledBody;
  readonly diff: ScrolledBody | null;
  readonly parts: PromptParts;
  readonly paint: Theme['paint'];
  readonly glyphs: Theme['glyphs'];
}

/** The question about a call. What was not on the screen cannot be agreed to. A call that is not dangerous has yes first
 * and a letter for each answer; a dangerous one has no selected, and no single letter agrees to it. */
export function createApproval(
  asked: Question,
  theme: Theme,
  onAnswer: (answer: PermissionAnswer) => void,
  onChange: () => void,
  highlight?: Highlight,
): Overlay {
  const { glyphs, paint } = theme;
  const parts = promptParts(asked, glyphs.minus);
  const { path } = asked.call.args;
  const edit = paintEdit(parts.edit, { theme, highlight }, typeof path === 'string' ? path : null);
  const body = new ScrolledBody(parts.texts, { indent: '  ', edit: (columns) => edit.rows(columns) });
  const diff = decisionText(asked.effects?.diff ?? '', { lines: true });
  const bodies = { body, diff: diff === '' ? null : new ScrolledBody(diff.split('\n')) };
  return new Approval(asked, { ...bodies, parts, paint, glyphs }, onAnswer, onChange);
}

class Approval implements Overlay {
  readonly #question: Question;
  readonly #onAnswer: (answer: PermissionAnswer) => void;
  readonly #onChange: () => void;
  #body: ScrolledBody;
  /** The text that must have been shown before the user can approve. */
  readonly #asked: ScrolledBody;
  /** The other of the call and the diff; null where there is none. */
  #other: ScrolledBody | null;
  readonly #parts: PromptParts;
  readonly #glyphs: Theme['glyphs'];
  readonly #paint: Theme['paint'];
  readonly #choices: Choices;
  /** The choices behind Tab are shown. */
  #isOpen = false;
  #selected: Choice;
  #message: Editor | null = null;
  #hint = '';
  /** Until it was drawn nothing of it was seen. */
  #isTooSmall = true;

  constructor(
    asked: Question,
    { body, diff, parts, paint, glyphs }: ApprovalBodies,
    onAnswer: (answer: PermissionAnswer) => void,
    onChange: () => void,
  ) {
    this.#question = asked;
    this.#parts = parts;
    this.#paint = paint;
    this.#glyphs = glyphs;
    this.#onAnswer = onAnswer;
    this.#onChange = onChange;
    this.#body = body;
    this.#asked = body;
    this.#other = diff;
    this.#choices = choicesFor(asked);
    this.#selected = this.#isDangerous() ? no : (this.#choices.first[0] ?? no);
  }

  /** False while a reason is written: then every key belongs to that. */
  get asks(): boolean {
    return this.#message === null;
  }

  element(size: ScreenSize, waits: boolean): ReactElement {
    const columns = Math.max(10, size.columns - 1);
    const { title, note, behind } = this.#texts(columns);
    const layout = this.#layout(size, columns, behind);
    const isRoomy = layout.height >= 1 && size.columns >= leastColumns;
    this.#isTooSmall = !isRoomy;
    if (isRoomy) this.#body.wrap(columns, { prose: false, behind: layout.behind });
    const body = isRoomy ? this.#body.part(layout.height) : null;
    return (
      <ApprovalQuestion
        title={title}
        note={note}
        isDangerous={this.#isDangerous()}
        body={body}
        pinned={isRoomy ? layout.pinned : []}
        position={body && this.#hint === '' ? this.#position(body, columns) : ''}
        choices={isRoomy ? layout.choices : layout.choices.filter(({ isSelected }) => isSelected)}
        isCompact={layout.isCompact}
        isAiry={layout.isAiry === true}
        message={this.#message ? decisionText(editorText(this.#message), { lines: false }) : null}
        hint={this.#hintNow(columns)}
        waits={waits}
      />
    );
  }

  /** Returns the title as it fits, and the rows that follow what runs: parameters, targets, reasons. */
  #texts(columns: number): Pick<ApprovalProps, 'title' | 'note'> & { readonly behind: BehindRows } {
    const { title, note, facts, targets, reasons } = this.#parts;
    const fits = textWidth(title) <= columns;
    const room = columns - textWidth(title) - 2;
    const isNoted = fits && textWidth(note) <= room;
    const isReason = this.#isDangerous() && reasons.length === 0;
    const untold = isNoted || !isReason ? reasons : this.#question.verdict.reasons.map(oneLine);
    const whole = fits ? [] : brokenText(title, columns - 2).map((row) => `  ${row}`);
    const after = (sign: string, texts: readonly string[]): readonly string[] =>
      texts.flatMap((text) => brokenText(text, columns - 2).map((row, index) => (index === 0 ? sign : '  ') + row));
    return {
      title: fits ? title : `${fitWidth(title, columns - 2)}${this.#glyphs.ellipsis}`,
      note: isNoted ? note : this.#isDangerous() && room >= dangerous.length ? dangerous : '',
      behind: {
        facts: [...whole, ...facts.flatMap((fact) => brokenText(fact, columns))],
        targets: after(`${this.#paint('dim', this.#glyphs.arrow)} `, targets),
        reasons: after(this.#paint('warn', '! '), untold),
      },
    };
  }

  /** Decides whether each choice has rows of its own, and how many rows show what runs. */
  #layout(size: ScreenSize, columns: number, { facts, targets, reasons }: BehindRows): ApprovalLayout {
    const room = roomFor(size);
    const free = room - Number(room > 6) - Number(room >= 3) - 1;
    const behind = [...facts, ...targets, ...reasons];
    const length = this.#body.length(columns) + behind.length;
    const listed = this.#shown().map((choice) => this.#listed(choice, columns));
    const listedRows = this.#message ? 1 : listed.reduce((sum, { rows }) => sum + rows.length, 1);
    const left = free - listedRows;
    if (length <= left)
      return {
        isCompact: false,
        height: Math.max(1, left),
        behind,
        pinned: [],
        choices: listed,
        isAiry: length < left,
      };
    if (left - 1 >= leastBodyRows)
      return this.#pinned(left - 1, { isCompact: false, choices: listed }, behind, reasons);
    const choices = this.#compact(columns);
    const rowsOfChoices = this.#message ? 1 : new Set(choices.map(({ rows }) => rows[1])).size;
    const about = this.#shown().flatMap((choice) => this.#aboutShort(choice, columns));
    return this.#pinned(free - 1 - rowsOfChoices, { isCompact: true, choices }, [...behind, ...about], reasons);
  }

  /** Keeps the first reasons of a dangerous call in sight. */
  #pinned(
    height: number,
    layout: Pick<ApprovalLayout, 'isCompact' | 'choices'>,
    behind: readonly string[],
    reasons: readonly string[],
  ): ApprovalLayout {
    const isLong = this.#isDangerous() && reasons.length > 0;
    const pinned = isLong ? reasons.slice(0, Math.max(0, Math.floor(height / 4))) : [];
    return { ...layout, height: height - pinned.length, behind, pinned };
  }

  #shown(): readonly Choice[] {
    return this.#isOpen ? [...this.#choices.first, ...this.#choices.more] : this.#choices.first;
  }

  #listed(choice: Choice, columns: number): ShownChoice {
    const lead = this.#isDangerous() ? '' : `${choice.letter ?? ' '}  `;
    const rows = brokenText(this.#shownText(choice), columns - 2 - lead.length);
    return {
      rows: rows.map((row, index) => (index === 0 ? lead : ' '.repeat(lead.length)) + row),
      isSelected: choice === this.#selected,
    };
  }

  #shownText(choice: Choice): string {
    const letter = this.#isDangerous() && choice === preview ? ` (${preview.letter})` : '';
    return choice.text.replaceAll('…', this.#glyphs.ellipsis) + letter;
  }

  /** Returns the words of the choices, each with the number of its row. */
  #compact(columns: number): readonly ShownChoice[] {
    const gap = this.#isDangerous() ? 2 : 1;
    let [row, width] = [0, 0];
    return this.#shown().map((choice) => {
      const word = this.#isDangerous() ? plainWord(choice) : choice.short;
      // One column is for the sign of the selected word.
      const added = textWidth(word) + (width === 0 ? 1 : gap);
      if (width > 0 && width + added > columns) [row, width] = [row + 1, textWidth(word) + 1];
      else width += added;
      return { rows: [word, String(row)], isSelected: choice === this.#selected };
    });
  }

  /** A word alone does not say for what the question is not asked again. */
  #aboutShort(choice: Choice, columns: number): readonly string[] {
    const { short, means } = choice;
    if (means === 'why' || (means.answer !== 'rules' && means.answer !== 'session')) return [];
    return brokenText(`${short} ${this.#glyphs.arrow} ${this.#shownText(choice)}`, columns).map((row) =>
      this.#paint('dim', row),
    );
  }

  #position({ above, below }: BodyPart, columns: number): string {
    if (above === 0 && below === 0) return '';
    const { up, ellipsis } = this.#glyphs;
    const before = above === 0 ? '' : `${up} ${above} ${below > 0 ? '' : above === 1 ? 'line above' : 'lines above'}`;
    if (below === 0) return before;
    const lines = `${ellipsis} ${below} more ${below === 1 ? 'line' : 'lines'}`;
    const ways = [
      `${lines}; page down to see ${below === 1 ? 'it' : 'them'} before you can say yes`,
      `${lines}; page down`,
    ];
    const lead = before === '' ? '' : `${before.trimEnd()} ${this.#glyphs.dot} `;
    return lead + (ways.find((way) => textWidth(lead + way) <= columns) ?? lines);
  }

  #hintNow(columns: number): string {
    if (this.#isTooSmall) return tooSmallHint;
    return this.#hint === '' ? this.#keys(columns) : this.#hint;
  }

  #keys(columns: number): string {
    const other = this.#body === this.#asked ? 'the diff' : 'the call';
    const { leave, details } = dialogKeys;
    const parts = [
      this.#isDangerous() ? 'Arrows and Enter only' : 'Enter select',
      `${leave} no`,
      ...(this.#other === null ? [] : [`${details} ${other}`]),
      ...(this.#choices.more.length === 0 ? [] : [this.#isOpen ? 'Tab fewer' : `Tab more${this.#moreText()}`]),
    ];
    const text = parts.join(` ${this.#glyphs.dot} `);
    return textWidth(text) <= columns
      ? text
      : parts.map((part) => part.replace(/:.*/, '')).join(` ${this.#glyphs.dot} `);
  }

  #moreText(): string {
    const names = this.#choices.more.flatMap(({ means }) => {
      if (means === 'why') return [];
      if (means.answer === 'session') return [`this exact ${exactWhat(this.#question)}`];
      if (means.answer === 'rules') return [means.lasts === 'always' ? 'save a rule' : "don't ask again"];
      return means.answer === 'preview' ? ['preview'] : [];
    });
    return names.length === 0 ? '' : `: ${names.join(', ')}`;
  }

  take(event: InputEvent): InputEvent | null {
    this.#hint = '';
    const taken = this.#taken(event);
    this.#onChange();
    return taken ? null : event;
  }

  #taken(event: InputEvent): boolean {
    if (this.#message) {
      this.#takeMessage(this.#message, event);
      return true;
    }
    if (event.type === 'key') return this.#takeKey(keyName(event));
    return event.type === 'text' && event.text.length === 1 && this.#takeLetter(event.text);
  }

  #isDangerous(): boolean {
    return this.#question.verdict.risk === 'dangerous';
  }

  #move(by: 1 | -1): void {
    const shown = this.#shown();
    const at = shown.indexOf(this.#selected) + by;
    this.#selected = shown[Math.max(0, Math.min(shown.length - 1, at))] ?? no;
  }

  #toggleMore(): void {
    this.#isOpen = !this.#isOpen && this.#choices.more.length > 0;
    if (!this.#shown().includes(this.#selected)) this.#selected = no;
  }

  #takeKey(name: string): boolean {
    switch (name) {
      case 'up':
      case 'left':
        this.#move(-1);
        break;
      case 'down':
      case 'right':
        this.#move(1);
        break;
      case 'tab':
        this.#toggleMore();
        break;
      case 'ctrl-o':
        if (this.#other === null) return false;
        [this.#body, this.#other] = [this.#other, this.#body];
        break;
      case 'pagedown':
      case 'ctrl-v':
        this.#body.page(1);
        break;
      case 'pageup':
      case 'alt-v':
        this.#body.page(-1);
        break;
      case 'escape':
      case 'ctrl-d':
        this.#onAnswer({ answer: 'deny' });
        break;
      case 'enter':
        this.#choose(this.#selected);
        break;
      default:
        return false;
    }
    return true;
  }

  /** A dangerous call has no one-letter answer: the letter begins something else. */
  #takeLetter(letter: string): boolean {
    const choice = this.#choiceOf(letter.toLowerCase());
    if (letter === ' ' && this.#body.goesOn) this.#body.page(1);
    else if (choice === null) return false;
    else if (this.#isDangerous() && choice !== preview) {
      this.#hint = 'Dangerous: choose with the arrows and Enter.';
      return false;
    } else this.#choose(choice);
    return true;
  }

  /** Returns the shown choice with this letter, or in the row of this number. */
  #choiceOf(letter: string): Choice | null {
    const shown = this.#shown();
    const found = shown.find((choice) => choice.letter === letter);
    const numbered = found ?? (/^[1-9]$/.test(letter) ? shown[Number(letter) - 1] : undefined);
    return numbered?.letter === undefined ? null : numbered;
  }

  #choose(choice: Choice): void {
    const { means } = choice;
    this.#selected = choice;
    if (isYes(means) && this.#isTooSmall) {
      this.#selected = no;
      return;
    }
    if (isYes(means) && this.#asked.isUnseen) {
      if (this.#body !== this.#asked) [this.#body, this.#other] = [this.#asked, this.#body];
      this.#hint = this.#asked.showMore();
      return;
    }
    if (means === 'why') this.#message = emptyEditor;
    else this.#onAnswer(means);
  }

  #takeMessage(message: Editor, event: InputEvent): void {
    if (event.type === 'text') {
      this.#message = type(message, event.text);
      return;
    }
    if (event.type === 'paste') {
      this.#message = paste(message, event.text);
      return;
    }
    const name = keyName(event);
    if (name === 'escape' || name === 'ctrl-c') {
      this.#message = null;
      return;
    }
    if (name !== 'enter') {
      this.#message = editKey(message, event) ?? message;
      return;
    }
    const text = editorText(message).trim();
    this.#onAnswer(text === '' ? { answer: 'deny' } : { answer: 'deny', message: text });
  }
}

function isYes(means: Choice['means']): boolean {
  return means !== 'why' && means.answer !== 'deny' && means.answer !== 'preview';
}

/** Returns the rows of a text, broken at words, and inside those that are longer than a row. */
function brokenText(text: string, columns: number): readonly string[] {
  return wrapWords(decisionText(text, { lines: false }), columns).flatMap((row) =>
    wrapLine(row, columns).map((part) => part.text),
  );
}

function oneLine(text: string): string {
  return decisionText(text, { lines: false });
}

/** The word of a choice of a dangerous call, which no letter chooses. */
function plainWord({ short, means }: Choice): string {
  return means === 'why' ? 'Say why' : capital(short.replace(/[[\]]/g, ''));
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

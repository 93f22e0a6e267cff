import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { addAll } from '../../kernel/core/lists.js';
import type { PermissionAnswer, Question } from '../../kernel/core/policy.js';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { textWidth, wrapLine, wrapWords } from '../terminal/rows.js';
import { decisionText } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import { editKey, type Editor, editorText, emptyEditor, paste, type } from '../editor/editor.js';
import { dialogKeys } from '../editor/keybindings.js';
import { editRows, type DiffRows } from '../diff-lines.js';
import { canKeep, questionParts, rulesText } from '../item-lines.js';
import type { Theme } from '../../kernel/console/theme.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

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
  /** The rows of the text and of the edit for the last width: a frame must not break a long text again. */
  #wrapped: { readonly columns: number; readonly prose: boolean; readonly parts: readonly DiffRows[] } | null = null;
  #parts: readonly DiffRows[] = [];
  #length = 0;
  #columns = 0;
  #top = 0;
  #height = 1;
  #seen = 0;

  /** `edit`: rows below the lines, which break themselves. */
  constructor(lines: readonly string[], edit: ((columns: number) => DiffRows) | null = null) {
    this.#lines = lines;
    this.#edit = edit;
  }

  /** Breaks the text into rows of `columns`, `prose` at words, and puts `behind` after them. Returns their number. */
  wrap(
    columns: number,
    { prose, behind = [] }: { readonly prose: boolean; readonly behind?: readonly string[] },
  ): number {
    if (this.#wrapped?.columns !== columns || this.#wrapped.prose !== prose) {
      const lines = prose ? this.#lines.flatMap((line) => wrapWords(line, columns)) : this.#lines;
      const rows = lines.flatMap((line) => wrapLine(line, columns).map(({ text }) => text));
      this.#wrapped = { columns, prose, parts: [rows, this.#edit?.(columns) ?? []] };
    }
    this.#parts = [...this.#wrapped.parts, behind];
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
    return this.goesOn ? 'There is more to see: page down first.' : 'This is the rest of it. Choose again.';
  }
}

/** One of the answers. */
interface Choice {
  readonly text: string;
  /** Missing: no single letter chooses it. */
  readonly letter?: string;
  /** `why`: the reason is asked for. */
  readonly means: PermissionAnswer | 'why';
}

const keepsBelow = 'Yes, and always allow: adds the rule below';
const keepsAbove = 'Yes, and always allow: adds the rule above';
const tooSmallHint = 'Make the window larger to say yes';
const once: Choice = { text: 'Yes, once', letter: 'y', means: { answer: 'once' } };
const exactly: Choice = {
  text: 'Yes, and this exact call again in this session',
  letter: 'a',
  means: { answer: 'session' },
};
const keep: Choice = { text: 'Keep these changes; nothing runs again', letter: 'k', means: { answer: 'keep' } };
const forReal: Choice = { ...once, text: 'Run it for real' };
const preview: Choice = { text: 'Show first what it would do', letter: 'p', means: { answer: 'preview' } };
const no: Choice = { text: 'No', letter: 'n', means: { answer: 'deny' } };
const noBecause: Choice = { text: 'No, and tell the model why', letter: 't', means: 'why' };

/** A question offers rules only where policy found some. What is kept for good has no letter. */
function choicesFor(question: Question): readonly Choice[] {
  const { canPreview, effects } = question;
  const { rules = [] } = question.verdict;
  const first = [...(canKeep(question) ? [keep] : []), effects ? forReal : once];
  // Changes to files that other programs obey are agreed to last.
  if (effects && effects.dangers.length > 0) return [no, noBecause, forReal];
  const shows = canPreview ? [preview] : [];
  if (rules.length === 0) return [...first, exactly, ...shows, no, noBecause];
  const what = decisionText(rulesText(rules), { lines: false });
  return [
    ...first,
    exactly,
    { text: `Yes, and ${what} in this session`, letter: 's', means: { answer: 'rules', lasts: 'session' } },
    { text: keepsBelow, means: { answer: 'rules', lasts: 'always' } },
    ...shows,
    no,
    noBecause,
  ];
}

/** Returns the settings that "don't ask again" writes. */
function keptText({ verdict: { rules = [] } }: Question): readonly string[] {
  return rules.map((rule) => `rules.allow: ${JSON.stringify(rule)}`);
}

const whyNot = 'Why not? ';
/** The rows of the terminal that are neither body nor choices: two free rows, gap, status, title, the notes on what is
 * above and below, hint. */
const rowsAround = 8;
/** In a narrower window the rows would be cut. */
const leastColumns = 14;
/** The rows that text, reasons and targets need at least, so that rules stand below the choices and not in the text. */
const leastBesideRules = 4;
const question = 'Allow this call?';

/** The contents of a permission prompt. */
interface ApprovalProps {
  readonly tool: string;
  readonly risk: string;
  /** Null: there is no room to show what is asked. */
  readonly body: BodyPart | null;
  readonly reasons: readonly string[];
  readonly targets: readonly string[];
  readonly choices: readonly Choice[];
  /** The rules that "don't ask again" would write. */
  readonly kept: readonly string[];
  readonly selected: number;
  /** The reason that is being written; null where none is. */
  readonly message: string | null;
  readonly hint: string;
  readonly waits: boolean;
}

function ApprovalQuestion(props: ApprovalProps): ReactNode {
  const { tool, risk, body, reasons, targets, choices, kept, selected, message, hint, waits } = props;
  const { paint, glyphs } = useTheme();
  return (
    <Box flexDirection="column">
      <Row>{`${paint('warn', question)} ${paint('bold', tool)} ${paint('dim', `(${risk})`)}`}</Row>
      {body === null ? null : <Body body={body} before="you can say yes" />}
      {reasons.map((reason) => (
        <Row key={`r${reason}`}>{paint('warn', '! ') + reason}</Row>
      ))}
      {targets.map((target) => (
        <Row key={`t${target}`}>{`${paint('dim', glyphs.arrow)} ${target}`}</Row>
      ))}
      {message === null ? (
        <>
          <KeyHint text={hint} waits={waits} />
          {choices.map((choice, index) => (
            <ChoiceRow
              key={choice.text}
              text={choice.text}
              selected={index === selected}
              waits={waits}
              isLast={index === choices.length - 1}
            />
          ))}
          {kept.map((rule) => (
            <Row key={`k${rule}`} tone="dim">{`  ${rule}`}</Row>
          ))}
        </>
      ) : (
        <Row cursor={textWidth(whyNot + message)}>{whyNot + message}</Row>
      )}
    </Box>
  );
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

interface ChoiceProps {
  readonly text: string;
  readonly selected: boolean;
  readonly waits: boolean;
  readonly isLast: boolean;
}

function ChoiceRow({ text, selected, waits, isLast }: ChoiceProps): ReactNode {
  const { paint, glyphs } = useTheme();
  const sign = selected ? glyphs.prompt : '  ';
  const row = selected ? paint('prompt', sign) + paint('bold', text) : sign + text;
  const cursor = isLast ? textWidth(`  ${text}`) : undefined;
  return <Row cursor={cursor}>{waits ? paint('dim', sign + text) : row}</Row>;
}

/** The question about a call. Its default is no; what was not on the screen cannot be agreed to, and no single letter
 * agrees to a dangerous call. */
export function createApproval(
  asked: Question,
  theme: Theme,
  onAnswer: (answer: PermissionAnswer) => void,
  onChange: () => void,
): Overlay {
  const { texts, edit } = questionParts(asked);
  const body = new ScrolledBody(texts, (columns) => editRows(edit, theme, columns));
  const diff = decisionText(asked.effects?.diff ?? '', { lines: true });
  const bodies = { body, diff: diff === '' ? null : new ScrolledBody(diff.split('\n')) };
  return new Approval(asked, bodies, theme.glyphs.arrow, onAnswer, onChange);
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
  readonly #arrow: string;
  readonly #choices: readonly Choice[];
  #selected: number;
  #message: Editor | null = null;
  #hint = '';
  /** Until it was drawn nothing of it was seen. */
  #isTooSmall = true;

  constructor(
    asked: Question,
    { body, diff }: { readonly body: ScrolledBody; readonly diff: ScrolledBody | null },
    arrow: string,
    onAnswer: (answer: PermissionAnswer) => void,
    onChange: () => void,
  ) {
    this.#question = asked;
    this.#arrow = arrow;
    this.#onAnswer = onAnswer;
    this.#onChange = onChange;
    this.#body = body;
    this.#asked = body;
    this.#other = diff;
    this.#choices = choicesFor(asked);
    this.#selected = this.#choices.indexOf(no);
  }

  /** False while a reason is written: then every key belongs to that. */
  get asks(): boolean {
    return this.#message === null;
  }

  element(size: ScreenSize, waits: boolean): ReactElement {
    const { verdict } = this.#question;
    const columns = Math.max(10, size.columns - 4);
    const isRoomy = size.rows > rowsAround + 1 && size.columns >= leastColumns;
    this.#isTooSmall = !isRoomy;
    const shownChoices = isRoomy
      ? windowOf(this.#choices.length, this.#selected, size.rows - rowsAround - 1)
      : windowOf(this.#choices.length, Math.max(this.#selected, this.#choices.indexOf(no)), size.rows - 4);
    const tool = decisionText(this.#question.call.tool.name, { lines: false });
    const rules = keptText(this.#question).flatMap((rule) => brokenText(rule, columns));
    const free = size.rows - rowsAround - shownChoices.length;
    const isBelow = free - rules.length >= leastBesideRules;
    const room = Math.max(1, isBelow ? free - rules.length : free);
    const reasons = fitting(verdict.reasons, '!', columns, Math.floor(room / 2));
    const mostTargets = Math.max(0, Math.min(6, Math.floor((room - reasons.rows.length) / 3)));
    const targets = fitting(verdict.targets ?? [], this.#arrow, columns, mostTargets);
    const name = cutTitle(tool, verdict.risk, columns);
    const behind = [...name, ...targets.behind, ...reasons.behind, ...(isBelow ? [] : rules)];
    this.#body.wrap(columns, { prose: false, behind });
    const height = room - reasons.rows.length - targets.rows.length;
    return (
      <ApprovalQuestion
        tool={tool}
        risk={verdict.risk}
        {...(isRoomy
          ? { body: this.#body.part(height), reasons: reasons.rows, targets: targets.rows }
          : { body: null, reasons: [], targets: [] })}
        choices={shownChoices.map((index) => this.#shownChoice(index, isBelow))}
        kept={isRoomy && isBelow ? rules : []}
        selected={shownChoices.indexOf(this.#selected)}
        message={this.#message ? decisionText(editorText(this.#message), { lines: false }) : null}
        hint={this.#hintNow()}
        waits={waits}
      />
    );
  }

  #hintNow(): string {
    if (this.#isTooSmall) return tooSmallHint;
    return this.#hint === '' ? this.#keys() : this.#hint;
  }

  #shownChoice(index: number, isBelow: boolean): Choice {
    const choice = this.#choices[index] ?? no;
    return choice.text === keepsBelow && !isBelow ? { ...choice, text: keepsAbove } : choice;
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

  #keys(): string {
    const letters = this.#choices.flatMap(({ letter = [] }) => letter).join(' ');
    const other = this.#body === this.#asked ? 'the diff' : 'the call';
    const shows = this.#other === null ? '' : `; ${dialogKeys.details} to show ${other}`;
    return `Arrows and Enter to choose${this.#isDangerous() ? '' : `, or ${letters}`}; ${dialogKeys.leave} to reject${shows}`;
  }

  #takeKey(name: string): boolean {
    switch (name) {
      case 'up':
        this.#selected = Math.max(0, this.#selected - 1);
        break;
      case 'down':
      case 'tab':
        this.#selected = Math.min(this.#choices.length - 1, this.#selected + 1);
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
    const index = this.#indexOf(letter.toLowerCase());
    if (letter === ' ' && this.#body.goesOn) this.#body.page(1);
    else if (index < 0) return false;
    else if (this.#isDangerous() && this.#choices[index] !== preview) {
      this.#hint = 'Dangerous: choose with the arrows and Enter.';
      return false;
    } else this.#choose(index);
    return true;
  }

  /** A choice has its letter, and the number of its row. */
  #indexOf(letter: string): number {
    const found = this.#choices.findIndex((choice) => choice.letter === letter);
    const numbered = found < 0 && /^[1-9]$/.test(letter) ? Number(letter) - 1 : found;
    return this.#choices[numbered]?.letter === undefined ? -1 : numbered;
  }

  #choose(index: number): void {
    const means = this.#choices[index]?.means ?? no.means;
    this.#selected = index;
    if (isYes(means) && this.#isTooSmall) {
      this.#selected = this.#choices.indexOf(no);
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

/** A title that does not fit is cut at the edge: then the body says whole what it says. */
function cutTitle(tool: string, risk: string, columns: number): readonly string[] {
  const fits = textWidth(`${question} ${tool} (${risk})`) <= columns;
  return fits ? [] : brokenText(`tool: ${tool} (${risk})`, columns);
}

/** Returns which of `length` items to show in `height` rows, so that the chosen one is among them. */
function windowOf(length: number, selected: number, height: number): readonly number[] {
  const count = Math.max(1, Math.min(length, height));
  const top = Math.max(0, Math.min(length - count, selected - count + 1));
  return Array.from({ length: count }, (_item, index) => top + index);
}

/** Returns texts as rows, at most `most` of them. Where some are left out, all stand behind the text as well, each row
 * behind `sign`: that is seen whole before a yes. */
function fitting(
  texts: readonly string[],
  sign: string,
  columns: number,
  most: number,
): { readonly rows: readonly string[]; readonly behind: readonly string[] } {
  const wrapped = (width: number): readonly string[] => texts.flatMap((text) => brokenText(text, width));
  const rows = wrapped(columns);
  if (rows.length <= most) return { rows, behind: [] };
  return { rows: rows.slice(0, most), behind: wrapped(columns - 2).map((row) => `${sign} ${row}`) };
}

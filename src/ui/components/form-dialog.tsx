import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import type { Form, FormAnswer, FormField, FormValue } from '../../kernel/core/form.js';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { fitWidth, textWidth, wrapLine, wrapWords } from '../terminal/rows.js';
import { decisionText } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import { editKey, type Editor, editorText, editorWith, paste, type } from '../editor/editor.js';
import {
  askerText,
  bodyLines,
  filled,
  isChosen,
  optionsOf,
  placeText,
  type FormReading,
  saidByChoice,
  saidByText,
} from '../filled-form.js';
import { dialogKeys } from '../editor/keybindings.js';
import { Body, type BodyPart, ScrolledBody } from './approval.js';
import { layoutEditor } from './prompt.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** One thing to choose. Its texts are clean. */
interface Entry {
  readonly means: 'option' | 'own' | 'nothing';
  readonly label: string;
  readonly about: string;
}

/** A row of the list, or of the text that is written. */
interface ListRow {
  readonly text: string;
  readonly entry: number;
  readonly isAbout: boolean;
}

/** The rows of the terminal that are neither body nor list: two free rows, gap, status, title, the notes on what is
 * above and below, hint. */
const rowsAround = 8;
const mostWrittenRows = 5;

/** The contents of the dialog for one question. */
interface FormProps {
  readonly asker: string;
  readonly place: string;
  readonly body: BodyPart;
  readonly list: readonly ListRow[];
  readonly selected: number;
  /** The text that is written; null where something is chosen. */
  readonly written: { readonly lines: readonly string[]; readonly row: number; readonly column: number } | null;
  readonly problem: readonly string[];
  readonly hint: string;
  readonly waits: boolean;
}

function FormQuestion(props: FormProps): ReactNode {
  const { asker, place, body, list, selected, written, problem, hint, waits } = props;
  const { paint, glyphs } = useTheme();
  const last = list.at(-1);
  return (
    <Box flexDirection="column">
      <Row>{`${paint('warn', asker)}${place === '' ? '' : ` ${paint('dim', `(${place})`)}`}`}</Row>
      <Body body={body} before="you can answer" />
      {problem.map((row) => (
        <Row key={`p${row}`}>{paint('warn', '! ') + row}</Row>
      ))}
      <KeyHint text={hint} waits={waits} />
      {written?.lines.map((line, index) => (
        <Row key={index} cursor={index === written.row ? written.column : undefined}>
          {line}
        </Row>
      )) ??
        list.map((row, index) => {
          const isSelected = row.entry === selected && !waits;
          const isFirst = list[index - 1]?.entry !== row.entry;
          const sign = isSelected && isFirst && !row.isAbout ? paint('prompt', glyphs.prompt) : '  ';
          const tone = row.isAbout || waits ? 'dim' : isSelected ? 'bold' : null;
          const cursor = row === last ? textWidth(`  ${row.text}`) : undefined;
          return (
            <Row key={index} cursor={cursor}>
              {sign + (tone === null ? row.text : paint(tone, row.text))}
            </Row>
          );
        })}
    </Box>
  );
}

/** The questions of a form, one after the other. What was not on the screen cannot be answered. */
export function createFormDialog(
  form: Form,
  onAnswer: (answer: FormAnswer) => void,
  onChange: () => void,
  render: Render = () => [],
): Overlay {
  return new FormDialog(form, onAnswer, onChange, render);
}

/** Renders Markdown as rows of so many columns. */
export type Render = (markdown: string, columns: number) => readonly string[];

class FormDialog implements Overlay {
  readonly #form: Form;
  readonly #onAnswer: (answer: FormAnswer) => void;
  readonly #onChange: () => void;
  readonly #values = new Map<string, FormValue>();
  #at = 0;
  #step: FormStep;
  /** It took a key, so the next one is meant for it, too. */
  #heard = false;
  readonly #render: Render;

  constructor(form: Form, onAnswer: (answer: FormAnswer) => void, onChange: () => void, render: Render) {
    this.#render = render;
    this.#form = form;
    this.#onAnswer = onAnswer;
    this.#onChange = onChange;
    this.#step = this.#stepAt(0);
  }

  #stepAt(at: number): FormStep {
    const field = this.#form.fields[at] ?? { name: '', question: '', kind: 'boolean', required: false };
    const preset = this.#values.get(field.name) ?? field.preset;
    return new FormStep(field, this.#bodyAt(at), preset, this.#form.title === undefined ? 'declines' : 'cancels');
  }

  /** A message in Markdown is rendered, between the title and the question. */
  #bodyAt(at: number): ScrolledBody {
    const { isMarkdown, message } = this.#form;
    if (isMarkdown !== true || at > 0) return new ScrolledBody(bodyLines(this.#form, at));
    const question = bodyLines({ ...this.#form, message: '' }, at);
    const text = decisionText(message, { lines: true });
    return new ScrolledBody([], {
      edit: (columns) => {
        const rows = [...this.#render(text, columns), '', ...question.flatMap((line) => wrapped(line, columns))];
        return rows.flatMap((row) => wrapLine(row, columns).map((part) => part.text));
      },
    });
  }

  /** False while a text is written: then every key belongs to that. */
  get asks(): boolean {
    return !this.#heard || !this.#step.isWriting;
  }

  element(size: ScreenSize, waits: boolean): ReactElement {
    const width = Math.max(10, size.columns - 4);
    const place = placeText(this.#form, this.#at);
    return (
      <FormQuestion
        asker={fitWidth(askerText(this.#form), width)}
        place={place}
        {...this.#step.rows(size, waits)}
        waits={waits}
      />
    );
  }

  take(event: InputEvent): InputEvent | null {
    const left = this.#taken(event);
    this.#heard = left === null;
    this.#onChange();
    return left;
  }

  #taken(event: InputEvent): InputEvent | null {
    const name = event.type === 'key' ? keyName(event) : '';
    if (name === 'ctrl-c') {
      // The key ends the turn as well, so the input receives it too.
      this.#onAnswer({ answer: 'cancelled' });
      return event;
    }
    if (name === 'shift-tab') {
      this.#go(-1);
      return null;
    }
    const outcome = this.#step.take(event, name);
    if (outcome === 'declined') this.#onAnswer({ answer: 'declined' });
    else if (outcome === 'not taken') return event;
    else if (outcome !== 'taken') this.#said(outcome.value);
    return null;
  }

  #said(value: FormValue | undefined): void {
    const { name } = this.#step.field;
    if (value === undefined) this.#values.delete(name);
    else this.#values.set(name, value);
    if (this.#at + 1 >= this.#form.fields.length) this.#onAnswer(filled(this.#values));
    else this.#go(1);
  }

  #go(by: 1 | -1): void {
    if (this.#at + by < 0) return;
    this.#at += by;
    this.#step = this.#stepAt(this.#at);
  }
}

/** The outcome of a key: a value, whether the key was used, or that the user declines the form. */
type Outcome = Extract<FormReading, { readonly ok: true }> | 'taken' | 'not taken' | 'declined';

/** One question: a list to choose from, or a text to write, or both. */
class FormStep {
  readonly field: FormField;
  readonly #leaves: string;
  readonly #body: ScrolledBody;
  readonly #entries: readonly Entry[];
  readonly #marked: Set<number>;
  #own: string;
  #selected: number;
  #text: Editor | null;
  #problem = '';

  /** `leaves`: the effect of the key that ends the form without an answer. */
  constructor(
    field: FormField,
    body: ScrolledBody,
    preset: FormValue | undefined,
    leaves: 'declines' | 'cancels' = 'declines',
  ) {
    this.#leaves = leaves;
    const options = optionsOf(field);
    const given = (Array.isArray(preset) ? preset : preset === undefined ? [] : [preset]).map(wordOf);
    const indexes = given.map((value) => options.findIndex((option) => option.value === value));
    this.field = field;
    this.#body = body;
    this.#entries = entriesOf(field);
    this.#marked = new Set(field.several === true ? indexes.filter((index) => index >= 0) : []);
    this.#own = given.find((_, at) => indexes[at] === -1) ?? '';
    this.#selected = Math.max(0, indexes[0] ?? 0);
    this.#text = isChosen(field) ? null : editorWith(clean(given.join('')));
  }

  get isWriting(): boolean {
    return this.#text !== null;
  }

  rows(
    size: ScreenSize,
    waits: boolean,
  ): Pick<FormProps, 'body' | 'list' | 'selected' | 'written' | 'problem' | 'hint'> {
    const columns = Math.max(10, size.columns - 4);
    const problem = wrapped(this.#problem, columns).slice(0, 2);
    const room = Math.max(2, size.rows - rowsAround - problem.length);
    const wanted = this.#body.wrap(columns, { prose: true });
    const written = this.#text ? writtenRows(this.#text, size.columns, Math.min(mostWrittenRows, room - 1)) : null;
    const mostList = Math.max(1, room - Math.min(wanted, Math.max(1, Math.floor(room / 2))));
    const list = written ? [] : this.#list(columns, mostList);
    const body = this.#body.part(Math.max(1, room - (written?.lines.length ?? list.length)));
    return { body, list, selected: this.#selected, written, problem, hint: waits ? '' : this.#hint() };
  }

  /** Returns the rows around the selected entry. Where there is little room, only that one is explained. */
  #list(columns: number, most: number): readonly ListRow[] {
    const all = (explained: (entry: number) => boolean): readonly ListRow[] =>
      this.#entries.flatMap((entry, index) => this.#entryRows(entry, index, columns, explained(index)));
    const full = all(() => true);
    const rows = full.length <= most ? full : all((index) => index === this.#selected);
    const at = rows.findIndex(({ entry }) => entry === this.#selected);
    const top = Math.max(0, Math.min(at - Math.floor(most / 3), rows.length - most));
    return rows.slice(top, top + most);
  }

  #entryRows({ means, label, about }: Entry, index: number, columns: number, isExplained: boolean): ListRow[] {
    const several = this.field.several === true && means !== 'nothing';
    const isMarked = means === 'own' ? this.#own !== '' : this.#marked.has(index);
    const lead = `${several ? (isMarked ? '[x] ' : '[ ] ') : ''}${index + 1}. `;
    const indent = ' '.repeat(lead.length);
    const own = means === 'own' && this.#own !== '' ? `: ${decisionText(this.#own, { lines: false })}` : '';
    const labels = wrapped(label + own, columns - lead.length);
    const abouts = isExplained ? wrapped(about, columns - lead.length) : [];
    return [
      ...labels.map((text, row) => ({ text: (row === 0 ? lead : indent) + text, entry: index, isAbout: false })),
      ...abouts.map((text) => ({ text: indent + text, entry: index, isAbout: true })),
    ];
  }

  #hint(): string {
    if (this.#text)
      return isChosen(this.field)
        ? `Enter answers; ${dialogKeys.leave} goes back`
        : `Enter answers; ${this.#leaving()}`;
    if (this.field.several === true) return `Space selects, Enter answers; ${this.#leaving()}`;
    return `Enter or a number; ${this.#leaving()}`;
  }

  #leaving(): string {
    return `${dialogKeys.leave} ${this.#leaves}`;
  }

  take(event: InputEvent, name: string): Outcome {
    this.#problem = '';
    if (name === 'pagedown' || name === 'pageup') {
      this.#body.page(name === 'pagedown' ? 1 : -1);
      return 'taken';
    }
    if (this.#text) return this.#takeWritten(this.#text, event, name);
    if (event.type === 'key') return this.#takeKey(name);
    return this.#takeText(event.text, event.type === 'paste');
  }

  #takeKey(name: string): Outcome {
    switch (name) {
      case 'up':
        this.#selected = Math.max(0, this.#selected - 1);
        return 'taken';
      case 'down':
      case 'tab':
        this.#selected = Math.min(this.#entries.length - 1, this.#selected + 1);
        return 'taken';
      case 'escape':
      case 'ctrl-d':
        return 'declined';
      case 'enter':
        return this.#enter();
      default:
        return 'not taken';
    }
  }

  /** A text begins the user's own answer where that is selected; else only numbers and blanks mean something. */
  #takeText(text: string, isPasted: boolean): Outcome {
    if (this.#entries[this.#selected]?.means === 'own' && (isPasted || !/^[\d ]$/.test(text))) {
      this.#text = isPasted ? paste(editorWith(''), text) : editorWith(text);
      return 'taken';
    }
    const byKey = isPasted ? -1 : optionsOf(this.field).findIndex(({ key }) => key === text);
    if (byKey >= 0) return this.#takeNumber(byKey);
    if (isPasted || !/^[1-9 ]$/.test(text)) return 'not taken';
    return text === ' ' ? this.#takeBlank() : this.#takeNumber(Number(text) - 1);
  }

  #takeBlank(): Outcome {
    if (this.#body.goesOn) this.#body.page(1);
    else if (this.field.several === true) return this.#mark(this.#selected);
    else return 'not taken';
    return 'taken';
  }

  #takeNumber(index: number): Outcome {
    if (index >= this.#entries.length) return 'not taken';
    this.#selected = index;
    return this.field.several === true ? this.#mark(index) : this.#enter();
  }

  #mark(index: number): Outcome {
    if (this.#entries[index]?.means === 'own') this.#text = editorWith(this.#own);
    else if (!this.#marked.delete(index)) this.#marked.add(index);
    return 'taken';
  }

  #enter(): Outcome {
    if (this.#body.isUnseen) return this.#refused(this.#body.showMore());
    return this.field.several === true ? this.#enterMarked() : this.#enterOne(this.#entries[this.#selected]?.means);
  }

  #enterOne(means: Entry['means'] | undefined): Outcome {
    if (means === 'nothing') return { ok: true, value: undefined };
    if (means === 'own') this.#text = editorWith(this.#own);
    return means === 'own' ? 'taken' : this.#orProblem(saidByChoice(this.field, [this.#selected]));
  }

  /** With nothing marked, Enter on the user's own words begins them. */
  #enterMarked(): Outcome {
    const marked = [...this.#marked].sort((a, b) => a - b);
    const isEmpty = marked.length === 0 && this.#own === '';
    if (isEmpty && this.#entries[this.#selected]?.means === 'own') return this.#mark(this.#selected);
    if (isEmpty && this.field.required) return this.#refused('Select one with Space.');
    return this.#orProblem(saidByChoice(this.field, marked, this.#own));
  }

  #takeWritten(text: Editor, event: InputEvent, name: string): Outcome {
    if (name === 'enter') return this.#enterWritten(editorText(text));
    if (name === 'escape') {
      if (!isChosen(this.field)) return 'declined';
      this.#text = null;
      return 'taken';
    }
    if (event.type === 'text') this.#text = type(text, event.text);
    else if (event.type === 'paste') this.#text = paste(text, event.text);
    else this.#text = editKey(text, event) ?? text;
    return 'taken';
  }

  #enterWritten(written: string): Outcome {
    if (this.#body.isUnseen) return this.#refused(this.#body.showMore());
    if (isChosen(this.field) && (this.field.several === true || written.trim() === '')) {
      this.#own = written.trim();
      this.#text = null;
      return 'taken';
    }
    return this.#orProblem(saidByText(this.field, written));
  }

  #orProblem(said: FormReading): Outcome {
    return said.ok ? said : this.#refused(said.problem);
  }

  #refused(problem: string): 'taken' {
    this.#problem = problem;
    return 'taken';
  }
}

function entriesOf(field: FormField): readonly Entry[] {
  const options = optionsOf(field).map(({ label, about = '', key }): Entry => {
    return { means: 'option', label: clean(key === undefined ? label : `${label} (${key})`), about: clean(about) };
  });
  const own: Entry = { means: 'own', label: 'Something else (type your answer)', about: '' };
  const nothing: Entry = { means: 'nothing', label: 'Skip this', about: '' };
  return [
    ...options,
    ...(field.free === true ? [own] : []),
    ...(field.required || field.several === true ? [] : [nothing]),
  ];
}

function clean(text: string): string {
  return decisionText(text, { lines: false });
}

function wordOf(value: string | number | boolean): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

/** Breaks a text at words, and a word that is too long anywhere. */
function wrapped(text: string, columns: number): readonly string[] {
  if (text === '') return [];
  return wrapWords(text, columns).flatMap((line) => wrapLine(line, columns).map((row) => row.text));
}

function writtenRows(text: Editor, columns: number, most: number): NonNullable<FormProps['written']> {
  const { lines, cursor } = layoutEditor(text, '> ', columns, Math.max(1, most));
  return { lines, row: cursor.line, column: cursor.column };
}

import type { Form, FormAnswer, FormField, FormOption, FormValue } from '../kernel/core/form.js';
import { decisionText } from '../kernel/core/sanitize.js';

/** The answer to one question. `value` is undefined if the user skipped it. */
export type FormReading =
  | { readonly ok: true; readonly value: FormValue | undefined }
  | { readonly ok: false; readonly problem: string };

/** Returns the options of a question. */
export function optionsOf(field: FormField): readonly FormOption[] {
  return field.kind === 'boolean' ? yesAndNo : (field.options ?? []);
}

const yesAndNo: readonly FormOption[] = [
  { value: 'yes', label: 'Yes' },
  { value: 'no', label: 'No' },
];

export function isChosen({ kind }: FormField): boolean {
  return kind === 'choice' || kind === 'boolean';
}

/** Reads the answer from the indexes of the chosen options, with the user's own text beside them. */
export function saidByChoice(field: FormField, indexes: readonly number[], own = ''): FormReading {
  const values = indexes.flatMap((index) => optionsOf(field)[index]?.value ?? []);
  if (own !== '') values.push(own);
  const [value] = values;
  if (value === undefined) return saidNothing(field);
  if (field.kind === 'boolean') return checked(field, value === 'yes');
  return checked(field, field.several === true ? values : value);
}

/** Says what a text means that the user wrote. Empty: what is preset, or nothing. */
export function saidByText(field: FormField, written: string): FormReading {
  const text = written.trim();
  if (text === '') return field.preset === undefined ? saidNothing(field) : checked(field, field.preset);
  if (field.kind === 'text') return checked(field, text);
  if (field.kind === 'choice') return checked(field, field.several === true ? [text] : text);
  if (field.kind === 'boolean') return saidByWord(field, text);
  const value = Number(text);
  if (!Number.isFinite(value)) return { ok: false, problem: 'It must be a number.' };
  if (field.kind === 'integer' && !Number.isSafeInteger(value))
    return { ok: false, problem: 'It must be a whole number.' };
  return checked(field, value);
}

function saidByWord(field: FormField, text: string): FormReading {
  if (/^(?:y(?:es)?|true)$/i.test(text)) return checked(field, true);
  if (/^(?:no?|false)$/i.test(text)) return checked(field, false);
  return { ok: false, problem: 'Answer yes or no.' };
}

function saidNothing(field: FormField): FormReading {
  return field.required ? { ok: false, problem: 'This needs an answer.' } : { ok: true, value: undefined };
}

function checked(field: FormField, value: FormValue): FormReading {
  const problem = field.check?.(value) ?? null;
  return problem === null ? { ok: true, value } : { ok: false, problem: decisionText(problem, { lines: false }) };
}

/** Says who asks: `The model asks`; the title of a form that has one. */
export function askerText({ from, title }: Form): string {
  if (title !== undefined) return decisionText(title, { lines: false });
  const name = decisionText(from, { lines: false });
  return `${name.charAt(0).toUpperCase()}${name.slice(1)} asks`;
}

/** Names the place of a question among several: `2 of 3: Database`. */
export function placeText({ fields }: Form, at: number): string {
  const label = decisionText(fields[at]?.label ?? '', { lines: false });
  const place = fields.length > 1 ? `${at + 1} of ${fields.length}` : '';
  return place !== '' && label !== '' ? `${place}: ${label}` : place + label;
}

/** Returns what is read before the answer: what the form is about, with its first question, and the question. */
export function bodyLines({ message, fields }: Form, at: number): readonly string[] {
  const about = at === 0 && message !== '' ? decisionText(message, { lines: true }).split('\n') : [];
  const asked = decisionText(fields[at]?.question ?? '', { lines: true });
  return [...about, ...(about.length > 0 && asked !== '' ? [''] : []), ...(asked === '' ? [] : asked.split('\n'))];
}

/** Returns the answer without the fields that were left out. */
export function filled(values: ReadonlyMap<string, FormValue>): FormAnswer {
  return { answer: 'filled', values: Object.fromEntries(values) };
}

/** A form that is filled in line by line, where the terminal edits the line. */
export interface FormByLine {
  /** Returns what is printed before the prompt of the question. */
  lines(): readonly string[];
  prompt(): string;
  /** Takes a line: null where there is more to answer. */
  take(line: string): FormAnswer | null;
}

export function fillByLine(form: Form): FormByLine {
  const values = new Map<string, FormValue>();
  let at = 0;
  let problem = '';
  const field = (): FormField | undefined => form.fields[at];
  return {
    lines: () => {
      const now = field();
      if (!now || problem !== '') return [problem];
      const place = placeText(form, at);
      return [
        `${askerText(form)}${place === '' ? '' : ` (${place})`}`,
        ...bodyLines(form, at).map((line) => `  ${line}`),
        ...optionsOf(now).map(optionLine),
        ...(at === 0 ? ['To decline, write: decline'] : []),
      ];
    },
    prompt: () => {
      const now = field();
      return now ? `${howToAnswer(now)}: ` : '';
    },
    take: (line) => {
      const now = field();
      if (now && /^decline$/i.test(line.trim())) return { answer: 'declined' };
      const said = now ? saidByLine(now, line) : null;
      problem = said?.ok === false ? said.problem : '';
      if (said?.ok === false) return null;
      if (now && said?.value !== undefined) values.set(now.name, said.value);
      at++;
      return field() ? null : filled(values);
    },
  };
}

function optionLine({ label, about = '', key }: FormOption, index: number): string {
  const named = key === undefined ? label : `${label} (${key})`;
  return `${index + 1}. ${decisionText(`${named}  ${about}`.trimEnd(), { lines: false })}`;
}

function howToAnswer({ kind, several, free, required, preset }: FormField): string {
  const ways: Readonly<Record<FormField['kind'], string>> = {
    choice: several === true ? 'numbers, with commas' : 'number',
    boolean: 'yes or no',
    text: 'answer',
    number: 'number',
    integer: 'whole number',
  };
  const own = free === true ? ', or your own answer' : '';
  const empty =
    preset !== undefined
      ? `, or nothing for ${decisionText(String(preset), { lines: false })}`
      : required
        ? ''
        : ', or nothing to skip it';
  return ways[kind] + own + empty;
}

/** Reads numbers of options, an option in its own words, or a text of the user's. */
function saidByLine(field: FormField, line: string): FormReading {
  const text = line.trim();
  if (field.kind !== 'choice' || text === '') return saidByText(field, text);
  const options = optionsOf(field);
  const said = text.toLowerCase();
  const named = options.findIndex(({ label, key }) => label.toLowerCase() === said || key === said);
  if (named >= 0) return saidByChoice(field, [named]);
  const numbers = /^\d+(?:[\s,]+\d+)*$/.test(text) ? text.split(/[\s,]+/).map(Number) : [];
  const fits = numbers.every((number) => number >= 1 && number <= options.length);
  if (numbers.length > 0 && fits && (field.several === true || numbers.length === 1))
    return saidByChoice(
      field,
      numbers.map((number) => number - 1),
    );
  if (field.free === true) return saidByText(field, text);
  return {
    ok: false,
    problem: field.several === true ? 'Write the numbers of what you choose.' : 'Write the number of one of them.',
  };
}

import { createHash } from 'node:crypto';
import type { Form, FormField, FormValue } from '../../kernel/core/form.js';
import { isRecord } from '../../kernel/core/json.js';
import { decisionText } from '../../kernel/core/sanitize.js';
import type { FollowerField, FollowerForm } from './messages.js';

/** Returns a form as clients show it. */
export function followerForm(id: string, { from, title, message, fields }: Form): FollowerForm {
  const form = {
    id,
    from: shownText(from),
    title: title === undefined ? null : shownText(title),
    message: decisionText(message, { lines: true }),
    fields: fields.map(followerField),
  };
  return { ...form, shown: createHash('sha256').update(JSON.stringify(form)).digest('hex') };
}

function followerField(field: FormField): FollowerField {
  const { name, question, label, kind, options = [], required, preset = null } = field;
  return {
    name,
    question: decisionText(question, { lines: true }),
    label: label === undefined ? null : shownText(label),
    kind,
    options: options.map(({ value, label: text, about }) => ({
      value,
      label: shownText(text),
      about: about === undefined ? null : shownText(about),
    })),
    several: field.several === true,
    free: field.free === true,
    required,
    preset,
  };
}

function shownText(text: string): string {
  return decisionText(text, { lines: false });
}

/** The answer to a form that came from a client: its values, or what is wrong with them. */
export type ReadValues =
  | { readonly ok: true; readonly values: Readonly<Record<string, FormValue>> }
  | { readonly ok: false; readonly problem: string };

const longestText = 100_000;

/** Checks the values of a client against the form. */
export function readValues({ fields }: Form, given: unknown): ReadValues {
  if (!isRecord(given)) return { ok: false, problem: '`values` must be an object.' };
  const unknown = Object.keys(given).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) return { ok: false, problem: `The form has no field \`${unknown}\`.` };
  const values: Record<string, FormValue> = {};
  for (const field of fields) {
    const value = given[field.name];
    const problem = isAbsent(value) ? absentProblem(field) : valueProblem(field, value);
    if (problem !== null) return { ok: false, problem };
    if (!isAbsent(value)) values[field.name] = value as FormValue;
  }
  return { ok: true, values };
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
}

function absentProblem({ name, required }: FormField): string | null {
  return required ? `\`${name}\` needs an answer.` : null;
}

function valueProblem(field: FormField, value: unknown): string | null {
  const expected = expectedValue(field, value);
  if (expected !== null) return `\`${field.name}\` must be ${expected}.`;
  const problem = field.check?.(value as FormValue) ?? null;
  return problem === null ? null : `\`${field.name}\`: ${problem}`;
}

/** Returns what an answer must be instead; null if it is that. */
function expectedValue(field: FormField, value: unknown): string | null {
  switch (field.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? null : 'true or false';
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? null : 'a number';
    case 'integer':
      return Number.isSafeInteger(value) ? null : 'a whole number';
    case 'text':
      return isText(value) ? null : 'a text';
    case 'choice':
      return expectedChoice(field, value);
    default:
      return field.kind satisfies never;
  }
}

function expectedChoice({ options = [], several, free }: FormField, value: unknown): string | null {
  const isChoice = (one: unknown): boolean =>
    isText(one) && (free === true || options.some((option) => option.value === one));
  const names = options.map((option) => JSON.stringify(option.value)).join(', ');
  const one = free === true ? `one of ${names}, or other words` : `one of ${names}`;
  if (several === true) return Array.isArray(value) && value.every(isChoice) ? null : `a list; each item ${one}`;
  return isChoice(value) ? null : one;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= longestText;
}

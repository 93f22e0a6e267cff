import type { ElicitResult } from '@modelcontextprotocol/client';
import type {
  Form,
  FormAnswer,
  FormField,
  FormOption,
  FormValue,
  HookedForm,
  ServerQuestion,
} from '../../kernel/core/form.js';
import { isRecord, type Json } from '../../kernel/core/json.js';
import { headBytes } from '../../kernel/core/text.js';
import type { CallSession } from '../../kernel/core/tool.js';
import { visible } from './foreign-tools.js';

/** Puts a form to the user, or to hooks that answer what a server asks. */
export type PutForm = (form: Form, question: ServerQuestion) => Promise<FormAnswer>;

/** Makes what asks the hooks of the user first. Null: there is nobody to ask. */
export function answersOf({ answerForm, putForm }: Pick<CallSession, 'answerForm' | 'putForm'>): PutForm | null {
  if (!answerForm) return putForm ?? null;
  return async (form, question) => {
    const hooked = await answerForm(question);
    const answer = hooked === null ? null : answerFrom(hooked, form, question);
    return answer ?? (await putForm?.(form)) ?? { answer: 'cancelled' };
  };
}

/** Null: the answer of a hook does not fit the form, so the user is asked. */
function answerFrom({ action, content }: HookedForm, { fields }: Form, { mode }: ServerQuestion): FormAnswer | null {
  if (action !== 'accept') return { answer: action === 'decline' ? 'declined' : 'cancelled' };
  if (mode === 'url') return { answer: 'filled', values: { [visited]: 'yes' } };
  const values: Record<string, FormValue> = {};
  for (const field of fields) {
    const value = content[field.name];
    if (value === undefined && !field.required) continue;
    if (!fitsField(value, field)) return null;
    values[field.name] = value;
  }
  return { answer: 'filled', values };
}

function fitsField(value: unknown, { kind, options, several, check }: FormField): value is FormValue {
  const isChoice = (one: unknown): boolean => (options ?? []).some((option) => option.value === one);
  const isOfKind = {
    choice: several ? Array.isArray(value) && value.every(isChoice) : isChoice(value),
    text: typeof value === 'string',
    number: typeof value === 'number',
    integer: Number.isInteger(value),
    boolean: typeof value === 'boolean',
  }[kind];
  return isOfKind && (check?.(value as FormValue) ?? null) === null;
}

const maxFields = 20;
const maxOptions = 100;
const maxTextBytes = 4096;

/** Has the user answer a question of a server (`elicitation/create`). If no user is there, the answer is `cancel`.
 * Source: Model Context Protocol 2025-11-25 and 2026-07-28, "Elicitation", read 2026-11-22. */
export async function elicited(server: string, params: unknown, putForm: PutForm | null): Promise<ElicitResult> {
  const form = formOf(server, params);
  if (form === null) return { action: 'decline' };
  if (putForm === null) return { action: 'cancel' };
  const answer = await putForm(form, questionOf(server, params));
  switch (answer.answer) {
    case 'declined':
      return { action: 'decline' };
    case 'cancelled':
    case 'late':
      return { action: 'cancel' };
    case 'filled':
      if (isRecord(params) && params['mode'] === 'url')
        return { action: answer.values[visited] === 'yes' ? 'accept' : 'decline' };
      return {
        action: 'accept',
        content: contentOf(answer.values),
      };
    default:
      return answer satisfies never;
  }
}

function questionOf(server: string, params: unknown): ServerQuestion {
  const { message, mode, url, requestedSchema } = isRecord(params) ? params : {};
  return {
    server,
    message: boundText(message, maxTextBytes),
    mode: mode === 'url' ? 'url' : 'form',
    url: typeof url === 'string' ? boundText(url, maxTextBytes) : null,
    schema: isRecord(requestedSchema) ? (requestedSchema as Json) : null,
  };
}

function contentOf(values: Readonly<Record<string, FormValue>>): NonNullable<ElicitResult['content']> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === 'object' ? [...value] : value]),
  );
}

/** Returns the form for what a server asks; null for what nobody should be asked. */
export function formOf(server: string, params: unknown): Form | null {
  if (!isRecord(params)) return null;
  const from = `the server ${server}`;
  const message = boundText(params['message'], maxTextBytes);
  if (params['mode'] === 'url') return visitForm(from, message, params['url']);
  const schema = isRecord(params['requestedSchema']) ? params['requestedSchema'] : {};
  const properties = Object.entries(isRecord(schema['properties']) ? schema['properties'] : {});
  if (properties.length > maxFields) return null;
  const required: readonly unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
  const fields = properties.map(([name, property]) => fieldOf(name, property, required.includes(name)));
  return fields.includes(null) ? null : { from, message, fields: fields.filter((field) => field !== null) };
}

const visited = 'visited';

/** The address is shown, and nothing is opened: what a server names must not start a program of this machine. */
function visitForm(from: string, message: string, url: unknown): Form | null {
  const address = typeof url === 'string' ? URL.parse(url) : null;
  if (address === null || (address.protocol !== 'https:' && address.protocol !== 'http:')) return null;
  if (address.href.length > maxTextBytes) return null;
  return {
    from,
    message: `${message}\n\nIt asks you to open this address at ${address.host} in a browser:\n${address.href}`,
    fields: [
      {
        name: visited,
        question: 'The agent does not open it. Will you open it?',
        kind: 'choice',
        options: [
          { value: 'yes', label: "Yes, I'll open it" },
          { value: 'no', label: 'No' },
        ],
        required: true,
      },
    ],
  };
}

function fieldOf(name: string, property: unknown, required: boolean): FormField | null {
  if (!isRecord(property)) return null;
  const { type, title, description } = property;
  const [label, about] = [boundText(title, 200), boundText(description, 1024)];
  const common = {
    name,
    question: about || label || boundText(name, 200),
    label: label || boundText(name, 200),
    required,
    ...presetOf(property['default']),
  };
  const options = optionsOf(property);
  if (options) return options.length > maxOptions ? null : { ...common, kind: 'choice', options };
  switch (type) {
    case 'array': {
      const choices = isRecord(property['items']) ? optionsOf(property['items']) : null;
      if (choices === null || choices.length > maxOptions) return null;
      return {
        ...common,
        kind: 'choice',
        options: choices,
        several: true,
        check: countCheck(property),
      };
    }
    case 'string':
      return {
        ...common,
        kind: 'text',
        check: textCheck(property),
      };
    case 'number':
    case 'integer':
      return {
        ...common,
        kind: type,
        check: numberCheck(property),
      };
    case 'boolean':
      return {
        ...common,
        kind: 'boolean',
      };
    default:
      return null;
  }
}

/** The values to choose from, in each of the ways that the protocol has had for them; null where any value will do. */
function optionsOf(schema: Readonly<Record<string, unknown>>): readonly FormOption[] | null {
  const titled = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(titled))
    return titled.flatMap((option: unknown) => {
      if (!isRecord(option) || typeof option['const'] !== 'string') return [];
      return [
        {
          value: option['const'],
          label: boundText(option['title'], 200) || boundText(option['const'], 200),
        },
      ];
    });
  const { enum: values, enumNames: names } = schema;
  if (!Array.isArray(values)) return null;
  const labels: readonly unknown[] = Array.isArray(names) ? names : [];
  return values
    .filter((value) => typeof value === 'string')
    .map((value, index) => ({ value, label: boundText(labels[index], 200) || boundText(value, 200) }));
}

function presetOf(value: unknown): { readonly preset?: FormValue } {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return { preset: value };
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? { preset: value } : {};
}

type Check = NonNullable<FormField['check']>;

function textCheck({ minLength, maxLength, format }: Readonly<Record<string, unknown>>): Check {
  return (value) => {
    if (typeof value !== 'string') return null;
    const { length } = [...value];
    if (typeof minLength === 'number' && length < minLength) return `It needs at least ${minLength} characters.`;
    if (typeof maxLength === 'number' && length > maxLength) return `It may have at most ${maxLength} characters.`;
    return value === '' || isOfFormat(value, format) ? null : `It is not a valid ${String(format)}.`;
  };
}

function isOfFormat(value: string, format: unknown): boolean {
  switch (format) {
    case 'email':
      return /^[^\s@]+@[^\s@]+$/.test(value);
    case 'uri':
      return URL.canParse(value);
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(value) && !Number.isNaN(Date.parse(value));
    case 'date-time':
      return /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value));
    default:
      return true;
  }
}

function numberCheck({ minimum, maximum }: Readonly<Record<string, unknown>>): Check {
  return (value) => {
    if (typeof minimum === 'number' && Number(value) < minimum) return `It is at least ${minimum}.`;
    return typeof maximum === 'number' && Number(value) > maximum ? `It is at most ${maximum}.` : null;
  };
}

function countCheck({ minItems, maxItems }: Readonly<Record<string, unknown>>): Check {
  return (value) => {
    const count = typeof value === 'object' ? value.length : 1;
    if (typeof minItems === 'number' && count < minItems) return `Choose at least ${minItems}.`;
    return typeof maxItems === 'number' && count > maxItems ? `Choose at most ${maxItems}.` : null;
  };
}

function boundText(text: unknown, maxBytes: number): string {
  return headBytes(visible(typeof text === 'string' ? text : ''), maxBytes);
}

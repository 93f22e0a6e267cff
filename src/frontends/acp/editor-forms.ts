import {
  type AgentContext,
  type CreateElicitationRequest,
  type ElicitationContentValue,
  type ElicitationPropertySchema,
  methods,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import type { Form, FormAnswer, FormField, FormValue } from '../../kernel/core/form.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { requestPermission, untilAborted } from './editor-session.js';

/** The editor that a form is put to. */
export interface FormPlace {
  readonly client: Pick<AgentContext, 'request'>;
  readonly sessionId: string;
  /** The call that asks. */
  readonly toolCallId: string;
  /** The editor shows forms; without that it can be asked for one choice after the other. */
  readonly showsForms: boolean;
  /** Aborted where the form was answered elsewhere: the request ends. */
  readonly signal: AbortSignal;
}

/** The most attempts to get an answer that fits. */
const mostTimes = 3;
/** Returns the name of the field for a free answer beside a choice. */
const ownWords = (name: string): string => `${name}_own_words`;

/** Returns true if the editor can show the form: as a form, or as one choice after the other. */
export function canShow({ showsForms }: Pick<FormPlace, 'showsForms'>, { fields }: Form): boolean {
  return showsForms || fields.every(isOneChoice);
}

/** Shows a form to the user in their editor. If the editor cannot show it, the answer is that of a user who declines.
 * Source: Agent Client Protocol, version 1, `elicitation/create` and `session/request_permission`, read 2026-11-22. */
export async function putToEditor(place: FormPlace, form: Form): Promise<FormAnswer> {
  if (place.showsForms) return await putForm(place, form);
  if (!canShow(place, form)) return { answer: 'declined' };
  const values: Record<string, FormValue> = {};
  for (const field of form.fields) {
    const chosen = await putChoice(place, form, field);
    if (typeof chosen !== 'string') return chosen;
    values[field.name] = chosen;
  }
  return { answer: 'filled', values };
}

async function putForm({ client, sessionId, toolCallId, signal }: FormPlace, form: Form): Promise<FormAnswer> {
  let problem = '';
  for (let time = 0; time < mostTimes; time++) {
    const request: CreateElicitationRequest = {
      mode: 'form',
      sessionId,
      toolCallId,
      message: [problem, `${form.from} asks:`, form.message]
        .filter((part) => part !== '')
        .map(cleanText)
        .join('\n'),
      requestedSchema: {
        type: 'object',
        properties: Object.fromEntries(form.fields.flatMap(properties)),
        required: form.fields.filter(({ required, free }) => required && free !== true).map(({ name }) => name),
      },
    };
    const reply = await client.request(methods.client.elicitation.create, request, untilAborted(signal));
    if (reply.action !== 'accept') return { answer: reply.action === 'decline' ? 'declined' : 'cancelled' };
    const values = valuesOf(form, (reply.content ?? {}) as Readonly<Record<string, ElicitationContentValue>>);
    problem = problemOf(form, values);
    if (problem === '') return { answer: 'filled', values };
  }
  return { answer: 'declined' };
}

function properties(field: FormField): readonly (readonly [string, ElicitationPropertySchema])[] {
  const { name, free, label, question } = field;
  const own: ElicitationPropertySchema = {
    type: 'string',
    title: `${cleanText(label ?? question)} (type your answer)`,
  };
  return [[name, property(field)], ...(free ? [[ownWords(name), own] as const] : [])];
}

function property({ kind, question, label, options = [], several, preset }: FormField): ElicitationPropertySchema {
  const about = { title: cleanText(label ?? question), description: cleanText(question) };
  const choices = options.map((option) => ({
    const: option.value,
    title: cleanText(option.about === undefined ? option.label : `${option.label}: ${option.about}`),
  }));
  if (kind === 'choice' && several) return { type: 'array', ...about, items: { anyOf: choices } };
  const texts = { ...about, ...(typeof preset === 'string' ? { default: preset } : {}) };
  if (kind === 'choice') return { type: 'string', ...texts, oneOf: choices };
  if (kind === 'text') return { type: 'string', ...texts };
  if (kind === 'boolean') return { type: kind, ...about, default: preset === true };
  return { type: kind, ...about, ...(typeof preset === 'number' ? { default: preset } : {}) };
}

/** The user's own words go before a choice; where several may be chosen they come with them. */
function valuesOf(
  { fields }: Form,
  content: Readonly<Record<string, ElicitationContentValue>>,
): Readonly<Record<string, FormValue>> {
  return Object.fromEntries(
    fields.flatMap(({ name, several }) => {
      const own = content[ownWords(name)];
      const words = typeof own === 'string' ? own.trim() : '';
      const given = content[name];
      if (words === '') return given === undefined || given === '' ? [] : [[name, given]];
      return [[name, several && Array.isArray(given) ? [...given, words] : words]];
    }),
  );
}

/** Returns the first problem of the values as a sentence; '' if there is none. */
function problemOf({ fields }: Form, values: Readonly<Record<string, FormValue>>): string {
  return fields.map((field) => fieldProblem(field, values[field.name])).find((problem) => problem !== '') ?? '';
}

const typesOf: Readonly<Partial<Record<FormField['kind'], string>>> = {
  boolean: 'boolean',
  number: 'number',
  integer: 'number',
};

function fieldProblem({ label, question, required, check, kind }: FormField, value: FormValue | undefined): string {
  const name = `"${label ?? question}"`;
  if (value === undefined) return required ? `${name} needs an answer.` : '';
  const type = typesOf[kind] ?? typeof value;
  return typeof value === type ? (check?.(value) ?? '') : `${name} needs a ${type}.`;
}

function isOneChoice({ kind, several, options = [] }: FormField): boolean {
  return kind === 'choice' && several !== true && options.length > 0;
}

const noAnswer = 'no_answer';

/** Returns the value that was chosen, or why none was. The option that is preset holds things as they are, so it is the
 * one that rejects. */
async function putChoice(
  { client, sessionId, toolCallId, signal }: FormPlace,
  form: Form,
  { question, options = [], preset }: FormField,
): Promise<string | FormAnswer> {
  const lines = [
    form.message,
    question,
    ...options.flatMap(({ label, about }) => (about ? [`${label}: ${about}`] : [])),
  ];
  const text = lines.filter((line) => line !== '').join('\n\n');
  const request: RequestPermissionRequest = {
    sessionId,
    toolCall: {
      toolCallId,
      title: cleanText(question),
      content: [{ type: 'content', content: { type: 'text', text: cleanText(text) } }],
    },
    options: [
      ...options.map(({ label, value }, index) => ({
        optionId: `option_${index}`,
        name: cleanText(label),
        kind: value === preset ? ('reject_once' as const) : ('allow_once' as const),
      })),
      { optionId: noAnswer, name: 'No answer', kind: 'reject_once' },
    ],
  };
  const optionId = await requestPermission(client, request, signal);
  if (optionId === null) return { answer: 'cancelled' };
  const chosen = options.find((_, index) => optionId === `option_${index}`);
  return chosen?.value ?? { answer: 'declined' };
}

function cleanText(text: string): string {
  return sanitize(text);
}

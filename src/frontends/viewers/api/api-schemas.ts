import type { JsonSchema } from '../../../kernel/core/json.js';
import type { FromSchema } from '../../../kernel/tools/define-tool.js';

/** The objects of the HTTP API, as JSON Schema (draft 2020-12). The document of the API and the checks of what comes in
 * are made of them. */

const text = (description: string, more: JsonSchema = {}) => ({ ...more, type: 'string', description }) as const;
const textOrNull = (description: string) => ({ type: ['string', 'null'], description }) as const;
/** A time as `since` of `agent ps --json` has it. */
const timePattern = '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$';
const time = (description: string) => text(description, { pattern: timePattern });
/** An object with no other properties than these. */
const closed = <const P extends JsonSchema, const R extends readonly (keyof P & string)[]>(
  properties: P,
  required: R,
) => ({ type: 'object', properties, required, additionalProperties: false }) as const;

/** Of a message, and of all its attachments. */
const mostMessageChars = 250_000;
export const mostAttachments = 20;
const mostAttachmentBytes = 16 * 1024 * 1024;
const mostBase64Chars = Math.ceil(mostAttachmentBytes / 3) * 4;

const attachment = closed(
  {
    name: text('The name of the file.', { minLength: 1, maxLength: 200 }),
    base64: text('Its bytes.', { maxLength: mostBase64Chars, pattern: '^[A-Za-z0-9+/]*={0,2}$' }),
  },
  ['name', 'base64'],
);

const attachments = {
  type: 'array',
  items: attachment,
  maxItems: mostAttachments,
  description: 'Files for the message: the model sees images and PDFs, and reads others with its tools.',
} as const;

const sessionState = {
  enum: ['working', 'waiting_for_approval', 'waiting_for_limit', 'idle', null],
  description: 'As in `agent ps`. Null: no process runs the session.',
} as const;

const approvalFields = {
  id: text('The id of the tool call.'),
  tool: text('The name of the tool.'),
  risk: text('`read-only`, `mutating` or `dangerous`.'),
  head: text('What is asked, in one line.'),
  rows: { type: 'array', items: { type: 'string' }, description: 'All that the call would do.' },
  reasons: { type: 'array', items: { type: 'string' }, description: 'Why it is asked.' },
  targets: { type: 'array', items: { type: 'string' }, description: 'The paths that it affects.' },
  rules: textOrNull('The calls that `scope: "session"` allows; null: this exact call.'),
  shown: text('The digest of all the above. An answer repeats it.'),
} as const;

const optionFields = closed(
  {
    value: text('The value that an answer has.'),
    label: text('Shown to the user.'),
    about: textOrNull('More about it.'),
  },
  ['value', 'label', 'about'],
);

const answerValue = {
  description: 'A text, a number, a boolean, or a list of texts, as the field says.',
  type: ['string', 'number', 'boolean', 'array'],
  items: { type: 'string' },
} as const;

const fieldFields = closed(
  {
    name: text('The name of its value in the answer.'),
    question: { type: 'string' },
    label: textOrNull('One or two words for the question.'),
    kind: { enum: ['choice', 'text', 'number', 'integer', 'boolean'], description: 'The type of the answer.' },
    options: { type: 'array', items: optionFields, description: 'Of a choice.' },
    several: { type: 'boolean', description: 'Any number of options may be chosen: the answer is a list.' },
    free: { type: 'boolean', description: 'The answer may be other words than the options.' },
    required: { type: 'boolean' },
    preset: {
      type: ['string', 'number', 'boolean', 'array', 'null'],
      items: { type: 'string' },
      description: 'The value that is proposed.',
    },
  },
  ['name', 'question', 'label', 'kind', 'options', 'several', 'free', 'required', 'preset'],
);

export const apiSchemas = {
  Session: closed(
    {
      session_id: { type: 'string' },
      title: textOrNull('The title, or the first line of the first message.'),
      state: sessionState,
      pid: { type: ['integer', 'null'], description: 'The process that runs the session.' },
      model: textOrNull('`provider/model`.'),
      cost_usd: { type: ['number', 'null'], description: 'Null: no price is known.' },
      since: {
        type: ['string', 'null'],
        pattern: timePattern,
        description: 'ISO 8601, UTC: since when it is in this state.',
      },
      cwd: { type: 'string' },
      clients: { type: 'integer', description: 'The screens and programs that follow the session.' },
      created_at: time('ISO 8601, UTC.'),
      updated_at: time('ISO 8601, UTC.'),
      last_seq: { type: 'integer', description: 'The number of its last event; 0: it has none yet.' },
    },
    [
      'session_id',
      'title',
      'state',
      'pid',
      'model',
      'cost_usd',
      'since',
      'cwd',
      'clients',
      'created_at',
      'updated_at',
      'last_seq',
    ],
  ),
  Event: closed(
    {
      seq: { type: 'integer', minimum: 1, description: 'The number of the event in its session, and the cursor.' },
      kind: { type: 'string' },
      content: { type: ['string', 'null'] },
      data: { description: 'Depends on the kind; see docs/record.md.' },
      created_at: { type: 'integer', description: 'Unix milliseconds, as in an exported session.' },
    },
    ['seq', 'kind', 'content', 'data', 'created_at'],
  ),
  Approval: closed(approvalFields, ['id', 'tool', 'risk', 'head', 'rows', 'reasons', 'targets', 'rules', 'shown']),
  Questions: closed(
    {
      id: text('The id of these questions.'),
      from: text('Who asks: `the model`, `the server github`.'),
      title: textOrNull('Shown above, if there is one.'),
      message: text('What they are about. Empty if the questions say it.'),
      fields: { type: 'array', items: fieldFields, description: 'The questions.' },
      shown: text('The digest of all the above. An answer repeats it.'),
    },
    ['id', 'from', 'title', 'message', 'fields', 'shown'],
  ),
  Reply: closed(
    {
      decision: { enum: ['answer', 'decline'] },
      values: {
        type: 'object',
        additionalProperties: answerValue,
        description: 'With `answer`: the answer to each field by its name. A field that is not required may be absent.',
      },
      shown: text('The `shown` of the questions that you answer. Without it: as this server listed them last.'),
    },
    ['decision'],
  ),
  NewSession: closed(
    {
      prompt: text('The first message.', { minLength: 1, maxLength: mostMessageChars }),
      cwd: text('The directory of the session, absolute. Without it: that of `agent serve`.', { minLength: 1 }),
      model: text('As with `agent -m`.', { minLength: 1, maxLength: 200 }),
      title: text('The title of the session.', { minLength: 1, maxLength: 200 }),
      attachments,
    },
    ['prompt'],
  ),
  Started: closed({ session_id: { type: 'string' } }, ['session_id']),
  NewMessage: closed(
    {
      text: text('The message. It is never a slash command or a `!command`.', {
        minLength: 1,
        maxLength: mostMessageChars,
      }),
      when: {
        enum: ['steer', 'after'],
        description: 'While a turn runs: with the next request of the turn (default), or after the turn.',
      },
      interrupt: { type: 'boolean', description: 'Interrupts the running turn, so that the message is next.' },
      run: { type: 'boolean', description: 'Starts the session in the background if no process runs it.' },
      ref: text('Chosen by you. A second message with the same `ref` is the same message.', {
        minLength: 1,
        maxLength: 100,
      }),
      attachments,
    },
    ['text'],
  ),
  Sent: closed(
    {
      status: {
        enum: ['delivered', 'kept'],
        description: '`kept`: the session gets it when it is opened the next time.',
      },
      ref: { type: 'string' },
    },
    ['status', 'ref'],
  ),
  Decision: closed(
    {
      decision: { enum: ['allow', 'deny'] },
      message: text('For the model: why it is denied, or a message beside the permission.', { maxLength: 10_000 }),
      shown: text('The `shown` of the approval that you answer. Without it: as this server listed the approval last.'),
      scope: {
        enum: ['once', 'session'],
        description: 'With `allow`. `session`: do not ask again for `rules` in this session.',
      },
    },
    ['decision'],
  ),
  Done: closed({ status: { type: 'string' } }, ['status']),
  Error: closed(
    {
      error: closed(
        {
          code: text('For programs.'),
          message: text('What is wrong.'),
          hint: text('What to do; empty if there is nothing to say.'),
        },
        ['code', 'message', 'hint'],
      ),
    },
    ['error'],
  ),
} satisfies Readonly<Record<string, JsonSchema>>;

export type ApiSchemaName = keyof typeof apiSchemas;
/** A value that fits a schema of the API. */
export type ApiValue<Name extends ApiSchemaName> = FromSchema<(typeof apiSchemas)[Name]>;

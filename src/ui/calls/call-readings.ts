import { editOptions, requestedEdits } from '../../kernel/core/edit-arguments.js';
import { isError, type Envelope } from '../../kernel/core/envelope.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import { todoLines, todoName, todoOfArguments } from '../../kernel/core/projection.js';
import { revealHidden } from '../../kernel/core/sanitize.js';
import { nameValues } from './named-values.js';

/** A call as it is in the event log. */
export interface CallText {
  readonly name: string;
  /** The JSON text as received, which may not parse. */
  readonly arguments: string;
}

/** A part of a call that needs lines of its own. */
export type CallBlock =
  /** Lines as they are: code, content of files, values. `name`: the parameter, where the tool does not make it clear. */
  | { readonly kind: 'lines'; readonly name?: string; readonly text: string }
  /** Sentences, which are broken at words. */
  | { readonly kind: 'prose'; readonly text: string }
  | { readonly kind: 'markdown'; readonly text: string }
  /** The change that a call asks for. The diff of its result replaces it. */
  | { readonly kind: 'change'; readonly before: string | null; readonly after: string };

/** A call in its own language: a verb, what it is about, further parameters as `name=value`, and what needs lines of
 * its own. Every parameter is in one of them, verbatim, without escapes. */
export interface CallReading {
  readonly verb: string;
  /** One line; empty if the call is about its blocks. */
  readonly subject: string;
  readonly more: readonly string[];
  readonly blocks: readonly CallBlock[];
}

/** The facts of a result from which its outcome is said in a few words. */
export interface ResultFacts {
  readonly summary: string;
  readonly envelope: Envelope;
  /** Added and removed lines; null without a diff. */
  readonly counts: { readonly added: number; readonly removed: number } | null;
  readonly args: CallArguments;
}

type CallArguments = Readonly<Record<string, unknown>>;

/** Reads the calls of one tool. */
interface ToolReading {
  readonly verb: string;
  /** Returns the subject and the blocks, and the names of the parameters that are in them; null where the arguments are
   * not those of the tool. */
  readonly read: (args: CallArguments) => Reading | null;
  /** Returns the outcome of a call that did not fail; its summary if missing. */
  readonly outcome?: (facts: ResultFacts) => string;
  /** Returns the part of the output that the call does not say itself. */
  readonly output?: (output: string, args: CallArguments) => string;
}

interface Reading {
  readonly uses: readonly string[];
  readonly subject?: string;
  /** Parameters in a few words, before those that it does not use. */
  readonly more?: readonly string[];
  readonly blocks?: readonly CallBlock[];
}

/** Reads the calls of each tool. A tool that is not here has its name as the verb, and all parameters as `name=value`. */
const readings: Readonly<Record<string, ToolReading>> = {
  bash: {
    verb: 'bash',
    read: (args) => textOrBlock(args, 'command'),
    outcome: ({ summary }) => summary.replace(/^exit 0(?:$| · |; )/, ''),
  },
  execute_code: { verb: 'run code', read: (args) => block(args, 'code') },
  file_read: { verb: 'read', read: (args) => line(args, 'path') },
  file_write: { verb: 'write', read: readWrite, outcome: changeOutcome },
  file_edit: { verb: 'edit', read: readEdit, outcome: changeOutcome },
  grep: { verb: 'grep', read: (args) => searched(args, '"'), outcome: withoutFound },
  glob: { verb: 'glob', read: (args) => searched(args, ''), outcome: withoutFound },
  fs_list: { verb: 'list', read: (args) => line(args, 'path') },
  ask_user: {
    verb: 'ask',
    read: readQuestions,
    outcome: ({ summary }) => (summary === 'answered' ? '' : summary),
    output: onlyAnswer,
  },
  propose_plan: {
    verb: 'plan',
    read: ({ plan }) =>
      typeof plan === 'string' ? { uses: ['plan'], blocks: [{ kind: 'markdown', text: plan }] } : null,
  },
  [todoName]: { verb: 'todo', read: readTodo, outcome: todoOutcome, output: () => '' },
  agent: { verb: 'agent', read: readAgent },
  jobs: { verb: 'jobs', read: readJobs },
  skill: { verb: 'skill', read: (args) => line(args, 'name') },
  web_fetch: { verb: 'fetch', read: (args) => line(args, 'url') },
  web_search: { verb: 'search', read: (args) => line(args, 'query') },
  api_call: { verb: 'api', read: readRequest },
  math_eval: { verb: 'math', read: (args) => line(args, 'expression') },
  tool_run: { verb: 'tool', read: readForeign },
};

/** Returns how a call reads. */
export function readCall({ name, arguments: text }: CallText): CallReading {
  const args = argumentsOf(text);
  const own = readingOf(name);
  const verb = own?.verb ?? revealHidden(name).replace(/\s+/g, ' ');
  if (args === null) {
    const raw = revealHidden(text);
    const isShort = !raw.includes('\n');
    return { verb, subject: isShort ? raw : '', more: [], blocks: isShort ? [] : [{ kind: 'lines', text: raw }] };
  }
  const { uses, subject = '', more = [], blocks = [] } = own?.read(args) ?? { uses: [] };
  const rest = nameValues(Object.fromEntries(Object.entries(args).filter(([key]) => !uses.includes(key))));
  return {
    verb,
    subject,
    more: [...more, ...rest.inline],
    blocks: [
      ...blocks,
      ...rest.blocks.map(({ name: key, text: value }) => ({ kind: 'lines' as const, name: key, text: value })),
    ],
  };
}

/** Returns the outcome of a call in a few words; an empty text if the sign and the output say it all. */
export function callOutcome({ name, arguments: text }: CallText, facts: Omit<ResultFacts, 'args'>): string {
  const { summary, envelope } = facts;
  const outcome = readingOf(name)?.outcome;
  if (isError(envelope) || !outcome) return summary;
  return outcome({ ...facts, args: argumentsOf(text) ?? {} });
}

/** Returns the part of an output that the rows of the call do not say already. */
export function newOutput({ name, arguments: text }: CallText, output: string): string {
  return readingOf(name)?.output?.(output, argumentsOf(text) ?? {}) ?? output;
}

function readingOf(name: string): ToolReading | undefined {
  return Object.hasOwn(readings, name) ? readings[name] : undefined;
}

/** Returns arguments as an object; null if the text is none. Some providers send an empty text for no arguments. */
function argumentsOf(text: string): CallArguments | null {
  if (text.trim() === '') return {};
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

function line(args: CallArguments, name: string): Reading | null {
  const value = args[name];
  return typeof value === 'string' && value !== '' && !/[\n\r]/.test(value)
    ? { uses: [name], subject: revealHidden(value) }
    : null;
}

function block(args: CallArguments, name: string): Reading | null {
  const value = args[name];
  return typeof value === 'string' ? { uses: [name], blocks: [{ kind: 'lines', text: revealHidden(value) }] } : null;
}

function textOrBlock(args: CallArguments, name: string): Reading | null {
  return line(args, name) ?? block(args, name);
}

/** A pattern, `in` a folder or file. */
function searched(args: CallArguments, quote: string): Reading | null {
  const { pattern, path } = args;
  if (typeof pattern !== 'string' || /[\n\r]/.test(pattern)) return null;
  const subject = `${quote}${revealHidden(pattern)}${quote}`;
  const isNamed = typeof path === 'string' && path !== '' && !/[\n\r]/.test(path);
  return isNamed
    ? { uses: ['pattern', 'path'], subject: `${subject} in ${revealHidden(path)}` }
    : { uses: ['pattern'], subject };
}

function readWrite(args: CallArguments): Reading | null {
  const { path, content } = args;
  const file = line(args, 'path');
  if (file === null || typeof content !== 'string') return null;
  return {
    ...file,
    uses: ['path', 'content'],
    subject: revealHidden(String(path)),
    blocks: [{ kind: 'change', before: null, after: content }],
  };
}

function readEdit(args: CallArguments): Reading | null {
  const edits = requestedEdits(args);
  const file = line(args, 'path');
  if (file === null || edits === null) return null;
  return {
    ...file,
    uses: ['path', 'old_string', 'new_string', 'edits'],
    more: editOptions(args),
    blocks: edits.map(({ old_string, new_string }) => ({ kind: 'change', before: old_string, after: new_string })),
  };
}

function changeOutcome({ summary, envelope, counts }: ResultFacts): string {
  if (counts === null) return summary;
  const { added, removed } = counts;
  const lines = [...(added > 0 || removed === 0 ? [`+${added}`] : []), ...(removed > 0 ? [`−${removed}`] : [])].join(
    ' ',
  );
  return typeof envelope.count === 'number' && envelope.count > 1 ? `${envelope.count} places · ${lines}` : lines;
}

function withoutFound({ summary }: ResultFacts): string {
  return summary.replace(/ found$/, '');
}

function readTodo(args: CallArguments): Reading | null {
  const items = todoOfArguments(args);
  if (items === null || items.length !== (args.items as readonly unknown[]).length) return null;
  return {
    uses: ['items'],
    blocks: items.length === 0 ? [] : [{ kind: 'prose', text: revealHidden(todoLines(items).join('\n')) }],
  };
}

function todoOutcome({ summary, args }: ResultFacts): string {
  const items = todoOfArguments(args) ?? [];
  const done = items.filter(({ status }) => status === 'done').length;
  return items.length === 0 ? summary : `${done} of ${items.length} done`;
}

function readAgent(args: CallArguments): Reading | null {
  const { agent, description, prompt } = args;
  if (typeof agent !== 'string' || typeof description !== 'string' || typeof prompt !== 'string') return null;
  return {
    uses: ['agent', 'description', 'prompt'],
    subject: revealHidden(`${agent}: ${description}`).replace(/\s+/g, ' '),
    blocks: [{ kind: 'prose', text: revealHidden(prompt) }],
  };
}

function readJobs(args: CallArguments): Reading | null {
  const { action, id, job, write, screen } = args;
  const number = typeof id === 'number' ? id : job;
  if (typeof number !== 'number') return typeof action === 'string' ? { uses: ['action'], subject: action } : null;
  if (typeof write === 'string')
    return { uses: ['id', 'job', 'write'], subject: `write ${number} ${revealHidden(JSON.stringify(write))}` };
  const what = typeof action === 'string' ? action : screen === true ? 'screen' : 'output';
  return { uses: ['action', 'id', 'job', 'screen'], subject: `${what} ${number}` };
}

function readRequest(args: CallArguments): Reading | null {
  const target = line(args, 'url');
  const { method } = args;
  if (target === null || typeof method !== 'string') return target;
  return { uses: ['url', 'method'], subject: `${revealHidden(method)} ${target.subject}` };
}

/** A call of a server's tool: its name, and its arguments as if they were its own. */
function readForeign({ tool, arguments: given }: CallArguments): Reading | null {
  if (typeof tool !== 'string' || !isRecord(given)) return null;
  const { inline, blocks } = nameValues(given);
  return {
    uses: ['tool', 'arguments'],
    subject: [revealHidden(tool).replace(/\s+/g, ' '), ...inline].join(' '),
    blocks: blocks.map(({ name, text }) => ({ kind: 'lines', name, text })),
  };
}

/** One question is the subject; of several, each begins a paragraph. Below each are its choices. */
function readQuestions({ questions }: CallArguments): Reading | null {
  if (!Array.isArray(questions) || questions.length === 0) return null;
  const parts = questions.map(questionText);
  if (parts.some((part) => part === null)) return null;
  const [first = { title: '', choices: [] }] = parts.flatMap((part) => part ?? []);
  const isOne = parts.length === 1 && !first.title.includes('\n');
  const texts = isOne
    ? [first.choices.join('\n')]
    : parts.map((part) => [part?.title ?? '', ...(part?.choices ?? [])].join('\n'));
  return {
    uses: ['questions'],
    ...(isOne ? { subject: first.title } : {}),
    blocks: texts.filter((text) => text !== '').map((text) => ({ kind: 'prose', text })),
  };
}

/** The output repeats the question, which is in the row of the call if it is the only one. */
function onlyAnswer(output: string, { questions }: CallArguments): string {
  const only: unknown = Array.isArray(questions) && questions.length === 1 ? questions[0] : null;
  const lead = isRecord(only) && typeof only.question === 'string' ? `${only.question}\n` : null;
  return lead !== null && output.startsWith(lead) ? output.slice(lead.length) : output;
}

function questionText(value: unknown): { readonly title: string; readonly choices: readonly string[] } | null {
  if (!isRecord(value) || typeof value.question !== 'string' || !Array.isArray(value.options)) return null;
  const { question, header, options, multi, ...others } = value;
  if (Object.keys(others).length > 0 || !options.every(isRecord)) return null;
  const head = typeof header === 'string' && header !== '' ? `${header}: ` : '';
  const several = multi === true ? ' (several answers)' : '';
  return {
    title: revealHidden(`${head}${question}${several}`),
    choices: options.map(({ label, description }) =>
      revealHidden(`- ${String(label)}${typeof description === 'string' ? `: ${description}` : ''}`),
    ),
  };
}

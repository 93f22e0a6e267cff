import { isRecord } from '../json.js';
import { nearestName } from '../text.js';

/** The conditions for an event besides the words of a search. Each list: one of its values must match; an empty list
 * accepts any value. */
export interface SearchFilters {
  /** Names of tools; one with `*` at its end is a beginning. */
  readonly tools: readonly string[];
  /** Parts of paths that a call names. */
  readonly files: readonly string[];
  /** Kinds of events. */
  readonly kinds: readonly string[];
  /** Programs whose conversations were brought in (`claude-code`), or `agent`
   * for our own. */
  readonly from: readonly string[];
  /** The beginning of an id, or a part of a title. */
  readonly session: string | null;
  /** Unix milliseconds; `before` is not part of the time. */
  readonly after: number | null;
  readonly before: number | null;
  /** Sessions of this directory only. */
  readonly cwd: string | null;
}

export const noFilters: SearchFilters = {
  tools: [],
  files: [],
  kinds: [],
  from: [],
  session: null,
  after: null,
  before: null,
  cwd: null,
};

export type SearchLine =
  | { readonly ok: true; readonly words: string; readonly filters: SearchFilters }
  /** `problem`: what is wrong and what there is. */
  | { readonly ok: false; readonly problem: string };

const kindNames: Readonly<Record<string, string>> = {
  user: 'user',
  answer: 'assistant',
  call: 'tool_call',
  result: 'tool_result',
  shell: 'shell',
  side: 'side_question',
  limit: 'limit',
};

/** The context that the values of a filter are checked against. */
interface Known {
  /** The directory that `project:here` means. */
  readonly cwd: string;
  /** Programs whose conversations can be imported; null: any name. */
  readonly programs: readonly string[] | null;
}

interface Filter {
  /** The filter with a value, for a reader. */
  readonly example: string;
  /** The only values that there are; absent or null: any. */
  readonly values?: (known: Known) => readonly string[] | null;
  /** Adds the filter, or says what is wrong with the value. */
  readonly add: (filters: SearchFilters, value: string, known: Known) => SearchFilters | string;
}

/** Every filter by its name. */
const filterTable: Readonly<Record<string, Filter>> = {
  tool: {
    example: 'tool:name',
    add: (filters, value) => ({ ...filters, tools: [...filters.tools, value] }),
  },
  file: {
    example: 'file:src/main.ts',
    add: (filters, value) => ({ ...filters, files: [...filters.files, value.replace(/^\.\//, '')] }),
  },
  after: { example: 'after:2026-01-01', add: (filters, value) => withTime(filters, 'after', value) },
  before: { example: 'before:2026-02-01', add: (filters, value) => withTime(filters, 'before', value) },
  from: {
    example: 'from:codex',
    values: ({ programs }) => programs && ['agent', ...programs],
    add: (filters, value) => ({ ...filters, from: [...filters.from, value] }),
  },
  session: { example: 'session:0198', add: (filters, value) => ({ ...filters, session: value }) },
  kind: {
    example: `kind:${Object.keys(kindNames).join('|')}`,
    values: () => Object.keys(kindNames),
    add: (filters, value) => ({ ...filters, kinds: [...filters.kinds, kindNames[value] ?? value] }),
  },
  project: {
    example: 'project:here|all',
    values: () => ['here', 'all'],
    add: (filters, value, { cwd }) => ({ ...filters, cwd: value === 'here' ? cwd : null }),
  },
};

export const filterList = Object.values(filterTable)
  .map(({ example }) => example)
  .join(', ');

/** Takes the filters out of a search: `migration error tool:name file:"my dir/a.ts"`. What is left are its words.
 * `cwd`: the directory that `project:here` means. `programs`: the values of `from:` besides `agent`; null: any. Days are
 * those of this machine's clock. */
export function parseSearchLine(text: string, cwd: string, programs: readonly string[] | null = null): SearchLine {
  const words: string[] = [];
  let filters = noFilters;
  for (const [piece, name, quoted, plain = ''] of text.matchAll(/(?:([a-z]+):(?="|[^\s:/"]))?(?:"([^"]*)"?|(\S+))/g)) {
    const named = name ?? filterWithoutValue(piece);
    if (named === null) {
      words.push(piece);
      continue;
    }
    const next = withFilter(filters, named, name === undefined ? '' : (quoted ?? plain), { cwd, programs });
    if (typeof next === 'string') return { ok: false, problem: next };
    filters = next;
  }
  return { ok: true, words: words.join(' '), filters };
}

/** Returns the name of a filter with nothing behind its colon; null for any other word. */
function filterWithoutValue(word: string): string | null {
  const name = word.endsWith(':') ? word.slice(0, -1) : '';
  return Object.hasOwn(filterTable, name) ? name : null;
}

function withFilter(filters: SearchFilters, name: string, value: string, known: Known): SearchFilters | string {
  const filter = Object.hasOwn(filterTable, name) ? filterTable[name] : undefined;
  if (filter === undefined) return unknown(name);
  const values = filter.values?.(known) ?? null;
  if (value.trim() === '')
    return `${name}: has no value. ${values === null ? `For example ${filter.example}.` : `There are ${joinValues(values)}.`}`;
  if (values !== null && !values.includes(value)) {
    const nearest = nearestName(value, values);
    return `${name}:${value}: there are ${joinValues(values)}.${nearest === null ? '' : ` Did you mean ${nearest}?`}`;
  }
  return filter.add(filters, value, known);
}

function joinValues(values: readonly string[]): string {
  return values.join(values.length === 2 ? ' and ' : ', ');
}

function withTime(filters: SearchFilters, name: 'after' | 'before', value: string): SearchFilters | string {
  const at = timeOf(value);
  return at === null
    ? `${name}:${value} is not a day: write for example ${name}:2026-01-31, or ${name}:2026-01-31T14:30.`
    : { ...filters, [name]: at };
}

function unknown(name: string): string {
  const nearest = nearestName(name, Object.keys(filterTable));
  const meant = nearest === null ? '' : ` Did you mean ${nearest}:?`;
  return `There is no filter ${name}:.${meant} There are ${filterList}. Put words with a colon in quotes.`;
}

function timeOf(text: string): number | null {
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?$/.test(text)) return null;
  // `Date.parse` takes a day that a month does not have for one of the next month.
  const [year = 0, month = 0, day = 0] = text.slice(0, 10).split('-').map(Number);
  const daysInMonth = (Date.UTC(year, month, 1) - Date.UTC(year, month - 1, 1)) / 86_400_000;
  if (day > daysInMonth) return null;
  const unixMs = Date.parse(text.includes('T') ? text : `${text}T00:00`);
  return Number.isNaN(unixMs) ? null : unixMs;
}

/** The facts of an event that filters check. */
export interface Filtered {
  readonly sessionId: string;
  readonly title: string | null;
  readonly cwd: string;
  readonly kind: string;
  readonly createdAt: number;
  /** Of a call or a result. */
  readonly tool: string | null;
  /** The arguments of a call, or the changes of a result, as JSON. */
  readonly about: string | null;
  readonly from: string;
}

/** Returns true if the event passes the filters. */
export function letsThrough(filters: SearchFilters, event: Filtered): boolean {
  const { tools, kinds, from, after, before, cwd } = filters;
  const one = (wanted: readonly string[], fits: (value: string) => boolean): boolean =>
    wanted.length === 0 || wanted.some(fits);
  return (
    (cwd === null || event.cwd === cwd) &&
    (after === null || event.createdAt >= after) &&
    (before === null || event.createdAt < before) &&
    isOfSession(filters, event) &&
    one(kinds, (kind) => event.kind === kind) &&
    one(from, (name) => event.from === name) &&
    one(
      tools,
      (tool) => (tool.endsWith('*') ? event.tool?.startsWith(tool.slice(0, -1)) : event.tool === tool) === true,
    ) &&
    isAboutOne(filters, event.about)
  );
}

/** Returns true if a call or a result is about one of the requested files. */
export function isAboutOne({ files }: SearchFilters, about: string | null): boolean {
  // JSON escapes the quotes and backslashes of a path.
  return files.length === 0 || files.some((file) => about?.includes(JSON.stringify(file).slice(1, -1)) === true);
}

/** Returns the part of an event that names files, as JSON: the arguments of a call, the changes of a result; null for
 * other events. */
export function aboutOf(kind: string, data: Readonly<Record<string, unknown>>): string | null {
  if (kind === 'tool_result') return JSON.stringify(data['changes'] ?? null);
  const call = kind === 'tool_call' ? data['function'] : null;
  return isRecord(call) && typeof call['arguments'] === 'string' ? call['arguments'] : null;
}

function isOfSession({ session }: SearchFilters, { sessionId, title }: Filtered): boolean {
  if (session === null) return true;
  const wanted = session.toLowerCase();
  return sessionId.toLowerCase().startsWith(wanted) || title?.toLowerCase().includes(wanted) === true;
}

/** Returns true if at least one filter is set. */
export function isFiltered(filters: SearchFilters): boolean {
  return JSON.stringify(filters) !== JSON.stringify(noFilters);
}

/** The kinds of events that have text for a person to search and to read. */
export const searchedKinds: ReadonlySet<string> = new Set([
  'user',
  'assistant',
  'tool_call',
  'tool_result',
  'shell',
  'side_question',
  'limit',
]);

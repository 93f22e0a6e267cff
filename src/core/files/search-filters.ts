import { isRecord } from '../json.js';
import { nearestName } from '../text.js';

/** What an event must be, besides holding the words of a search. Every list: one
 * of these; an empty list: any. */
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
};

/** The filters and what may stand behind them, for a reader. */
const filterTexts: Readonly<Record<string, string>> = {
  tool: 'tool:name',
  file: 'file:src/main.ts',
  after: 'after:2026-01-01',
  before: 'before:2026-02-01',
  from: 'from:codex',
  session: 'session:0198',
  kind: `kind:${Object.keys(kindNames).join('|')}`,
  project: 'project:here|all',
};

export const filterList = Object.values(filterTexts).join(', ');

/** Takes the filters out of a search: `migration error tool:name file:"my dir/a.ts"`. What is left are its words.
 * `cwd`: the directory that `project:here` means. Days are those of this machine's clock. */
export function parseSearchLine(text: string, cwd: string): SearchLine {
  const words: string[] = [];
  let filters = noFilters;
  for (const [piece, name, quoted, plain = ''] of text.matchAll(
    /(?:([a-z]+):(?="[^"]|[^\s:/"]))?(?:"([^"]*)"?|(\S+))/g,
  )) {
    if (name === undefined) {
      words.push(piece);
      continue;
    }
    const next = withFilter(filters, name, quoted ?? plain, cwd);
    if (typeof next === 'string') return { ok: false, problem: next };
    filters = next;
  }
  return { ok: true, words: words.join(' '), filters };
}

function withFilter(filters: SearchFilters, name: string, value: string, cwd: string): SearchFilters | string {
  switch (name) {
    case 'tool':
      return {
        ...filters,
        tools: [...filters.tools, value],
      };
    case 'file':
      return {
        ...filters,
        files: [...filters.files, value.replace(/^\.\//, '')],
      };
    case 'from':
      return {
        ...filters,
        from: [...filters.from, value],
      };
    case 'session':
      return {
        ...filters,
        session: value,
      };
    case 'kind': {
      const kind = Object.hasOwn(kindNames, value) ? kindNames[value] : undefined;
      return kind === undefined
        ? `kind:${value}: there are ${Object.keys(kindNames).join(', ')}.`
        : {
            ...filters,
            kinds: [...filters.kinds, kind],
          };
    }
    case 'project':
      if (value === 'here')
        return {
          ...filters,
          cwd,
        };
      return value === 'all'
        ? {
            ...filters,
            cwd: null,
          }
        : `project:${value}: there are here and all.`;
    case 'after':
    case 'before': {
      const at = timeOf(value);
      return at === null
        ? `${name}:${value} is no day: write for example ${name}:2026-01-31, or ${name}:2026-01-31T14:30.`
        : {
            ...filters,
            [name]: at,
          };
    }
    default:
      return unknown(name);
  }
}

function unknown(name: string): string {
  const nearest = nearestName(name, Object.keys(filterTexts));
  const meant = nearest === null ? '' : ` Did you mean ${nearest}:?`;
  return `There is no filter ${name}:.${meant} There are ${filterList}. Words with a colon stand in quotes.`;
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

/** What filters look at in an event. */
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

/** Whether the filters let an event through. */
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

/** Whether a call or a result is about one of the files that are asked for. */
export function isAboutOne({ files }: SearchFilters, about: string | null): boolean {
  // In JSON a path stands with its quotes and backslashes escaped.
  return files.length === 0 || files.some((file) => about?.includes(JSON.stringify(file).slice(1, -1)) === true);
}

/** What an event is about: the arguments of a call, the changes of a result, as
 * JSON. */
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

/** Whether the filters ask for anything. */
export function isFiltered(filters: SearchFilters): boolean {
  return JSON.stringify(filters) !== JSON.stringify(noFilters);
}

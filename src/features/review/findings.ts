import { isAbsolute, normalize, relative } from 'node:path';
import { type Event, knownEvent } from '../../kernel/core/event.js';
import { isRecord, parseJson, type Json, type JsonSchema } from '../../kernel/core/json.js';
import type { ReviewedDiff } from './read-diff.js';

/** Severities of findings, the worst first. The words are those of SARIF. */
export const severities = ['error', 'warning', 'note'] as const;
type Severity = (typeof severities)[number];

/** The kinds of findings, with what a reader of a list of rules sees. */
export const categories = {
  correctness: 'Wrong behaviour',
  'data-loss': 'Data can be lost',
  security: 'Security',
  race: 'Race between parts that run at once',
  'error-handling': 'An error is not handled',
  tests: 'Changed behaviour without a test',
  complexity: 'Needless complexity',
} as const;
export type Category = keyof typeof categories;

/** The final answer that the model is asked for. */
export const answerSchema: JsonSchema = {
  type: 'object',
  properties: {
    summary: { type: 'string', description: 'one sentence: would you merge it' },
    findings: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          file: { type: 'string', description: 'path from the top folder of the repository' },
          line: { type: 'integer', minimum: 1, description: 'line in the new version of the file' },
          end_line: { type: 'integer', minimum: 1 },
          severity: { enum: [...severities] },
          category: { enum: Object.keys(categories) },
          title: { type: 'string', description: 'what is wrong, in one line' },
          detail: { type: 'string', description: 'for which input or in which situation, and how you know' },
          fix: { type: 'string' },
          files_read: { type: 'array', items: { type: 'string' }, description: 'other files that show it' },
        },
        required: ['file', 'line', 'severity', 'title', 'detail'],
        additionalProperties: false,
      },
    },
  },
  required: ['summary', 'findings'],
  additionalProperties: false,
};

/** A finding as the model gives it: it fits the schema. */
interface GivenFinding {
  readonly file: string;
  readonly line: number;
  readonly end_line?: number;
  readonly severity: Severity;
  readonly category?: Category;
  readonly title: string;
  readonly detail: string;
  readonly fix?: string;
  readonly files_read?: readonly string[];
}

/** An event of the session that shows a finding: the message with the change, or a call and its result. */
interface Evidence {
  readonly seq: number;
  readonly kind: 'user' | 'tool_call' | 'tool_result';
  readonly tool?: string;
}

export interface ReviewFinding extends Omit<GivenFinding, 'files_read' | 'category'> {
  readonly category: Category;
  /** The change adds the line, or removes one beside it. */
  readonly in_diff: boolean;
  readonly events: readonly Evidence[];
}

interface DroppedFinding {
  readonly file: string;
  readonly line: number;
  readonly title: string;
  readonly reason: string;
}

export interface JudgedAnswer {
  readonly summary: string;
  /** The worst first. */
  readonly findings: readonly ReviewFinding[];
  readonly dropped: readonly DroppedFinding[];
}

/** True for a finding of an answer that fits the schema. */
function isGivenFinding(value: unknown): value is GivenFinding {
  return isRecord(value) && typeof value['file'] === 'string' && typeof value['line'] === 'number';
}

/** Checks each finding of an answer against the repository, and adds the events that show it. A file that does not
 * exist is one that the model made up. */
export async function judgeAnswer(answer: Json, diff: ReviewedDiff, events: readonly Event[]): Promise<JudgedAnswer> {
  const fields = isRecord(answer) ? answer : {};
  const listed = fields['findings'];
  const given = Array.isArray(listed) ? listed.filter(isGivenFinding) : [];
  const evidence = createEvidence(diff, events);
  const findings: ReviewFinding[] = [];
  const dropped: DroppedFinding[] = [];
  for (const found of given) {
    const { files_read: others = [], ...finding } = found;
    const file = repositoryPath(found.file, diff.root);
    const changed = diff.files.get(file);
    if (changed === undefined && !(await diff.has(file))) {
      dropped.push({ file, line: found.line, title: found.title, reason: 'the file does not exist' });
      continue;
    }
    const { line, end_line: end = line } = found;
    findings.push({
      ...finding,
      file,
      category: found.category ?? 'correctness',
      in_diff:
        changed !== undefined && (changed.status === 'deleted' || touches(changed.lines, line, Math.max(line, end))),
      events: evidence(
        { file, line },
        others.map((path) => repositoryPath(path, diff.root)),
      ),
    });
  }
  const rank = ({ severity }: ReviewFinding): number => severities.indexOf(severity);
  return {
    summary: typeof fields['summary'] === 'string' ? fields['summary'] : '',
    findings: findings.toSorted((one, other) => rank(one) - rank(other)),
    dropped,
  };
}

function touches(lines: ReadonlySet<number>, first: number, last: number): boolean {
  for (const line of lines) if (line >= first && line <= last) return true;
  return false;
}

/** Returns a path as git names it: from the top folder, with slashes. */
function repositoryPath(path: string, root: string): string {
  return normalize(isAbsolute(path) ? relative(root, path) : path)
    .replaceAll('\\', '/')
    .replace(/^\.\//, '');
}

interface Place {
  readonly file: string;
  readonly line: number;
}

/** A read or a search of the review. */
interface Look {
  readonly call: number;
  readonly result: number;
  readonly tool: string;
  readonly shows: (place: Place) => boolean;
}

/** Returns what finds the events that show a finding. The program looks for them itself: a model may name what it never
 * read. */
function createEvidence(
  diff: ReviewedDiff,
  events: readonly Event[],
): (place: Place, others: readonly string[]) => readonly Evidence[] {
  const known = events.map(knownEvent).filter((event) => event !== null);
  const message = known.find((event) => event.kind === 'user' && event.content.includes(diff.base));
  const calls = known.filter((event) => event.kind === 'tool_call');
  const looks = known.flatMap((event): readonly Look[] => {
    if (event.kind !== 'tool_result' || !event.data.success) return [];
    const call = calls.find(({ data }) => data.id === event.data.tool_call_id);
    if (!call) return [];
    const tool = event.data.name;
    const shows = coverage(tool, call.data.function.arguments, event.data.output, diff.root);
    return [{ call: call.seq, result: event.seq, tool, shows }];
  });
  const isSent = (file: string): boolean => diff.files.has(file) && !diff.leftOut.includes(file);
  return (place, others) => [
    ...(message && [place.file, ...others].some(isSent) ? [{ seq: message.seq, kind: 'user' as const }] : []),
    ...looks
      .filter(({ shows }) => shows(place) || others.some((file) => shows({ file, line: 0 })))
      .flatMap(({ call, result, tool }) => [
        { seq: call, kind: 'tool_call' as const, tool },
        { seq: result, kind: 'tool_result' as const, tool },
      ]),
  ];
}

/** Returns a test of whether a call has shown a line of a file; line 0 means any line. */
function coverage(tool: string, argumentsText: string, envelope: string, root: string): Look['shows'] {
  const { path, offset = 1 } = fieldsOf(argumentsText);
  const { output = '' } = fieldsOf(envelope);
  const named = typeof path === 'string' ? repositoryPath(path, root) : null;
  if (tool === 'file_read') {
    const first = Number(offset);
    // A long file comes in parts: the lines that came back count, not those that were asked for.
    const end = first + String(output).replace(/\n$/, '').split('\n').length;
    return ({ file, line }) => file === named && (line === 0 || (line >= first && line < end));
  }
  if (tool === 'grep') return ({ file }) => file === named || String(output).includes(file);
  return () => false;
}

function fieldsOf(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = parseJson(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

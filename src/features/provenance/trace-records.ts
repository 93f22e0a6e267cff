import { createHash } from 'node:crypto';
import { csvLine } from '../../kernel/console/line-output.js';
import { version } from '../../kernel/console/version.js';
import type { AddedLine, AddedLines, Contributor } from './commit-lines.js';
import type { CallRecord } from './session-record.js';

/** The lines that one commit or one call adds. */
export interface Contribution {
  /** Names it for ever: a commit, or a session and an event. */
  readonly name: string;
  /** The commit; null for a call. */
  readonly revision: string | null;
  /** Unix ms. */
  readonly at: number;
  readonly files: readonly AddedLines[];
}

/** Consecutive lines of one contributor. */
interface LineRange {
  readonly contributor: Contributor;
  readonly call: CallRecord | null;
  readonly lines: readonly AddedLine[];
}

/** Returns an Agent Trace record (0.1). Lines that nothing explains are left out. Source: cursor/agent-trace of 6 February
 * 2026, whose schema has three numbers in `version`. */
export function traceRecord({ name, revision, at, files }: Contribution, withPrompts: boolean) {
  const ranges = files
    .map(({ path, lines }) => ({ path, ranges: rangesOf(lines) }))
    .filter(({ ranges: all }) => all.length > 0);
  const calls = new Set(ranges.flatMap(({ ranges: all }) => all.flatMap(({ call }) => call ?? [])));
  return {
    version: '0.1.0',
    id: uuidOf(name),
    timestamp: new Date(at).toISOString(),
    ...(revision === null ? {} : { vcs: { type: 'git', revision } }),
    tool: { name: 'agent', version },
    files: ranges.map(({ path, ranges: all }) => ({ path, conversations: conversationsOf(all) })),
    ...(withPrompts && calls.size > 0 ? { metadata: { 'dev.agent-shell': { prompts: promptsOf(calls) } } } : {}),
  };
}

function rangesOf(lines: readonly AddedLine[]): readonly LineRange[] {
  const ranges: { contributor: Contributor; call: CallRecord | null; lines: AddedLine[] }[] = [];
  for (const line of lines) {
    const { contributor, call } = line;
    if (contributor === 'unknown') continue;
    const last = ranges.at(-1);
    const follows = last?.lines.at(-1)?.line === line.line - 1;
    if (last && follows && last.contributor === contributor && last.call === call) last.lines.push(line);
    else ranges.push({ contributor, call, lines: [line] });
  }
  return ranges;
}

/** Groups the ranges by contributor, session, turn and model. */
function conversationsOf(ranges: readonly LineRange[]) {
  const groups = new Map<string, LineRange[]>();
  for (const range of ranges) {
    const { contributor, call } = range;
    const key = JSON.stringify([contributor, call?.session.row.id, call?.turn, call && modelId(call)]);
    groups.set(key, [...(groups.get(key) ?? []), range]);
  }
  return [...groups.values()].map((group) => {
    const [first] = group;
    const call = first?.call ?? null;
    const model = call && modelId(call);
    return {
      ...(call ? { url: sessionUrl(call) } : {}),
      contributor: { type: first?.contributor ?? 'unknown', ...(model === null ? {} : { model_id: model }) },
      ranges: group.map(({ lines }) => ({
        start_line: lines[0]?.line ?? 1,
        end_line: lines.at(-1)?.line ?? 1,
        content_hash: contentHash(lines),
      })),
      ...(call ? { related: relatedTo(call, group) } : {}),
    };
  });
}

function relatedTo(call: CallRecord, group: readonly LineRange[]) {
  const events = new Set(group.flatMap((range) => range.call?.seq ?? []));
  return [
    { type: 'session', url: sessionUrl(call) },
    { type: 'turn', url: `${sessionUrl(call)}/turn/${call.turn}` },
    ...[...events].map((seq) => ({ type: 'event', url: `${sessionUrl(call)}/event/${seq}` })),
  ];
}

function promptsOf(calls: ReadonlySet<CallRecord>) {
  const prompts = new Map<string, { session: string; turn: number; prompt: string }>();
  for (const { session, turn, prompt } of calls)
    if (prompt !== null) prompts.set(`${session.row.id} ${turn}`, { session: session.row.id, turn, prompt });
  return [...prompts.values()];
}

function sessionUrl({ session }: CallRecord): string {
  return `agent://session/${encodeURIComponent(session.row.id)}`;
}

/** Returns `provider/model` in at most 250 characters; null where the model is not known. */
function modelId(call: CallRecord): string | null {
  const model = call.session.modelOf(call);
  return model === null
    ? null
    : [model.provider, model.model]
        .filter((part) => part !== '')
        .join('/')
        .slice(0, 250);
}

/** The SHA-256 of the lines, with a line feed between them. */
function contentHash(lines: readonly AddedLine[]): string {
  const text = lines.map((line) => line.text).join('\n');
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Returns a UUID (version 5) that is always the same for a name. */
function uuidOf(name: string): string {
  const hash = createHash('sha1').update(`agent trace ${name}`).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const csvColumns = [
  'revision',
  'timestamp',
  'path',
  'start_line',
  'end_line',
  'contributor',
  'model_id',
  'session_id',
  'turn',
  'seq',
  'content_hash',
];

export const csvHead = csvLine(csvColumns);

/** Returns a line for each range. */
export function csvRows({ revision, at, files }: Contribution): string {
  return files
    .flatMap(({ path, lines }) => rangesOf(lines).map((range) => ({ path, ...range })))
    .map(({ path, contributor, call, lines }) =>
      csvLine([
        revision,
        new Date(at).toISOString(),
        path,
        lines[0]?.line ?? null,
        lines.at(-1)?.line ?? null,
        contributor,
        call && modelId(call),
        call?.session.row.id ?? null,
        call?.turn ?? null,
        call?.seq ?? null,
        contentHash(lines),
      ]),
    )
    .join('');
}

import { createHash } from 'node:crypto';
import stringWidth from 'string-width';
import { age, oneLine } from '../../kernel/console/line-output.js';
import { addAll } from '../../kernel/core/lists.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { spelledLine } from '../../kernel/core/text.js';
import type { BlamedFile } from './blame-file.js';
import type { BlamedLine } from './blamed-line.js';
import type { Repository } from './git-lines.js';
import type { CallRecord } from './session-record.js';

/** A line as `--json` prints it. */
export function lineJson({ line, text, kind, call, commit }: BlamedLine) {
  return { line, text, kind, ...callJson(call), at: call?.at ?? commit?.at ?? null, commit: commit?.id ?? null };
}

function callJson(call: CallRecord | null) {
  if (call === null) return { session_id: null, seq: null, turn: null, model: null, approved_by: null, prompt: null };
  const { session, seq, turn, approvedBy, prompt } = call;
  return {
    session_id: session.row.id,
    seq,
    turn,
    model: session.modelOf(call)?.model ?? null,
    approved_by: approvedBy,
    prompt: prompt === null ? null : promptLine(prompt),
  };
}

function promptLine(prompt: string): string {
  return prompt.trimStart().split('\n', 1)[0]?.trimEnd() ?? '';
}

/** Consecutive lines that the same call, commit or edit wrote. */
interface BlameBlock {
  readonly first: BlamedLine;
  readonly lines: readonly BlamedLine[];
}

function blocksOf(
  lines: readonly BlamedLine[],
  isTogether: (one: BlamedLine, other: BlamedLine) => boolean = isSameAuthor,
): readonly BlameBlock[] {
  const blocks: { first: BlamedLine; lines: BlamedLine[] }[] = [];
  for (const line of lines) {
    const block = blocks.at(-1);
    const last = block?.lines.at(-1);
    if (block && last && last.line + 1 === line.line && isTogether(last, line)) block.lines.push(line);
    else blocks.push({ first: line, lines: [line] });
  }
  return blocks;
}

function isSameAuthor(one: BlamedLine, other: BlamedLine): boolean {
  return one.kind === other.kind && one.call === other.call && one.commit?.id === other.commit?.id;
}

/** Git has a block for lines that stand together in the commit, too. */
function isSameInCommit(one: BlamedLine, other: BlamedLine): boolean {
  return isSameAuthor(one, other) && (one.commit === null || one.commit.line + 1 === other.commit?.line);
}

type Head = readonly [reference: string, author: string, age: string, prompt: string];

const mostPromptColumns = 40;
/** With less beside the text, prompts are left out. */
const leastTextColumns = 30;
const fewestPromptColumns = 8;

/** Returns the lines for people: who wrote each block, then its lines. `columns`: the width of the screen; null: long
 * lines stay whole. `prompts`: the whole prompt is shown under each block. */
export function blameText(
  lines: readonly BlamedLine[],
  { columns, now, prompts }: { readonly columns: number | null; readonly now: number; readonly prompts: boolean },
): string {
  const blocks = blocksOf(lines);
  const numberColumns = String(lines.at(-1)?.line ?? 0).length;
  const heads = headColumns(
    blocks.map(({ first }) => headOf(first, now)),
    columns === null ? null : columns - numberColumns - 2 - leastTextColumns,
  );
  const shown: string[] = [];
  for (const [index, { first, lines: own }] of blocks.entries()) {
    const head = heads[index] ?? '';
    const blank = ' '.repeat(stringWidth(head));
    for (const [at, { line, text }] of own.entries()) {
      const row = `${at === 0 ? head : blank}${String(line).padStart(numberColumns)}│ ${readable(text)}`;
      shown.push((columns === null ? row : cut(row, columns)).trimEnd());
    }
    if (prompts && first.call) addAll(shown, quotedPrompt(first.call));
  }
  return shown.map((row) => `${row}\n`).join('');
}

function quotedPrompt({ prompt }: CallRecord): readonly string[] {
  return (prompt ?? '').split('\n').map((line) => `    > ${readable(line)}`.trimEnd());
}

/** Aligns the parts of the heads. `most`: the columns that they may take; null: any number. */
function headColumns(heads: readonly Head[], most: number | null): readonly string[] {
  const widths = ([0, 1, 2, 3] as const).map((part) => widest(heads.map((head) => head[part])));
  const [reference = 0, author = 0, time = 0, prompt = 0] = widths;
  const left = most === null ? mostPromptColumns : most - reference - author - time - 8;
  const beside = Math.min(mostPromptColumns, left, prompt);
  const last = beside < fewestPromptColumns ? 0 : beside;
  return heads.map(([one, two, three, four]) => {
    const parts = [padded(one, reference), padded(two, author), padded(three, time)];
    return [...parts, ...(last > 0 ? [padded(cut(four, last), last)] : []), ''].join('  ');
  });
}

/** Returns the reference, the author, the age and the prompt of a block. */
function headOf({ kind, call, commit, over }: BlamedLine, now: number): Head {
  if (call) {
    const mark = call.isRedacted ? ' (redacted)' : '';
    return [
      callName(call),
      `${authorName(call)}${kind === 'command' ? ' (command)' : ''}${mark}`,
      age(now - call.at),
      oneLine(promptLine(call.prompt ?? ''), 200),
    ];
  }
  if (commit)
    return [commit.id.slice(0, 12), oneLine(commit.author, 30), age(now - commit.at), oneLine(commit.summary, 200)];
  return [kind === 'outside' ? 'outside' : 'unknown', over ? `over ${callName(over)}` : '', '', ''];
}

/** Names a call as the log does: the start of its session, and its event. */
export function callName({ session, seq }: CallRecord): string {
  return `${session.row.id.slice(0, 13)}:${seq}`;
}

function authorName(call: CallRecord): string {
  return oneLine(call.session.modelOf(call)?.model ?? 'unknown model', 30);
}

function readable(text: string): string {
  return sanitize(text.replaceAll('\t', '    ').replace(/\r$/, ''));
}

function widest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, stringWidth(text)), 0);
}

function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - stringWidth(text)));
}

function cut(text: string, columns: number): string {
  if (text.length <= columns && stringWidth(text) <= columns) return text;
  let shown = '';
  let width = 1;
  for (const { segment } of new Intl.Segmenter().segment(text.slice(0, columns * 4))) {
    width += stringWidth(segment);
    if (width > columns) return `${shown}…`;
    shown += segment;
  }
  return shown;
}

const noCommit = '0'.repeat(40);

/** Returns the lines in the format of `git blame --porcelain`. `fileName` is used outside of repositories, where git has
 * no name for the file. */
export async function porcelainText({ path, lines, repository }: BlamedFile, fileName: string): Promise<string> {
  const ids = await callIds(new Set(lines.flatMap(({ call }) => (call === null ? [] : [call]))), repository);
  const name = quotedName(repository?.inside(path) ?? fileName);
  const described = new Set<string>();
  return blocksOf(lines, isSameInCommit)
    .flatMap(({ first, lines: own }) => {
      const id = first.call ? (ids.get(first.call) ?? noCommit) : (first.commit?.id ?? noCommit);
      const isNew = !described.has(`${id} ${first.kind}`);
      described.add(`${id} ${first.kind}`);
      return own.flatMap(({ line, text, commit }, index) => [
        `${id} ${commit?.line ?? line} ${line}${index === 0 ? ` ${own.length}` : ''}`,
        ...(index === 0 && isNew ? [...description(first), `filename ${commit?.file ?? name}`] : []),
        `\t${text}`,
      ]);
    })
    .map((row) => `${row}\n`)
    .join('');
}

/** Returns a name as git prints it. */
function quotedName(name: string): string {
  return /["\\\p{Cc}]/u.test(name) ? `"${spelledLine(name.replace(/["\\]/g, String.raw`\$&`))}"` : name;
}

function description({ call, commit, kind, until }: BlamedLine): readonly string[] {
  if (commit) return commit.rows;
  const [name, mail, at, summary] = call
    ? [
        authorName(call),
        `<${call.session.row.id}@agent>`,
        call.at,
        oneLine(promptLine(call.prompt ?? call.summary), 200),
      ]
    : kind === 'outside'
      ? ['Edited outside', '<outside>', until ?? 0, 'Edited outside of recorded sessions']
      : ['Unknown', '<unknown>', 0, 'Neither the log nor git has this line'];
  return ['author', 'committer']
    .flatMap((who) => [
      `${who} ${spelledLine(name)}`,
      `${who}-mail ${spelledLine(mail)}`,
      `${who}-time ${Math.floor(at / 1000)}`,
      `${who}-tz +0000`,
    ])
    .concat(`summary ${spelledLine(summary)}`);
}

/** Returns an id of 40 hexadecimal digits for each call that is no commit of the repository. */
async function callIds(
  calls: ReadonlySet<CallRecord>,
  repository: Pick<Repository, 'run'> | null,
): Promise<ReadonlyMap<CallRecord, string>> {
  const ids = new Map([...calls].map((call) => [call, callId(call, 0)]));
  for (let attempt = 1; repository && ids.size > 0; attempt++) {
    const taken = new Set(await existing([...new Set(ids.values())], repository));
    const clashing = [...ids].filter(([, id]) => taken.has(id));
    if (clashing.length === 0) break;
    for (const [call] of clashing) ids.set(call, callId(call, attempt));
  }
  return ids;
}

function callId({ session, seq }: CallRecord, attempt: number): string {
  const name = `agent call ${session.row.id}:${seq}${attempt === 0 ? '' : ` ${attempt}`}`;
  return createHash('sha256').update(name).digest('hex').slice(0, 40);
}

const idsPerCommand = 500;

async function existing(ids: readonly string[], repository: Pick<Repository, 'run'>): Promise<readonly string[]> {
  const found: string[] = [];
  for (let at = 0; at < ids.length; at += idsPerCommand) {
    const some = ids.slice(at, at + idsPerCommand);
    const { output } = await repository.run(['rev-list', '--no-walk', '--ignore-missing', ...some, '--']);
    addAll(
      found,
      output.split('\n').filter((line) => line !== ''),
    );
  }
  return found;
}

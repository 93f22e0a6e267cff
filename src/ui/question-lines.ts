import { editOptions, type RequestedEdit, requestedEdits } from '../kernel/core/edit-arguments.js';
import type { PermissionAnswer, Question, Rule } from '../kernel/core/policy.js';
import { writesReason } from '../kernel/core/policy.js';
import { isRecord } from '../kernel/core/json.js';
import { decisionText } from '../kernel/core/sanitize.js';
import { type DiffLine, editedLines, placesOf, plainEditLines } from './diff-lines.js';

/** The text on which the user decides, and below it the lines of an edit. */
interface QuestionParts {
  readonly texts: readonly string[];
  /** The places of the change. */
  readonly edit: readonly (readonly DiffLine[])[];
}

/** Returns the parts of a question as plain lines. */
export function questionRows(question: Question): readonly string[] {
  const { texts, edit } = questionParts(question);
  return [...texts, ...plainEditLines(edit)];
}

/** Returns all that the call would do, escaped and complete: each argument under its name, an edit as removed and added
 * lines. */
function questionParts(question: Question): QuestionParts {
  const { texts, edit } = callParts(question);
  const { effects } = question;
  if (!effects) return { texts, edit };
  return { texts: [...texts, '', ...effectRows(effects.lines)], edit };
}

/** The most effects that are named besides deletions. */
const mostEffects = 200;

/** Returns the effects of a rehearsed call; deletions first and complete. */
function effectRows(lines: readonly string[]): readonly string[] {
  const rows = lines.map((line) => decisionText(line, { lines: false }));
  const deletions = rows.filter((row) => row.startsWith('deletes '));
  const others = rows.slice(deletions.length);
  const more = others.length > mostEffects ? [`and ${others.length - mostEffects} more`] : [];
  return [
    'A rehearsal shows that it',
    ...[...deletions, ...others.slice(0, mostEffects), ...more].map((row) => `  ${row}`),
  ];
}

function callParts(question: Question): QuestionParts {
  const { args } = question.call;
  const names = Object.keys(args);
  const single = names.length === 1 ? args[names[0] ?? ''] : undefined;
  if (typeof single === 'string') return { texts: decisionText(single, { lines: true }).split('\n'), edit: [] };
  if (requestedEdits(args) === null)
    return { texts: names.flatMap((name) => argumentLines(name, args[name])), edit: [] };
  const rest = names.filter((name) => !['old_string', 'new_string', 'edits'].includes(name));
  const places = placesText(question);
  return {
    texts: [
      ...rest.flatMap((name) => argumentLines(name, args[name])),
      ...editOptions(args),
      ...(places === null ? [] : [`lines: ${places}`]),
    ],
    edit: changeOf(question),
  };
}

/** Numbers the lines of an edit that is made in several places; null for one place. */
function placesText({ lines = [] }: Question): string | null {
  return lines.length > 1 ? `${lines.slice(0, mostPlaces).join(', ')}${morePlaces(lines.length)}` : null;
}

/** Returns the places of an edit, with the lines around it, or of what a write changes in its file; none for other
 * calls. Of a list of edits: what they change together, or each of them where that is not known. */
function changeOf(question: Question): readonly (readonly DiffLine[])[] {
  const { args } = question.call;
  const { old_string: before, new_string: after, edits, content } = args;
  if (edits === undefined && typeof before === 'string' && typeof after === 'string')
    return changeOfEdit(question, { old_string: before, new_string: after });
  const diff = question.surroundings?.diff;
  const together = diff === undefined ? [] : overwrittenPlaces(diff);
  if (edits !== undefined)
    return together.length > 0 ? together : (requestedEdits(args) ?? []).flatMap((edit) => editPlaces(edit, null));
  return typeof content === 'string' ? together : [];
}

function changeOfEdit({ lines = [], surroundings }: Question, edit: RequestedEdit): readonly (readonly DiffLine[])[] {
  const { old_string: before, new_string: after } = edit;
  const first = lines[0] ?? null;
  if (first === null || lines.length > 1 || !surroundings) return editPlaces(edit, first);
  const { above, head, tail, below } = surroundings;
  const whole = (text: string): string => [...above, head + text + tail, ...below].join('\n');
  return editPlaces({ old_string: whole(before), new_string: whole(after) }, first - above.length);
}

function editPlaces({ old_string, new_string }: RequestedEdit, first: number | null): readonly (readonly DiffLine[])[] {
  const place = editedLines(spelled(old_string), spelled(new_string), first);
  return place.length === 0 ? [] : [place];
}

/** Returns the places of a diff, escaped; none of one that was cut, because then it does not show the whole change. */
function overwrittenPlaces(diff: string): readonly (readonly DiffLine[])[] {
  if (/^…/m.test(diff)) return [];
  return placesOf(diff.split('\n')).map((place) =>
    place.map((line) => ({ ...line, text: decisionText(line.text, { lines: false }) })),
  );
}

const mostPlaces = 20;

function morePlaces(count: number): string {
  return count > mostPlaces ? ` and ${count - mostPlaces} more` : '';
}

/** Names the calls that rules allow: `git commit …`, `file_edit in ~/project/**`. */
export function rulesText(rules: readonly Rule[]): string {
  const texts = rules.map(({ tool = 'any tool', argv, path, exact }) =>
    argv
      ? `\`${argv.join(' ')}${exact ? '' : ' …'}\``
      : path === undefined
        ? `any call of ${tool}`
        : `${tool} in ${path}`,
  );
  return texts.join(' and ');
}

/** The parts of a prompt: the title, which names the act, and what runs. Of what the title says nothing is repeated. */
export interface PromptParts extends QuestionParts {
  readonly title: string;
  /** `+4 −1`, or why the call is dangerous. */
  readonly note: string;
  /** Further parameters as `name=value`. */
  readonly facts: readonly string[];
  readonly targets: readonly string[];
  readonly reasons: readonly string[];
}

interface Act {
  /** The word before the path. */
  readonly verb?: string;
  readonly shows: readonly string[];
}

/** The parameters that a title or the text below it shows, by the tool that has them. */
const acts: Readonly<Record<string, Act>> = {
  bash: { shows: ['command'] },
  file_edit: { verb: 'Edit', shows: ['path', 'old_string', 'new_string', 'edits'] },
  file_write: { verb: 'Write', shows: ['path', 'content'] },
  file_read: { verb: 'Read', shows: ['path'] },
};

/** Tools of servers are not known here. */
function actOf({ tool, target }: Question['call']): Act | undefined {
  return target ? undefined : acts[tool.name];
}

/** Returns a question as a prompt shows it: the act, what runs, and the reasons. All of it is escaped and complete.
 * `minus`: the sign before a number of removed lines. */
export function promptParts(question: Question, minus = '−'): PromptParts {
  const { call, verdict, effects } = question;
  const act = actOf(call);
  const named = act?.verb === undefined ? null : namedTarget(question);
  const target = named?.target;
  const { texts, edit, facts } = act ? actParts(question, act.shows) : { ...callParts(question), facts: [] };
  const given = named?.given === undefined ? [] : [`path=${named.given}`];
  const reasons = verdict.reasons.filter((reason) => !isShownAnyway(reason, question, target));
  return {
    title: titleOf(question, act?.verb, named),
    texts: effects ? [...texts, '', ...effectRows(effects.lines)] : texts,
    edit,
    facts: [...given, ...facts].map(oneLine),
    targets: (verdict.targets ?? []).filter((one) => one !== target).map(oneLine),
    ...noted(question, { reasons, named, size: edit.length > 0 ? countsOf(edit.flat(), minus) : contentSize(call) }),
  };
}

/** Returns the note of the title, and the reasons that it does not say. */
function noted(
  { verdict: { risk } }: Question,
  about: { readonly reasons: readonly string[]; readonly named: NamedTarget | null; readonly size: string },
): Pick<PromptParts, 'note' | 'reasons'> {
  const { reasons, named, size } = about;
  if (risk !== 'dangerous') return { note: size, reasons: reasons.map(oneLine) };
  const { note, isWhole } = dangerNote(reasons, named);
  return { note, reasons: isWhole ? [] : reasons.map(oneLine) };
}

function titleOf({ call: { tool, target } }: Question, verb: string | undefined, named: NamedTarget | null): string {
  if (named && verb !== undefined) return `${verb} ${named.shown}?`;
  if (tool.name === 'bash' && !target) return 'Run this command?';
  return `Use ${oneLine(`${target?.name ?? tool.name}${target ? ` of the server ${target.server}` : ''}`)}?`;
}

/** Returns true for a reason that only repeats the path in the title, or the effects that are listed. */
function isShownAnyway(reason: string, { call, effects }: Question, target: string | undefined): boolean {
  if (target !== undefined && reason === writesReason(call.tool.name, [target])) return true;
  return effects !== undefined && effects.lines.length > 0 && reason === `it ${effects.text}`;
}

function oneLine(text: string): string {
  return decisionText(text, { lines: false });
}

/** `target`: the path where a file tool leads, if the title names that. `given`: as the model wrote it, where that is
 * another path. */
interface NamedTarget {
  readonly shown: string;
  readonly target?: string;
  readonly given?: string;
}

/** Returns the path of a file tool as the title shows it. */
function namedTarget({ call: { args }, verdict: { targets = [] }, cwd }: Question): NamedTarget | null {
  const { path } = args;
  if (typeof path !== 'string') return null;
  const [target, ...others] = targets;
  if (target === undefined || others.length > 0 || cwd === undefined) return { shown: oneLine(path) };
  const inside = target.startsWith(`${cwd}/`) ? target.slice(cwd.length + 1) : target;
  const isSame = [inside, target].includes(path.replace(/^\.\//, ''));
  return { shown: oneLine(inside), target, ...(isSame ? {} : { given: path }) };
}

/** Returns what a known tool would do: the text or the change it shows, and its other parameters. */
function actParts(question: Question, shows: readonly string[]): QuestionParts & Pick<PromptParts, 'facts'> {
  const { args } = question.call;
  const edit = changeOf(question);
  const { command, content } = args;
  const written = typeof content === 'string' ? content.replace(/\n$/, '') : undefined;
  const main = edit.length > 0 ? undefined : (command ?? written);
  const places = placesText(question);
  const others = Object.keys(args).filter((name) => !shows.includes(name));
  return {
    texts: typeof main === 'string' ? decisionText(main, { lines: true }).split('\n') : [],
    edit,
    facts: [
      ...others.map((name) => `${name}=${valueText(args[name])}`),
      ...writtenAs(question),
      ...editOptions(args),
      ...(places === null ? [] : [`lines ${places}`]),
    ],
  };
}

/** Names the command that the model wrote, where what runs is what the user's shell makes of it. */
function writtenAs({ call: { given } }: Question): readonly string[] {
  const written = given?.['command'];
  return typeof written === 'string' ? [`from your shell, for: ${written}`] : [];
}

function valueText(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@%+,~-]+$/.test(value) ? value : (JSON.stringify(value) ?? 'undefined');
}

/** Returns the note of a dangerous call, with its only reason if there is one. What the reason is about is shown anyway. */
function dangerNote(
  reasons: readonly string[],
  named: NamedTarget | null,
): { readonly note: string; readonly isWhole: boolean } {
  const [only, ...others] = reasons;
  if (only === undefined || others.length > 0) return { note: 'Dangerous', isWhole: false };
  const start = [named?.target, named?.shown].find((text) => text !== undefined && only.startsWith(`${text} `));
  const short = start === undefined ? only.replace(/^`[^`]*` /, '') : only.slice(start.length + 1);
  return { note: `Dangerous: ${decisionText(short, { lines: false })}`, isWhole: true };
}

/** Returns the number of lines that a write has. */
function contentSize({ tool, args: { content } }: Question['call']): string {
  if (tool.name !== 'file_write' || typeof content !== 'string') return '';
  const count = content.replace(/\n$/, '').split('\n').length;
  return content === '' ? 'empty' : `${count} ${count === 1 ? 'line' : 'lines'}`;
}

function countsOf(edit: readonly DiffLine[], minus: string): string {
  const count = (sign: DiffLine['sign']): number => edit.filter((line) => line.sign === sign).length;
  const counts = [`+${count('+')}`, `${minus}${count('-')}`].filter((text) => !text.endsWith('0') || text.length > 2);
  return counts.join(' ');
}

/** Names the calls that "don't ask again" is about. */
export function rulesAbout({ verdict: { rules = [] }, cwd }: Question): string {
  const texts = rules.map((rule) => {
    const { tool = '', path } = rule;
    const what = { file_edit: 'edits', file_write: 'writing files' }[tool];
    if (path === undefined || what === undefined) return rulesText([rule]);
    return `${what} in ${path === `${cwd}/**` ? 'this project' : path}`;
  });
  return decisionText(texts.join(' and '), { lines: false });
}

/** A question in plain text: `head` is the act with its note, `rows` all that the call would do. */
export interface PlainQuestion extends Pick<PromptParts, 'targets' | 'reasons'> {
  readonly head: string;
  readonly rows: readonly string[];
}

export function plainQuestion(question: Question, minus = '−'): PlainQuestion {
  const { title, note, texts, edit, facts, targets, reasons } = promptParts(question, minus);
  return {
    head: note === '' ? title : `${title}  ${note}`,
    rows: [...texts, ...plainEditLines(edit), ...facts],
    targets,
    reasons,
  };
}

/** Returns a question as lines that are read one after the other: the act, what runs, why it is asked, and behind `arrow`
 * what it would touch. */
export function askedLines(question: Question, arrow: string): readonly string[] {
  const { head, rows, targets, reasons } = plainQuestion(question, '-');
  return [
    head,
    ...rows.map((row) => `  ${row}`),
    ...targets.map((target) => `${arrow} ${target}`),
    ...reasons.map((reason) => `! ${reason}`),
  ];
}

/** Returns `askedLines`, and what the words for lasting answers stand for. */
export function questionLines(question: Question, arrow: string): readonly string[] {
  const { rules = [] } = question.verdict;
  const asked = [
    ...askedLines(question, arrow),
    ...(canKeep(question) ? ['keep: apply these changes without running it again'] : []),
    ...(question.canPreview ? ['preview: show first what it would do'] : []),
  ];
  if (rules.length === 0) return asked;
  return [
    ...asked,
    `these: yes, and don't ask again for ${rulesAbout(question)} (this session)`,
    `always: always allow ${rulesAbout(question)} (saves a rule)`,
  ];
}

function argumentLines(name: string, value: unknown): string[] {
  const text =
    typeof value === 'string'
      ? decisionText(value, { lines: true })
      : decisionText(JSON.stringify(value) ?? 'undefined', { lines: false });
  const key = decisionText(name, { lines: false });
  const lines = text.split('\n');
  return lines.length === 1 && !isRecord(value) ? [`${key}: ${text}`] : [`${key}:`, ...lines];
}

/** Returns true if the changes of a rehearsal can be kept. */
export function canKeep({ effects }: Question): boolean {
  return effects !== undefined && effects.keepProblem === null;
}

/** The answers that only some questions have. */
function offeredAnswer(text: string, question: Question): PermissionAnswer | null {
  if (question.canPreview && /^p(?:review)?$/i.test(text)) return { answer: 'preview' };
  if (canKeep(question) && /^k(?:eep)?$/i.test(text)) return { answer: 'keep' };
  if ((question.verdict.rules ?? []).length === 0 || !/^(?:these|always)$/i.test(text)) return null;
  return { answer: 'rules', lasts: text.toLowerCase() === 'these' ? 'session' : 'always' };
}

/** Returns the answer that a line means; null if it is none. A dangerous call has no one-letter yes. */
export function lineAnswer(line: string, question: Question): PermissionAnswer | null {
  const { risk } = question.verdict;
  const text = line.trim();
  const offered = offeredAnswer(text, question);
  if (offered) return offered;
  const isDangerous = risk === 'dangerous';
  if ((isDangerous ? /^yes$/i : /^y(es)?$/i).test(text)) return { answer: 'once' };
  if ((isDangerous ? /^session$/i : /^s(ession)?$/i).test(text)) return { answer: 'session' };
  if (text === '') return { answer: 'deny' };
  const refusal = /^no?(?:$|[\s,.:;-]+([\s\S]*)$)/i.exec(text);
  if (!refusal) return null;
  return refusal[1] ? { answer: 'deny', message: refusal[1] } : { answer: 'deny' };
}

/** Returns a text with every character that could mislead spelled out. */
function spelled(text: string): string {
  return decisionText(text, { lines: true });
}

import { instructionHeading } from '../kernel/agent/system-prompt.js';
import type { Event } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import type { Notice } from '../kernel/console/run-settings.js';
import type { PromptSettings } from './context-files.js';
import { instructionPlace } from './instructions/instruction-places.js';
import type { InstructionFile } from './instructions/instruction-reader.js';
import { addFolders, laterText, pathsIn } from './instructions/later-instructions.js';
import { listHeading, openInstructions, ruleList } from './instructions/read-instructions.js';

/** The notices and notes about instructions that have changed since the session began. */
export interface InstructionChange {
  /** For the model, behind the prompt, so that the prompt cache stays. */
  readonly notes: readonly string[];
  readonly notices: readonly Notice[];
}

/** A part of the prompt that may change between two runs. */
interface Part {
  /** Its first line, which names it. */
  readonly heading: string;
  /** With the heading; '' if it is gone. */
  readonly text: string;
  /** For the user. */
  readonly name: string;
}

interface Given {
  readonly settings: PromptSettings;
  readonly restored: readonly Event[];
  /** The directory on record. */
  readonly cwdBefore: string;
  /** The blocks of skills and of memory as a new session would get them, or ''. */
  readonly skills: string;
  readonly memory: string;
  readonly mask: (text: string) => string;
}

const gone = 'No longer valid: ';

/** Compares the instructions of a resumed session with the files as they are now. */
export function changedInstructions({ settings, cwdBefore, mask, ...given }: Given): InstructionChange {
  const told = toldTexts(given.restored);
  if (told.length === 0) return { notes: [], notices: [] };
  const before = pathsIn(told);
  const files = currentFiles(settings, before);
  const parts = [
    ...fileParts(files, before),
    ...listPart(ruleList(files), told),
    ...blockPart('memory', given.memory, told),
    ...skillsPart(given.skills, told),
  ].map((part) => ({ ...part, text: mask(part.text) }));
  const changed = parts.filter((part) => isChanged(part, told));
  if (changed.length === 0) return { notes: [], notices: [] };
  const texts = changed.map(({ text, heading }) => (text === '' ? gone + heading : text));
  const note =
    '[Note: the instructions have changed. The text below ' +
    `replaces the text under the same heading.]\n\n${texts.join('\n\n')}`;
  const names = changed.map(({ name, text }) => (text === '' ? `${name} (gone)` : name)).join(', ');
  const where =
    settings.cwd === cwdBefore ? '' : ` The instructions of ${settings.cwd} apply now, not of ${cwdBefore}.`;
  const message = `Instructions changed since this session began: ${names}. The model gets the new text.${where}`;
  return { notes: [note], notices: [{ level: 'warn', code: 'instructions_changed', message }] };
}

/** Returns the prompt and the notes that the model still has, the oldest first: a compaction leaves no note. */
function toldTexts(events: readonly Event[]): readonly string[] {
  const from = events.findLastIndex(({ kind }) => kind === 'compaction');
  return events.flatMap((event, index) =>
    event.kind === 'system' || (index > from && isNote(event)) ? (event.content ?? []) : [],
  );
}

function isNote({ kind, data }: Event): boolean {
  return kind === 'user' && isRecord(data) && data.note === true;
}

/** Returns the files as they are now, with those of the folders that the model has instructions from. */
function currentFiles(settings: PromptSettings, before: readonly string[]): readonly InstructionFile[] {
  const place = instructionPlace(settings);
  const reader = openInstructions(place);
  addFolders(reader, place, { paths: before, folders: new Set() });
  return reader.files();
}

/** A file that a later call brings is a part once the model has it. */
function fileParts(files: readonly InstructionFile[], before: readonly string[]): readonly Part[] {
  const now = files.flatMap((file): readonly Part[] => {
    const { path, text, timing, folder } = file;
    const heading = instructionHeading(file);
    if (timing.kind === 'always' && folder === null)
      return [{ heading, text: `${heading}\n\n${text.trim()}`, name: path }];
    return timing.kind !== 'described' && before.includes(path) ? [{ heading, text: laterText(file), name: path }] : [];
  });
  const left = before.filter((path) => !now.some(({ name }) => name === path));
  return [...now, ...left.map((path): Part => ({ heading: instructionHeading({ path }), text: '', name: path }))];
}

/** The list of rules, also where it is gone. */
function listPart(text: string, told: readonly string[]): readonly Part[] {
  const isKnown = text !== '' || told.some((one) => hasLine(one, listHeading));
  return isKnown ? [{ heading: listHeading, text, name: 'the list of rules' }] : [];
}

function blockPart(name: string, text: string, told: readonly string[]): readonly Part[] {
  const heading = text.split('\n')[0] ?? '';
  return text === '' || told.length === 0 ? [] : [{ heading, text, name }];
}

/** New skills are reported before each message; here it is about those that changed or are gone. */
function skillsPart(text: string, told: readonly string[]): readonly Part[] {
  const heading = '# Skills';
  const last = told.findLast((one) => hasLine(one, heading));
  if (last === undefined) return [];
  const block = last.slice(last.indexOf(heading)).split('\n\n')[2] ?? '';
  const isCurrent = block.split('\n').every((line) => text.split('\n').includes(line));
  return isCurrent ? [] : [{ heading, text, name: 'skills' }];
}

/** The last text that names the part counts. A text never given, of a part that is not there, is no change. */
function isChanged({ heading, text }: Part, told: readonly string[]): boolean {
  const last = told.findLast((one) => hasLine(one, heading) || hasLine(one, gone + heading));
  if (last === undefined) return text !== '';
  return text === '' ? !hasLine(last, gone + heading) : !last.includes(text);
}

function hasLine(text: string, line: string): boolean {
  return `\n${text}\n`.includes(`\n${line}\n`);
}

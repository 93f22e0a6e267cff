import { recordIn, textIn } from '../../kernel/config/foreign-settings.js';
import { readFrontMatter } from '../../kernel/config/front-matter.js';
import { workKeys } from '../../kernel/console/work-fields.js';
import { isRecord } from '../../kernel/core/json.js';

/** The fields of commands that count here, besides the description. */
const keptKeys: readonly string[] = [...workKeys, 'agent', 'mode', 'subtask', 'context', 'argument-hint'];

/** Returns the file of a command, from its fields and its text. */
function commandFile(fields: Readonly<Record<string, unknown>>, body: string): string {
  const text = `${body.trim()}\n`;
  const description = textIn(fields['description']);
  const lines = [
    ...(description === null ? [] : [`description: ${JSON.stringify(description)}`]),
    ...keptKeys.flatMap((key) => fieldLine(key, fields[key]) ?? []),
  ];
  if (lines.length > 0) return `---\n${lines.join('\n')}\n---\n\n${text}`;
  return text.startsWith('---') ? `---\n---\n\n${text}` : text;
}

function fieldLine(key: string, value: unknown): string | null {
  if (Array.isArray(value)) return `${key}: ${value.map(String).join(', ')}`;
  if (typeof value === 'boolean') return `${key}: ${String(value)}`;
  if (isRecord(value)) return `${key}: ${JSON.stringify(value)}`;
  const text = textIn(value);
  return text === null || text.trim() === '' ? null : `${key}: ${text.replaceAll(/\s+/g, ' ').trim()}`;
}

/** Makes a command of a command of Gemini CLI, from the fields of its file. Null: it has no prompt. */
export function fromGeminiFields(fields: Readonly<Record<string, unknown>>): string | null {
  const prompt = textIn(fields['prompt']);
  return prompt === null ? null : commandFile(fields, fromGeminiPrompt(prompt));
}

/** Makes a command of a Markdown file of Qwen Code, which knows the marks of Gemini CLI. */
export function fromQwenMarkdown(text: string): string {
  if (!/\{\{args\}\}|[!@]\{/.test(text)) return text;
  const { fields, body } = readFrontMatter(text);
  return commandFile(Object.fromEntries(fields), fromGeminiPrompt(body));
}

/** Makes a command of an entry of `command` in `opencode.json`. Null: it has no template. */
export function fromOpencodeEntry(entry: unknown, resolveFiles: (text: string) => string): string | null {
  const { template, ...fields } = recordIn(entry);
  const text = textIn(template);
  return text === null ? null : commandFile(fields, resolveFiles(text));
}

/** Makes a command of a prompt file of VS Code: `${input:name}` is what is typed behind the command. */
export function fromEditorPrompt(text: string): string {
  const { fields, body } = readFrontMatter(text);
  return commandFile(
    Object.fromEntries(fields),
    body.replaceAll(/\$\{input(?::[^}]*)?\}/g, () => '$ARGUMENTS'),
  );
}

/** Replaces the marks of Gemini CLI: `{{args}}`, `!{command}` and `@{path}`. What would be a mark here alone stays a
 * text. Source: geminicli.com/docs/cli/custom-commands, read 2026-11. */
function fromGeminiPrompt(prompt: string): string {
  let text = '';
  let rest = withoutFences(prompt);
  for (let mark = nextMark(rest); mark; mark = nextMark(rest)) {
    text += plainText(rest.slice(0, mark.start));
    text += mark.sign === '!' ? commandMark(mark.inside, text) : fileMark(mark.inside, text);
    rest = rest.slice(mark.end);
  }
  return text + plainText(rest);
}

interface Mark {
  readonly sign: '!' | '@';
  readonly inside: string;
  readonly start: number;
  readonly end: number;
}

/** Finds the next mark; the braces in it are balanced. */
function nextMark(text: string): Mark | null {
  for (const found of text.matchAll(/([!@])\{(?!\{)/g)) {
    const from = found.index + 2;
    const length = insideLength(text.slice(from));
    if (length === null) continue;
    const inside = text.slice(from, from + length).trim();
    if (inside !== '')
      return { sign: found[1] === '!' ? '!' : '@', inside, start: found.index, end: from + length + 1 };
  }
  return null;
}

function insideLength(text: string): number | null {
  let depth = 1;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return at;
  }
  return null;
}

/** A command in backticks, or in a block where it has lines or backticks of its own. */
function commandMark(command: string, before: string): string {
  const filled = plainText(command);
  if (!/[`\n]/.test(filled)) return `${gapAfter(before)}!\`${filled}\``;
  return `${before === '' || before.endsWith('\n') ? '' : '\n'}\`\`\`!\n${filled}\n\`\`\`\n`;
}

function fileMark(path: string, before: string): string {
  const filled = plainText(path);
  return `${gapAfter(before)}@${/\s/.test(filled) ? `"${filled}"` : filled}`;
}

/** A mark of ours begins behind a blank. */
function gapAfter(text: string): string {
  return text === '' || /\s$/.test(text) ? '' : ' ';
}

/** Puts in `$ARGUMENTS`, and keeps other texts from being read as marks of ours. */
function plainText(text: string): string {
  return text
    .replaceAll(/\$(?=ARGUMENTS|@|\d|\{(?:ARGUMENTS|\d|@))/g, () => '\\$')
    .replaceAll(/(?<=^|\s)!`/gm, () => '! `')
    .replaceAll('{{args}}', () => '$ARGUMENTS');
}

/** Removes the fences around commands: nothing runs inside of a fence here. */
function withoutFences(text: string): string {
  return text.replaceAll(
    /^([ \t]*)(`{3,}|~{3,})[^\n`]*\n([^]*?)\n\1\2[ \t]*$/gm,
    (whole, _indent, _marks, inside: string) => (/!\{(?!\{)/.test(inside) ? inside : whole),
  );
}

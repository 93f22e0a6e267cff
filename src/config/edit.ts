import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkValue } from './check.js';
import { parseConfigText, readConfigFile } from './file.js';
import { ensurePrivateDirectory } from './paths.js';
import { fileProblem, type ConfigProblem } from './problem.js';

export type EditResult = { readonly ok: true } | { readonly ok: false; readonly problem: ConfigProblem };

/** Sets one key of a settings file, or removes it (`value` undefined); comments and the order of the rest stay. The
 * file is replaced whole (0600, a symbolic link's target), or left as it was where it, or what it would become, is not
 * valid. Throws what the system reports. */
export async function editConfigFile(file: string, path: readonly string[], value: unknown): Promise<EditResult> {
  const content = readConfigFile(file);
  if (content.kind === 'unreadable')
    return {
      ok: false,
      problem: { message: `${file}: ${content.reason}`, hint: 'Nothing was changed.', key: '', where: file },
    };
  const before = content.kind === 'text' && content.text.trim() !== '' ? content.text : '{}\n';
  const invalid = await problemOf(file, before);
  if (invalid) return { ok: false, problem: invalid };
  const { applyEdits, modify } = await import('jsonc-parser');
  const after = applyEdits(
    before,
    modify(before, [...path], value, {
      formattingOptions: { insertSpaces: true, tabSize: 2, insertFinalNewline: true },
    }),
  );
  const spoilt = await problemOf(file, after, path);
  if (spoilt) return { ok: false, problem: spoilt };
  if (after !== before || content.kind === 'missing') replaceFile(file, after);
  return { ok: true };
}

/** What keeps a text from being edited: that it is not JSON; with `path`, also what is wrong at that key. */
async function problemOf(file: string, text: string, path?: readonly string[]): Promise<ConfigProblem | null> {
  const parsed = await parseConfigText(text);
  if (parsed.kind === 'broken') {
    const { line, column } = parsed.position;
    return {
      message: `${file}:${line}:${column}: not valid JSON: ${parsed.reason}`,
      hint: 'Correct it there first; nothing was changed.',
      key: '',
      where: file,
      line,
      column,
    };
  }
  const issue = path && checkValue(parsed.value).find((item) => path.every((key, index) => item.path[index] === key));
  return issue ? fileProblem(file, text, issue) : null;
}

function replaceFile(file: string, text: string): void {
  ensurePrivateDirectory(dirname(file));
  const target = resolved(file);
  const temporary = join(dirname(target), `.config-${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

function resolved(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}

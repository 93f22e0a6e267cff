import { isRecord } from './json.js';

/** One replacement that a call of `file_edit` asks for. */
export interface RequestedEdit {
  readonly old_string: string;
  readonly new_string: string;
  readonly replace_all?: boolean;
}

const editKeys: readonly string[] = ['old_string', 'new_string', 'replace_all'];

/** Returns the replacements of a call of `file_edit` in the order in which they are made: those of `edits`, or the one of
 * the three single arguments. Null for other arguments, and for both at once. */
export function requestedEdits(args: Readonly<Record<string, unknown>>): readonly RequestedEdit[] | null {
  const { edits, old_string, new_string, replace_all } = args;
  if (edits === undefined) {
    const only = readEdit({ old_string, new_string, ...(replace_all === undefined ? {} : { replace_all }) });
    return only && [only];
  }
  if (!Array.isArray(edits) || editKeys.some((key) => args[key] !== undefined)) return null;
  const read = edits.map(readEdit);
  return read.every((edit) => edit !== null) ? read : null;
}

function readEdit(value: unknown): RequestedEdit | null {
  if (!isRecord(value) || Object.keys(value).some((key) => !editKeys.includes(key))) return null;
  const { old_string, new_string, replace_all } = value;
  if (typeof old_string !== 'string' || typeof new_string !== 'string') return null;
  if (replace_all !== undefined && typeof replace_all !== 'boolean') return null;
  return { old_string, new_string, ...(replace_all === undefined ? {} : { replace_all }) };
}

/** Returns `edit 2: replace_all=true` for each of the `edits` of a call that sets it. */
export function editOptions(args: Readonly<Record<string, unknown>>): readonly string[] {
  if (args['edits'] === undefined) return [];
  return (requestedEdits(args) ?? []).flatMap(({ replace_all }, index) =>
    replace_all === undefined ? [] : [`edit ${index + 1}: replace_all=${String(replace_all)}`],
  );
}

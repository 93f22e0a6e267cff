import type { FrontMatter } from '../../kernel/config/front-matter.js';

/** Fields of skills and commands that change what other programs do, and have no effect here. Fields that only describe
 * (`license`, `version`) are not among them.
 * Source: code.claude.com/docs/en/skills, "Frontmatter reference", read 2026-11. */
const withoutEffect: readonly string[] = ['hooks', 'paths', 'handoffs', 'shell', 'temperature', 'permission'];

/** Returns the fields of a file that have no effect, in the order of the file. */
export function unusedFields(fields: FrontMatter['fields']): readonly string[] {
  return [...fields.keys()].filter((key) => withoutEffect.includes(key));
}

/** Returns what the user reads when such a file is used; null for nothing. `problems`: sentences about other fields. */
export function unusedNotice(
  name: string,
  { unused, problems }: { readonly unused: readonly string[]; readonly problems: readonly string[] },
): string | null {
  const verb = unused.length === 1 ? 'has' : 'have';
  const without = unused.length === 0 ? [] : [`${unused.join(', ')} of its file ${verb} no effect here.`];
  const all = [...without, ...problems];
  return all.length === 0 ? null : `/${name}: ${all.join(' ')}`;
}

/** Returns the line of a list that names them. */
export function unusedLine(unused: readonly string[]): readonly string[] {
  return unused.length === 0 ? [] : [`  not used here: ${unused.join(', ')}`];
}

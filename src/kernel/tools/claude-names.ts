/** The names of Claude Code for one of our tools and its arguments: `ours: theirs`. Other arguments keep their
 * names. */
interface Dialect {
  readonly names: readonly string[];
  /** The name of a call with a list of `edits`. */
  readonly several?: string;
  readonly keys?: Readonly<Record<string, string>>;
}

const dialects: Readonly<Record<string, Dialect>> = {
  bash: { names: ['Bash'], keys: { timeout_seconds: 'timeout' } },
  file_read: { names: ['Read'], keys: { path: 'file_path' } },
  file_write: { names: ['Write'], keys: { path: 'file_path' } },
  file_edit: { names: ['Edit'], several: 'MultiEdit', keys: { path: 'file_path' } },
  glob: { names: ['Glob'] },
  grep: { names: ['Grep'], keys: { ignore_case: '-i', context: '-C' } },
  web_fetch: { names: ['WebFetch'] },
  web_search: { names: ['WebSearch'] },
  agent: { names: ['Agent', 'Task'] },
  ask_user: { names: ['AskUserQuestion'] },
  skill: { names: ['Skill'] },
};

/** Returns the names of Claude Code for one of our tools. */
export function theirNames(tool: string): readonly string[] {
  const { names = [], several } = dialectOf(tool) ?? {};
  return several === undefined ? names : [...names, several];
}

/** Returns the names for one of our tools and its arguments. */
export function dialectOf(tool: string): Dialect | undefined {
  return Object.hasOwn(dialects, tool) ? dialects[tool] : undefined;
}

/** Our name of a tool of Claude Code; another name stays as it is. */
export function ourName(theirs: string): string {
  return Object.keys(dialects).find((ours) => theirNames(ours).includes(theirs)) ?? theirs;
}

/** Tools that a name of Claude Code's covers in a permission rule beside the tool of that name. */
const covered: ReadonlyMap<string, readonly string[]> = new Map([
  ['Edit', ['file_edit', 'file_write']],
  ['MultiEdit', ['file_edit']],
  ['Read', ['file_read', 'grep', 'glob']],
]);

/** Our tools that a permission rule is about, by the name in front of its brackets. */
export function ruledTools(name: string): readonly string[] {
  return covered.get(name) ?? [ourName(name)];
}

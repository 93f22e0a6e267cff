import { ourName } from './claude-names.js';

/** The names of other programs for tools, as Claude Code names them. Sources: the lists of tools in the documentation of
 * opencode, Gemini CLI, Qwen Code, VS Code (code.visualstudio.com/docs/copilot/chat/chat-tools) and GitHub Copilot
 * (docs.github.com/en/copilot/reference/custom-agents-configuration, "Tool aliases"), read 2026-11. */
const toolNames: Readonly<Record<string, readonly string[]>> = {
  bash: ['Bash'],
  run_shell_command: ['Bash'],
  runcommands: ['Bash'],
  runinterminal: ['Bash'],
  execute: ['Bash'],
  shell: ['Bash'],
  powershell: ['Bash'],
  terminal: ['Bash'],
  read: ['Read', 'Grep', 'Glob'],
  read_file: ['Read'],
  read_many_files: ['Read'],
  readfile: ['Read'],
  view: ['Read'],
  notebookread: ['Read'],
  codebase: ['Read', 'Grep', 'Glob'],
  search: ['Grep', 'Glob'],
  usages: ['Grep'],
  textsearch: ['Grep'],
  filesearch: ['Glob'],
  listdirectory: ['Glob'],
  grep: ['Grep'],
  grep_search: ['Grep'],
  search_file_content: ['Grep'],
  glob: ['Glob'],
  list: ['Glob'],
  ls: ['Glob'],
  list_directory: ['Glob'],
  write: ['Write'],
  write_file: ['Write'],
  createfile: ['Write'],
  edit: ['Edit', 'Write'],
  editfiles: ['Edit', 'Write'],
  multiedit: ['Edit'],
  notebookedit: ['Edit'],
  patch: ['Edit'],
  replace: ['Edit'],
  webfetch: ['WebFetch'],
  web_fetch: ['WebFetch'],
  fetch: ['WebFetch'],
  web: ['WebFetch', 'WebSearch'],
  websearch: ['WebSearch'],
  google_web_search: ['WebSearch'],
  web_search: ['WebSearch'],
  skill: ['Skill'],
  activate_skill: ['Skill'],
  todowrite: ['TodoWrite'],
  todo: ['TodoWrite'],
  write_todos: ['TodoWrite'],
  todo_write: ['TodoWrite'],
};

/** The sets of tools that VS Code has itself. Another name before a `/` is that of a server. */
const toolSets: readonly string[] = ['agent', 'browser', 'edit', 'execute', 'read', 'search', 'todo', 'vscode', 'web'];

/** Returns the names of Claude Code for a tool of another program; null for a name that says nothing. `search/codebase` is
 * a tool of a set, `server/tool` one of a server. */
export function claudeNames(name: string): readonly string[] | null {
  const [first = '', ...rest] = name.split('/');
  if (rest.length === 0) return namesInTable(name);
  if (toolSets.includes(first.toLowerCase())) return namesInTable(rest.join('/'));
  return /^[\w.-]+\/(?:\*|[\w.-]+(?:\/[\w.*-]+)*)$/.test(name) ? [`mcp__${first}__${rest.join('/')}`] : null;
}

function namesInTable(name: string): readonly string[] | null {
  const key = name.toLowerCase();
  return Object.hasOwn(toolNames, key) ? (toolNames[key] ?? null) : null;
}

/** Returns an entry of `tools` with the names of Claude Code that it means. A name with a capital letter is one of Claude
 * Code, which means one tool alone. */
export function withClaudeNames(name: string): readonly string[] {
  const known = /^\p{Lu}|^\*/u.test(name) ? null : claudeNames(name);
  if (known === null) return [name];
  return name.includes('/') ? known : [name, ...known.filter((one) => ourName(one) !== name)];
}

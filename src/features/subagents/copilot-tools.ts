/** The tools of Claude Code that a name of GitHub Copilot or VS Code means, in lower case. Names without an equal are
 * left out: Copilot ignores names that it does not know.
 * Source: docs.github.com/en/copilot/reference/custom-agents-configuration, "Tool aliases", and
 * code.visualstudio.com/docs/copilot/chat/chat-tools, read 2026-11. */
const meanings: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    Read: ['read', 'view', 'readfile', 'read/readfile', 'notebookread', 'codebase', 'search/codebase'],
    Edit: ['edit', 'multiedit', 'editfiles', 'edit/editfiles', 'notebookedit'],
    Write: ['edit', 'write', 'editfiles', 'edit/editfiles', 'new', 'createfile', 'edit/createfile'],
    Grep: ['search', 'codebase', 'textsearch', 'search/codebase', 'search/textsearch', 'usages', 'search/usages'],
    Glob: ['search', 'codebase', 'filesearch', 'search/codebase', 'search/filesearch', 'search/listdirectory'],
    Bash: ['execute', 'shell', 'powershell', 'terminal', 'runcommands', 'runinterminal', 'execute/runinterminal'],
    WebFetch: ['web', 'fetch', 'web/fetch'],
    WebSearch: ['web', 'websearch'],
  }).reduce((found, [tool, names]) => {
    for (const name of names) found.set(name, [...(found.get(name) ?? []), tool]);
    return found;
  }, new Map<string, readonly string[]>()),
);

/** The sets of tools that VS Code has itself. Another name before a `/` is that of a server. */
const toolSets: readonly string[] = ['agent', 'browser', 'edit', 'execute', 'read', 'search', 'todo', 'vscode', 'web'];

/** Returns an entry of `tools` with the names of Claude Code that it means. `server/tool` is `mcp__server__tool`. */
export function withClaudeNames(name: string): readonly string[] {
  const [, server, tool] = /^([\w.-]+)\/(\*|[\w.-]+)$/.exec(name) ?? [];
  const known = meanings.get(name.toLowerCase());
  if (known) return server === undefined ? [name, ...known.filter((one) => one !== name)] : known;
  if (server === undefined || tool === undefined || toolSets.includes(server.toLowerCase())) return [name];
  return [`mcp__${server}__${tool}`];
}

/** Slash commands of Claude Code, Codex, Gemini CLI, opencode and pi that have no equal here, each with what does the
 * same. Source: the lists of commands in their documentation, November 2026. */
export const foreignSlashCommands: Readonly<Record<string, string>> = {
  bug: 'agent doctor shows what a bug report needs.',
  cd: 'Start agent in the other folder, or with --cwd <dir>.',
  fast: '/effort low answers sooner; /model picks a faster model.',
  feedback: 'agent doctor shows what a bug report needs.',
  ide: 'Editors start agent acp; agent acp --help says how.',
  import: 'agent import copies servers, skills, commands, rules and conversations of other agents.',
  keybindings: '/keys lists the keys; the setting ui.bindings changes them.',
  mention: 'Type @ and a part of the file name.',
  personality: 'agent config set output_style explanatory changes how new sessions answer.',
  sandbox: 'Start with --sandbox workspace, or set it: agent config set sandbox workspace.',
  sql: 'agent sql runs a query over all sessions.',
  statusline: 'Set ui.status_command to the program that prints the line.',
  'terminal-setup': 'Nothing to set up: \\ and Enter begin a new line in every terminal.',
  upgrade: 'Run agent upgrade.',
  update: 'Run agent upgrade.',
  version: 'Run agent version.',
  vim: 'agent config set ui.keys vim switches to vim keys.',
  web: '/tools +web offers web search and fetching.',
};

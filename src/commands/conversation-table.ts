import type { Section } from '../kernel/console/command.js';

const load = () => import('./conversation-commands.js');

/** Commands of the conversation that is open. */
export const conversation: readonly Section[] = [
  {
    heading: null,
    entries: [
      {
        slash: ['model [[role=]model]', 'Show or change the model; --session for this session only', 'model'],
        also: 'switch provider llm',
        load: async () => (await load()).switchModel,
      },
      {
        slash: ['effort [level]', 'Set the reasoning effort; --session for this session only', 'model'],
        also: 'thinking reasoning think fast',
        load: async () => (await load()).chooseEffort,
      },
      {
        slash: ['clear|new', 'Start a new session; the old one stays', 'conversation'],
        also: 'reset start',
        needsScreen: 'Without -c or -r each run begins a new session.',
        load: async () => (await load()).clear,
      },
      {
        slash: ['fork|branch', 'Continue in a copy of this session', 'conversation'],
        also: 'copy duplicate clone',
        needsScreen: 'Use --fork: agent -c --fork -p "the next message".',
        load: async () => (await load()).fork,
      },
      {
        slash: [
          'compact [what to keep, --results, --dry-run or undo]',
          'Replace the conversation with a summary, or leave out old results',
          'conversation',
        ],
        also: 'summarize summary shrink condense prune',
        waits: true,
        isHarmless: true,
        load: async () => (await load()).compact,
      },
      {
        slash: ['uncompact', 'Undo the last compaction', 'conversation'],
        also: 'restore-context',
        waits: true,
        isHarmless: true,
        load: async () => (await load()).uncompact,
      },
      {
        slash: ['usage|stats', 'Show tokens, cost, context window and limits', 'model'],
        also: 'quota limits tokens',
        isHarmless: true,
        load: async () => (await load()).showUsage,
      },
      {
        slash: ['context', 'Show what the next request consists of', 'model'],
        also: 'tokens window size',
        isHarmless: true,
        load: async () => (await load()).context,
      },
      {
        slash: ['cost', 'Show tokens and cost of this session', 'model'],
        also: 'price money spend billing',
        isHarmless: true,
        load: async () => (await load()).cost,
      },
      {
        slash: ['budget [+usd, usd or off]', 'Set the cost limit of this session', 'model'],
        also: 'limit spending cost-limit',
        load: async () => (await load()).budget,
      },
      {
        slash: ['diff [--git]', 'Show file changes made in this session; --git: all uncommitted ones', 'files'],
        also: 'changes git',
        isHarmless: true,
        load: async () => (await load()).showChanges,
      },
      {
        slash: ['show|expand [number]', 'Show an event in full, or the last result', 'conversation'],
        also: 'output details view',
        isHarmless: true,
        load: async () => (await load()).showEvent,
      },
      {
        slash: ['copy [block]', 'Copy the last answer, or one of its code blocks', 'conversation'],
        also: 'clipboard yank',
        needsScreen: 'Without the screen, write the answer to a file with -o, or pipe it.',
        load: async () => (await load()).copyAnswer,
      },
      {
        slash: ['status', 'Show model, modes, folder, session, servers and limits', 'program'],
        also: 'info whoami about session',
        isHarmless: true,
        load: async () => (await load()).showStatus,
      },
      {
        slash: ['bg|detach', 'Let the terminal go; the session continues in the background', 'program'],
        also: 'background leave disconnect',
        needsScreen: 'Start with agent --bg "the prompt".',
        isHarmless: true,
        beside: true,
        load: async () => (await load()).leaveTerminal,
      },
      {
        slash: ['theme [name]', 'Change the colors; --session for this session only', 'program'],
        also: 'colors colours dark light appearance',
        needsScreen: 'Use agent config set ui.theme light.',
        load: async () => (await load()).chooseTheme,
      },
      {
        slash: [
          'approval|approvals [always|mutating|dangerous|never]',
          'Set the approval mode; --keep saves it',
          'tools',
        ],
        also: 'yolo auto mode permission-mode sandbox-mode',
        load: async () => (await load()).approvalMode,
      },
      {
        slash: ['add-dir [dir]', 'Work in a further directory; dir:ro is only read', 'tools'],
        also: 'directory workspace folder add directories include',
        load: async () => (await load()).addDirectory,
      },
      {
        slash: ['permissions [add, edit or rm]', 'List and change permission rules', 'tools'],
        also: 'allow deny rules allowed-tools trust',
        load: async () => (await load()).permissions,
      },
    ],
  },
];

import type { Section } from '../kernel/console/command.js';

/** Commands of what the program works with: tools, servers, models, settings. */
export const settings: readonly Section[] = [
  {
    heading: 'Tools, models and settings:',
    entries: [
      {
        line: ['tools', 'List, show, call and check tools; add and remove custom tools'],
        slash: ['tools [+set, -tool or add path]', 'List tools, switch them on and off, or add custom tools'],
        load: async () => (await import('./use-tools.js')).tools,
      },
      {
        line: ['tools list', 'List tools'],
        load: async () => (await import('./use-tools.js')).listTools,
      },
      {
        line: ['tools show <name>', "Show a tool's description and schema"],
        load: async () => (await import('./use-tools.js')).showTool,
      },
      {
        line: ['tools call <name> [json]', 'Run one tool and print its result'],
        load: async () => (await import('./use-tools.js')).callTool,
      },
      {
        line: ['tools check <name> [json]', 'Show how the policy judges a call, without running it'],
        load: async () => (await import('./use-tools.js')).checkTool,
      },
      {
        line: ['acp', 'Serve an editor over standard input and output (Agent Client Protocol)'],
        load: async () => (await import('./serve-programs.js')).serveEditor,
      },
      {
        line: ['schema', 'Print the JSON Schema of every stream-json line'],
        load: async () => (await import('./serve-programs.js')).showSchema,
      },
      {
        line: ['config', 'Show, set and check the configuration; manage trust in projects'],
        slash: ['config', 'Show every setting and its source'],
        load: async () => (await import('./configure.js')).config,
      },
      {
        line: ['config path', 'Print the paths of all files'],
        load: async () => (await import('./configure.js')).configPath,
      },
      {
        line: ['config show', 'Show every setting and its source'],
        load: async () => (await import('./configure.js')).configShow,
      },
      {
        line: ['config get <key>', 'Print one setting'],
        load: async () => (await import('./configure.js')).configGet,
      },
      {
        line: ['config set <key> <value>', "Change a setting in the user's file, keeping comments"],
        load: async () => (await import('./configure.js')).configSet,
      },
      {
        line: ['config check', 'Check every configuration file'],
        load: async () => (await import('./configure.js')).configCheck,
      },
      {
        line: ['config trust', 'Review project settings that need your trust'],
        load: async () => (await import('./trust-project.js')).trustProject,
      },
      {
        line: ['login [provider]', 'Connect a provider: check and save a key, or sign in'],
        slash: ['login [provider]', 'Connect a provider: check and save a key, or sign in'],
        load: async () => (await import('./log-in.js')).login,
      },
      {
        line: ['logout [provider]', 'Delete the key of a provider'],
        slash: ['logout [provider]', 'Delete the key of a provider'],
        load: async () => (await import('./log-in.js')).logout,
      },
      {
        line: ['providers', 'List providers and whether their keys are set'],
        load: async () => (await import('./list-models.js')).listProviders,
      },
      {
        line: ['providers check <name>', 'Send a minimal request and report what works: auth, streaming, tools'],
        load: async () => (await import('./list-models.js')).checkProvider,
      },
      {
        line: ['models', 'List known models, including local servers'],
        load: async () => (await import('./list-models.js')).listModels,
      },
      {
        line: ['doctor', 'Check this machine and say how to fix problems'],
        slash: ['doctor', 'Check this machine: node, storage, keys, servers, sandbox'],
        load: async () => (await import('./doctor.js')).doctor,
      },
      {
        line: ['completion <shell>', 'Print a completion script for bash, zsh or fish'],
        load: async () => (await import('./complete-shell.js')).completeShell,
      },
    ],
  },
  {
    heading: 'About the program:',
    entries: [
      {
        line: ['help [command...]', 'Show help for a command'],
        slash: ['help|? [keys]', 'Show commands and keyboard shortcuts'],
        load: async () => (await import('./about.js')).showHelp,
      },
      {
        line: ['upgrade', 'Show how to upgrade; --yes runs it'],
        load: async () => (await import('./upgrade.js')).upgrade,
      },
      {
        line: ['version', 'Print the version'],
        load: async () => (await import('./about.js')).showVersion,
      },
      {
        slash: ['exit|quit|q', 'Quit'],
        leaves: true,
      },
    ],
  },
];

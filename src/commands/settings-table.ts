import type { Section } from '../kernel/console/command.js';

/** Commands of what the program works with: tools, servers, models, settings. */
export const settings: readonly Section[] = [
  {
    heading: 'Tools, models and settings:',
    entries: [
      {
        line: ['tools', 'list, show, call and check tools; add and remove your own'],
        slash: ['tools [+set, -tool or add path]', 'the tools the model has; switch some on and off, or add your own'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).tools,
      },
      {
        line: ['tools list', 'the catalogue'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).listTools,
      },
      {
        line: ['tools show <name>', 'its description and schema'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).showTool,
      },
      {
        line: ['tools call <name> [json]', 'run one tool through the whole path and print its envelope'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).callTool,
      },
      {
        line: ['tools check <name> [json]', 'what policy says of that call, without running it'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).checkTool,
      },
      {
        line: ['tools add <path>', 'allow tools of your own: the folder of a tool.json, or an .mjs file'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).addTools,
      },
      {
        line: ['tools remove <what>', 'take that back; by name, folder or file'],
        load: async () => (await import('../features/custom-tools/use-tools.js')).removeTools,
      },
      {
        line: ['acp', 'serve an editor over standard input and output (Agent Client Protocol)'],
        load: async () => (await import('./serve-programs.js')).serveEditor,
      },
      {
        line: ['schema', 'the JSON Schema of every line that --output-format stream-json prints'],
        load: async () => (await import('./serve-programs.js')).showSchema,
      },
      {
        line: ['config', "path, show, get, set and check the configuration, and trust in a project's"],
        slash: ['config', 'every setting and where it came from'],
        load: async () => (await import('./configure.js')).config,
      },
      {
        line: ['config path', 'where the files are'],
        load: async () => (await import('./configure.js')).configPath,
      },
      {
        line: ['config show', 'every value and where it came from'],
        load: async () => (await import('./configure.js')).configShow,
      },
      {
        line: ['config get <key>', 'one value'],
        load: async () => (await import('./configure.js')).configGet,
      },
      {
        line: ['config set <key> <value>', 'change the user file, comments kept'],
        load: async () => (await import('./configure.js')).configSet,
      },
      {
        line: ['config check', 'read every file and say what is wrong'],
        load: async () => (await import('./configure.js')).configCheck,
      },
      {
        line: ['config trust', "asks about a project's settings that need your trust"],
        load: async () => (await import('./trust-project.js')).trustProject,
      },
      {
        line: [
          'login [provider]',
          'connect a model: its key or a sign-in, checked and kept, and a model of the provider',
        ],
        slash: ['login [provider]', 'connect a model: a key or a sign-in, and a model of the provider'],
        load: async () => (await import('./log-in.js')).login,
      },
      {
        line: ['logout [provider]', 'forget the key of a provider'],
        slash: ['logout [provider]', 'forget the key of a provider'],
        load: async () => (await import('./log-in.js')).logout,
      },
      {
        line: ['providers', 'the providers known here and whether their keys are set; check one'],
        load: async () => (await import('./list-models.js')).listProviders,
      },
      {
        line: ['providers check <name>', 'send one minimal request and say what works: auth, streaming, tools'],
        load: async () => (await import('./list-models.js')).checkProvider,
      },
      {
        line: ['models', 'the models known here, local servers included'],
        load: async () => (await import('./list-models.js')).listModels,
      },
      {
        line: ['doctor', 'checks this machine and says what to do about what is missing'],
        slash: ['doctor', 'check this machine: node, storage, keys, servers, sandbox'],
        load: async () => (await import('./doctor.js')).doctor,
      },
      {
        line: ['completion <shell>', 'a completion script for bash, zsh or fish'],
        load: async () => (await import('./complete-shell.js')).completeShell,
      },
    ],
  },
  {
    heading: 'About the program:',
    entries: [
      {
        line: ['help [command...]', 'what a command does and takes'],
        slash: ['help|? [keys]', 'what one can type here'],
        load: async () => (await import('./about.js')).showHelp,
      },
      {
        line: ['upgrade', 'say how this was installed and what upgrades it; --yes runs that'],
        load: async () => (await import('./upgrade.js')).upgrade,
      },
      {
        line: ['version', 'print the version'],
        load: async () => (await import('./about.js')).showVersion,
      },
      {
        slash: ['exit|quit|q', 'leave'],
        leaves: true,
      },
    ],
  },
];

import type { Section } from '../kernel/console/command.js';

/** Loads the commands of this table. */
export const loadSettingsCommands = () => import('./settings-commands.js');

/** Commands of what the program works with: tools, servers, models, settings. */
export const settings: readonly Section[] = [
  {
    heading: 'Tools, models and settings:',
    entries: [
      {
        line: ['tools', 'List, show, call and check tools; add and remove custom tools'],
        slash: ['tools [+set, -tool or add path]', 'List tools, switch them on and off, or add custom tools', 'tools'],
        also: 'enable disable features',
        load: async () => (await loadSettingsCommands()).tools,
      },
      {
        line: ['tools list', 'List tools'],
        load: async () => (await loadSettingsCommands()).listTools,
      },
      {
        line: ['tools show <name>', "Show a tool's description and schema"],
        load: async () => (await loadSettingsCommands()).showTool,
      },
      {
        line: ['tools call <name> [json]', 'Run one tool and print its result'],
        load: async () => (await loadSettingsCommands()).callTool,
      },
      {
        line: ['tools check <name> [json]', 'Show how the policy judges a call, without running it'],
        load: async () => (await loadSettingsCommands()).checkTool,
      },
      {
        line: ['permissions', 'List permission rules and whether they have an effect'],
        load: async () => (await loadSettingsCommands()).listPermissions,
      },
      {
        line: ['permissions list', 'List permission rules, those of Claude Code among them'],
        load: async () => (await loadSettingsCommands()).listPermissions,
      },
      {
        line: ['permissions check', 'Check permission rules; exits with 2 if one has no effect'],
        load: async () => (await loadSettingsCommands()).checkPermissions,
      },
      {
        line: ['acp', 'Serve an editor over standard input and output (Agent Client Protocol)'],
        load: async () => (await loadSettingsCommands()).serveEditor,
      },
      {
        line: ['schema', 'Print the JSON Schema of every stream-json line'],
        load: async () => (await loadSettingsCommands()).showSchema,
      },
      {
        line: ['config', 'Show, set and check the configuration; manage trust in projects'],
        slash: ['config|settings [key, key=value or undo]', 'Show and change settings', 'program'],
        also: 'preferences options set',
        load: async () => (await loadSettingsCommands()).config,
      },
      {
        line: ['config path', 'Print the paths of all files'],
        load: async () => (await loadSettingsCommands()).configPath,
      },
      {
        line: ['config show', 'Show every setting and its source'],
        load: async () => (await loadSettingsCommands()).configShow,
      },
      {
        line: ['config get <key>', 'Print one setting'],
        load: async () => (await loadSettingsCommands()).configGet,
      },
      {
        line: ['config set <key> <value>', "Change a setting in the user's file, keeping comments"],
        load: async () => (await loadSettingsCommands()).configSet,
      },
      {
        line: ['config check', 'Check every configuration file'],
        load: async () => (await loadSettingsCommands()).configCheck,
      },
      {
        line: ['config trust', 'Review project settings that need your trust'],
        load: async () => (await loadSettingsCommands()).trustProject,
      },
      {
        line: ['import', 'Import servers, skills, commands, rules and conversations of other agents'],
        load: async () => (await loadSettingsCommands()).importFilesOfOthers,
      },
      {
        line: ['login [provider]', 'Connect a provider: check and save a key, or sign in'],
        slash: ['login [provider]', 'Connect a provider: check and save a key, or sign in', 'program'],
        also: 'auth key connect signin account setup',
        needsScreen: 'Use agent login.',
        load: async () => (await loadSettingsCommands()).login,
      },
      {
        line: ['logout [provider]', 'Delete the key of a provider'],
        slash: ['logout [provider]', 'Delete the key of a provider', 'program'],
        also: 'signout',
        load: async () => (await loadSettingsCommands()).logout,
      },
      {
        line: ['providers', 'List providers and whether their keys are set'],
        load: async () => (await loadSettingsCommands()).listProviders,
      },
      {
        line: ['providers check <name>', 'Send a minimal request and report what works: auth, streaming, tools'],
        load: async () => (await loadSettingsCommands()).checkProvider,
      },
      {
        line: ['models', 'List known models, including local servers'],
        load: async () => (await loadSettingsCommands()).listModels,
      },
      {
        line: ['doctor', 'Check this machine and say how to fix problems'],
        slash: ['doctor', 'Check this machine: node, storage, keys, servers, sandbox', 'program'],
        also: 'debug diagnose health check',
        isHarmless: true,
        load: async () => (await loadSettingsCommands()).doctor,
      },
      {
        line: ['completion <shell>', 'Print a completion script for bash, zsh or fish'],
        load: async () => (await loadSettingsCommands()).completeShell,
      },
    ],
  },
  {
    heading: 'About the program:',
    entries: [
      {
        line: ['help [command...]', 'Show help for a command'],
        slash: ['help|? [keys]', 'Show commands and keyboard shortcuts', 'program'],
        also: 'commands',
        isHarmless: true,
        load: async () => (await loadSettingsCommands()).showHelp,
      },
      {
        slash: ['keys', 'Show keyboard shortcuts', 'program'],
        also: 'keyboard shortcuts hotkeys bindings',
        isHarmless: true,
        load: async () => (await loadSettingsCommands()).showKeys,
      },
      {
        line: ['upgrade', 'Show how to upgrade; --yes runs it'],
        load: async () => (await loadSettingsCommands()).upgrade,
      },
      {
        line: ['version', 'Print the version'],
        load: async () => (await loadSettingsCommands()).showVersion,
      },
      {
        slash: ['exit|quit|q', 'Quit', 'program'],
        also: 'close bye',
        leaves: true,
      },
    ],
  },
];

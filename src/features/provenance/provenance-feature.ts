import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./provenance-code.js');

/** Finds the call, the command, the edit outside or the commit that wrote each line of a file. */
export const provenance: Feature = {
  name: 'provenance',
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['blame <file>', 'Show for each line of a file the prompt and the call that wrote it'],
          slash: ['blame <file[:lines]>', 'Show the prompt and the call that wrote each line of a file', 'files'],
          also: 'annotate provenance author origin',
          isHarmless: true,
          load: async () => (await load()).blame,
        },
        {
          line: ['why <file:line>', 'Show the prompt, the plan and the calls that led to a line'],
          load: async () => (await load()).why,
        },
        {
          line: ['trace', 'Export who wrote which lines as Agent Trace, and check it for commits'],
          load: async () => (await load()).trace,
        },
        {
          line: ['trace export', 'Print Agent Trace records of the calls of this project, or of commits'],
          load: async () => (await load()).exportTrace,
        },
        {
          line: ['trace check <A..B>', 'Count the added lines of commits that the log explains'],
          load: async () => (await load()).checkTrace,
        },
        {
          line: ['trace notes <A..B>', 'Write Agent Trace records of commits as git notes'],
          load: async () => (await load()).writeNotes,
        },
        {
          line: ['trace hook <install|remove>', 'Add Agent-Session to commit messages, or stop that'],
          load: async () => (await load()).traceHook,
        },
        {
          line: ['trace trailer <file> [source]', 'Add Agent-Session to a commit message; the hook runs this'],
          load: async () => (await load()).addTrailer,
        },
      ],
    },
  ],
};

import type { Toolset } from './tool.js';

/** The sets of built-in tools, in the order in which a model is shown them. The settings, the command line and the
 * system prompt know them from here; `tools/builtin.ts` makes their tools. */
export const toolsets = [
  { name: 'fs', on: true, about: 'Offer the file tools.' },
  { name: 'exec', on: true, about: 'Offer the tools that run commands.' },
] as const satisfies readonly Toolset[];

export type ToolsetName = (typeof toolsets)[number]['name'];

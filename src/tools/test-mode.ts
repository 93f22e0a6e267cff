import type { Effect, Tool } from '../core/tool.js';

const canned: Readonly<Record<Effect, boolean>> = { read: false, write: true, execute: true, network: true };

/** The tools of `--test`: those that write, execute or use the network keep their schema and answer canned output;
 * readers stay as they are.
 * Source: contracts 6. */
export function inTestMode(tools: readonly Tool[]): readonly Tool[] {
  return tools.map((tool) => (canned[tool.effect] ? cannedTool(tool) : tool));
}

function cannedTool(tool: Tool): Tool {
  const output = `[test mode] ${tool.name} not run`;
  return {
    ...tool,
    inert: true,
    run: () => Promise.resolve({ envelope: { output, test_mode: true }, summary: output }),
  };
}

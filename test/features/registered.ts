import type { Registry } from '../../src/kernel/core/tool.js';
import { inToolset } from '../../src/kernel/tools/builtin.js';
import type { DefinedTool } from '../../src/kernel/tools/define-tool.js';
import { createRegistry } from '../../src/kernel/tools/registry.js';

/** A catalogue of these tools alone. */
export function registryOf(tools: readonly DefinedTool[]): Registry {
  const registry = createRegistry({ maxOutputBytes: 1_048_576, now: () => 0 });
  const set = { name: 'tried', on: true, about: 'Tools under test.' };
  for (const tool of inToolset(set, tools)) registry.register(tool);
  return registry;
}

import type { BoundCall, Effect } from '../../../src/kernel/core/tool.js';

/** A call of a tool that is never run: policy sees its name, its effect and its arguments. */
export function toolCall(name: string, effect: Effect, args: Readonly<Record<string, unknown>>): BoundCall {
  return {
    args,
    limits: { timeoutMs: null, maxOutputBytes: 1024 },
    tool: {
      name,
      effect,
      toolset: { name: effect === 'execute' ? 'exec' : 'fs', on: true, about: '' },
      description: name,
      input_schema: { type: 'object' },
      describe: () => name,
      run: () => Promise.reject(new Error('policy runs nothing')),
    },
  };
}

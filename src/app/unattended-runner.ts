import type { RootOptions } from '../kernel/console/options.js';
import type { RunUnattended } from '../kernel/console/unattended.js';

/** Returns what runs messages unattended, with these options. */
export function unattendedRuns(options: RootOptions): RunUnattended {
  return async (request, atLeast) =>
    await (await import('./run-unattended.js')).runUnattended(options, request, atLeast);
}

/** Returns the options of a conversation that hold for unattended runs beside it: what holds calls back, and neither
 * approvals nor the model. A list of tools that
 * only adds some (`+web`) holds nothing back. */
export function unattendedOptions(options: RootOptions): RootOptions {
  const { safe, sandbox, test, ephemeral, debug, outputFormat, tools } = options;
  const isNarrower = tools === false || (typeof tools === 'string' && !tools.startsWith('+'));
  return {
    ...(isNarrower ? { tools } : {}),
    outputFormat,
    set: [],
    ...(safe ? { safe } : {}),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(test ? { test } : {}),
    ...(ephemeral ? { ephemeral } : {}),
    ...(debug ? { debug } : {}),
  };
}

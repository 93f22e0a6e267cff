import { dirname } from 'node:path';
import type { Policy } from '../core/policy.js';
import { createPathFacts } from './path-facts.js';
import type { Setup } from './setup.js';

/** The policy of this run. Its code is loaded with the first call it judges: an answer without tools needs none of it. */
export function openPolicy(setup: Setup): Policy {
  let ready: Promise<Policy> | null = null;
  return { assess: async (call, cwd) => await (await (ready ??= loadPolicy(setup))).assess(call, cwd) };
}

async function loadPolicy(setup: Setup): Promise<Policy> {
  const { createPolicy } = await import('../policy/policy.js');
  const { config, cwd, home } = setup;
  const { files } = config;
  const facts = createPathFacts({ home, workspace: cwd, ownPaths: [...new Set([dirname(files.config), files.data, dirname(files.log)])] });
  return createPolicy({ approval: config.policy.approval, sandbox: config.policy.sandbox, rules: config.policy.rules, fsDeny: config.fs.deny, facts });
}

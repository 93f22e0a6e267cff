import { dirname } from 'node:path';
import type { Policy } from '../core/policy.js';
import { createPolicy } from '../policy/policy.js';
import { createPathFacts } from './path-facts.js';
import type { Setup } from './setup.js';

/** The policy of this run. */
export function openPolicy(setup: Setup): Policy {
  const { config, cwd, home } = setup;
  const { files } = config;
  const facts = createPathFacts({ home, workspace: cwd, ownPaths: [...new Set([dirname(files.config), files.data, dirname(files.log)])] });
  return createPolicy({ approval: config.policy.approval, sandbox: config.policy.sandbox, rules: config.policy.rules, fsDeny: config.fs.deny, facts });
}

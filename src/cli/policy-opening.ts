import { dirname } from 'node:path';
import type { ApprovalMode, Policy } from '../core/policy.js';
import { createPathFacts } from './path-facts.js';
import type { Setup } from './setup.js';

/** A policy whose approval mode the person may change while the program runs. */
export interface SwitchablePolicy extends Policy { mode(): ApprovalMode; switchTo(mode: ApprovalMode): void }

/** The policy of this run. Its code is loaded with the first call it judges: an answer without tools needs none of it. */
export function openPolicy(setup: Setup): SwitchablePolicy {
  let mode = setup.config.policy.approval;
  let ready: Promise<Policy> | null = null;
  return {
    mode: () => mode,
    switchTo: (next) => {
      mode = next;
      ready = null;
    },
    assess: async (call, cwd) => await (await (ready ??= loadPolicy(setup, mode))).assess(call, cwd),
  };
}

async function loadPolicy(setup: Setup, approval: ApprovalMode): Promise<Policy> {
  const { createPolicy } = await import('../policy/policy.js');
  const { config, cwd, home } = setup;
  const { files } = config;
  const facts = createPathFacts({ home, workspace: cwd, ownPaths: [...new Set([dirname(files.config), files.data, dirname(files.log)])] });
  return createPolicy({ approval, sandbox: config.policy.sandbox, rules: config.policy.rules, fsDeny: config.fs.deny, facts });
}

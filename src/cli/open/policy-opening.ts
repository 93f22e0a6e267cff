import { dirname } from 'node:path';
import { loadOnce, type LoadedOnce } from '../../core/load-once.js';
import type { ApprovalMode, Policy, Verdict } from '../../core/policy.js';
import type { BoundCall } from '../../core/tool.js';
import type { PathFacts } from '../../policy/guarded-paths.js';
import { createPathFacts } from './path-facts.js';
import type { Setup } from '../setup.js';

/** A policy whose approval mode the person may change while the program runs. */
export interface SwitchablePolicy extends Policy {
  mode(): ApprovalMode;
  switchTo(mode: ApprovalMode): void;
}

/** The policy of this run. Its code is loaded with the first call it judges: an answer without tools needs none of
 * it. */
export function openPolicy(setup: Setup): SwitchablePolicy {
  let mode = setup.config.policy.approval;
  const loaded = (): LoadedOnce<Policy> => loadOnce(() => loadPolicy(setup, mode));
  let policy = loaded();
  return {
    mode: () => mode,
    switchTo: (next) => {
      mode = next;
      policy = loaded();
    },
    assess: async (call, cwd) => await (await policy.get()).assess(call, cwd),
  };
}

/** Notes for each call of a file tool where policy found its paths, so that the tool can refuse what was exchanged
 * meanwhile. Calls are judged one after the other. */
export function withLandings(facts: PathFacts, open: (facts: PathFacts) => Policy): Policy {
  let noted: string[] = [];
  let last: Promise<unknown> = Promise.resolve();
  const policy = open({
    ...facts,
    landing: async (path) => {
      const landed = await facts.landing(path);
      if (landed !== null) noted.push(landed);
      return landed;
    },
  });
  const judge = async (call: BoundCall, cwd: string): Promise<Verdict> => {
    noted = [];
    const verdict = await policy.assess(call, cwd);
    const { effect } = call.tool;
    return effect === 'read' || effect === 'write' ? { ...verdict, landings: noted } : verdict;
  };
  return {
    assess: (call, cwd) => {
      const judged = last.then(() => judge(call, cwd));
      last = judged.catch(() => undefined);
      return judged;
    },
  };
}

async function loadPolicy(setup: Setup, approval: ApprovalMode): Promise<Policy> {
  const { createPolicy } = await import('../../policy/assess.js');
  const { config, cwd, home } = setup;
  const { files } = config;
  const facts = createPathFacts({
    home,
    workspace: cwd,
    ownPaths: [...new Set([dirname(files.config), files.data, dirname(files.log), files.cache])],
  });
  return withLandings(facts, (noting) =>
    createPolicy({
      approval,
      sandbox: config.policy.sandbox,
      rules: config.policy.rules,
      fsDeny: config.fs.deny,
      facts: noting,
    }),
  );
}

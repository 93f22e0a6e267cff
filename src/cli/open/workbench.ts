import type { Store } from '../../core/store.js';
import type { Registry } from '../../core/tool.js';
import type { ProcessRunner } from '../../tools/process/runner.js';
import type { Notice } from '../setup.js';
import type { RootOptions } from '../options.js';
import { openPolicy, type SwitchablePolicy } from './policy-opening.js';
import { openSandbox } from './sandbox-opening.js';
import type { Setup } from '../setup.js';
import { createSpendLimit, type SpendLimit } from './spend-limit.js';
import { openStore } from './store-opening.js';
import { openToolbox } from './toolbox.js';

/** What all sessions of one run share. */
export interface Workbench {
  readonly setup: Setup;
  readonly options: RootOptions;
  readonly store: Store;
  readonly durable: boolean;
  readonly registry: Registry;
  readonly processes: ProcessRunner;
  readonly policy: SwitchablePolicy;
  readonly spend: SpendLimit;
  /** What there is to be said so far. */
  readonly notices: readonly Notice[];
  close(): Promise<void>;
}

export async function openWorkbench(setup: Setup, options: RootOptions): Promise<Workbench> {
  const confine = await openSandbox(setup);
  const [{ store, durable, notices }, { registry, processes }] = await Promise.all([
    openStore(setup, options.ephemeral === true),
    openToolbox(setup, options.tools, confine),
  ]);
  return {
    setup,
    options,
    store,
    durable,
    registry,
    processes,
    policy: openPolicy(setup),
    spend: createSpendLimit(setup),
    get notices() {
      return [...setup.notices, ...notices];
    },
    close: async () => {
      await processes.killBackground();
      await store.close();
    },
  };
}

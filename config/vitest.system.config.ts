import { defineConfig, mergeConfig } from 'vitest/config';
import unit from './vitest.config.js';

/** Tests that need PostgreSQL, or that wait for processes: what hangs, what is killed, what survives. */
export default mergeConfig(
  { ...unit, test: { ...unit.test, include: [] } },
  // They wait more than they work.
  defineConfig({ test: { include: ['test/**/*.system.ts'], isolate: true, maxWorkers: 3 } }),
);

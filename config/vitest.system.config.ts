import { defineConfig, mergeConfig } from 'vitest/config';
import unit from './vitest.config.js';

/** Tests that start processes and servers: the sandbox, rehearsals, PostgreSQL, whole runs of the program. */
export default mergeConfig(
  { ...unit, test: { ...unit.test, include: [] } },
  defineConfig({ test: { include: ['test/**/*.system.ts'], isolate: true } }),
);

import { defineConfig } from 'vitest/config';
import { secondTry } from './second-try.js';

/** Drives the built program; `npm run build` comes first (`npm ci` does it). */
export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  test: {
    include: ['test/e2e/**/*.e2e.ts'],
    testTimeout: 180_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    ...secondTry,
    globalSetup: ['test/e2e/build.ts'],
  },
});

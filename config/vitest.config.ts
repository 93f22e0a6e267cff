import { defineConfig } from 'vitest/config';
import { secondTry } from './second-try.js';

export default defineConfig({
  root: new URL('..', import.meta.url).pathname,
  // The screen is laid out by React as users have it: the other one takes a stack for each element.
  oxc: { jsx: { development: false } },
  test: {
    env: { NODE_ENV: 'production' },
    include: ['test/**/*.test.{ts,tsx}'],
    setupFiles: ['test/setup.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Tests share the modules of their worker: none may leave something behind in one.
    isolate: false,
    maxWorkers: 2,
    ...secondTry,
  },
});

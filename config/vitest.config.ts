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
    maxWorkers: 2,
    ...secondTry,
  },
});

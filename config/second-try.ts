import type { Reporter, TestCase } from 'vitest/node';

/** On CI, where a busy machine may be at fault, a test that fails has a second try. The log names who took it and what
 * was wrong at first. */
export const secondTry = {
  retry: process.env['CI'] === undefined ? 0 : 1,
  reporters: ['default', { onTestCaseResult: tellOfSecondTry } satisfies Reporter],
};

function tellOfSecondTry(test: TestCase): void {
  const { state, errors } = test.result();
  if (state !== 'passed' || (test.diagnostic()?.retryCount ?? 0) === 0) return;
  console.log(`second try: ${test.module.relativeModuleId} > ${test.fullName}`);
  for (const { message, stack } of errors ?? []) console.log(stack ?? message);
}

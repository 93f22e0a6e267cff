import type { Worker } from 'node:worker_threads';

/** Tests lines against an expression in a thread of its own, so that endless backtracking can be stopped. */
export interface RegexWorker {
  /** Returns the indexes of the lines that match, or null if the worker was ended. */
  matching(lines: readonly string[]): Promise<readonly number[] | null>;
  end(): void;
}

const source = `
const { parentPort, workerData } = require('node:worker_threads');
const expression = new RegExp(workerData.source, workerData.flags);
parentPort.on('message', (lines) => {
  const hits = [];
  for (let i = 0; i < lines.length; i++) if (expression.test(lines[i])) hits.push(i);
  parentPort.postMessage(hits);
});`;

export function createRegexWorker(expression: RegExp, signal: AbortSignal): RegexWorker {
  const worker: Worker = new (process.getBuiltinModule('node:worker_threads').Worker)(source, {
    eval: true,
    workerData: { source: expression.source, flags: expression.flags },
  });
  let answer: ((hits: readonly number[] | null) => void) | undefined;
  const settle = (hits: readonly number[] | null): void => {
    answer?.(hits);
    answer = undefined;
  };
  worker.on('message', (hits: readonly number[]) => {
    settle(hits);
  });
  worker.on('error', () => {
    settle(null);
  });
  worker.on('exit', () => {
    settle(null);
  });
  const end = (): void => {
    void worker.terminate();
  };
  signal.addEventListener('abort', end, { once: true });
  return {
    matching: (lines) =>
      new Promise((resolve) => {
        if (signal.aborted) {
          resolve(null);
          return;
        }
        answer = resolve;
        worker.postMessage(lines, []);
      }),
    end() {
      signal.removeEventListener('abort', end);
      end();
    },
  };
}

import { Worker } from 'node:worker_threads';
import type { Scaled, ToScale } from './keep-files.js';

/** Beside the chunks of the built program. */
const builtWorker = new URL('../scale-worker.js', import.meta.url);
const longestMs = 20_000;

/** Makes an image small and upright in a worker that is discarded afterwards. Returns null if it cannot be decoded, or
 * not in time. Never rejects. */
export function scalePicture(work: ToScale, program = builtWorker): Promise<Scaled | null> {
  return new Promise((resolve) => {
    const worker = new Worker(program, {
      workerData: work,
      env: { NODE_PATH: process.env['NODE_PATH'] },
      stdin: true,
      stdout: true,
      stderr: true,
    });
    const end = (result: Scaled | null): void => {
      clearTimeout(timer);
      void worker.terminate();
      resolve(result);
    };
    const timer = setTimeout(() => {
      end(null);
    }, longestMs);
    worker.once('message', end);
    const fail = (): void => {
      end(null);
    };
    worker.once('error', fail);
    worker.once('exit', fail);
  });
}

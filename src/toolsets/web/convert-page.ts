import { WebRefusal } from './guarded-request.js';
import type { PageText, TextFormat } from './page-text.js';

/** What is converted. */
export type PageWork =
  | { readonly kind: 'html'; readonly html: string; readonly base: string; readonly format: TextFormat }
  | { readonly kind: 'pdf'; readonly bytes: Uint8Array };

export interface WorkOptions {
  /** The program of the worker that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  readonly signal: AbortSignal;
}

/** The program of the worker, beside the chunks of the built program. */
const builtWorker = new URL('../page-worker.js', import.meta.url);

const inlineChars = 256 * 1024;
const maxMs = { html: 5_000, pdf: 20_000 };

/** Converts a page: a small one here, a large one and a PDF in a worker that is stopped when it takes too long. Throws
 * a `WebRefusal`. */
export async function convertPage(work: PageWork, options: WorkOptions): Promise<PageText> {
  if (work.kind === 'html' && work.html.length <= inlineChars) {
    const { pageText } = await import('./page-text.js');
    return pageText(work.html, work.base, work.format);
  }
  return await inWorker(work, options);
}

async function inWorker(work: PageWork, { worker: program = builtWorker, signal }: WorkOptions): Promise<PageText> {
  const { Worker } = await import('node:worker_threads');
  return await new Promise((resolve, reject) => {
    const worker = new Worker(program, {
      workerData: work,
      env: {},
      stdin: true,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
      void worker.terminate();
    };
    const fail = (message: string): void => {
      end();
      reject(new WebRefusal('execution_failed', message));
    };
    const what = work.kind === 'pdf' ? 'The PDF' : 'The page';
    const cancel = (): void => {
      fail(`${what} was not converted: the call was stopped.`);
    };
    const limitMs = maxMs[work.kind];
    const timer = setTimeout(() => {
      fail(`${what} could not be converted within ${limitMs / 1000} s.`);
    }, limitMs);
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    worker.once('message', (result: PageText | null) => {
      if (result === null) {
        fail(`${what} could not be read.`);
        return;
      }
      end();
      resolve(result);
    });
    worker.once('error', () => {
      fail(`${what} could not be read.`);
    });
    worker.once('exit', () => {
      fail(`${what} could not be read.`);
    });
  });
}

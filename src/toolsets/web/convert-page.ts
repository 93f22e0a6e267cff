import { WebRefusal } from './guarded-request.js';
import type { PageText, TextFormat } from './page-text.js';

/** What is converted. */
export type PageWork =
  | { readonly kind: 'html'; readonly html: string; readonly base: string; readonly format: TextFormat }
  | { readonly kind: 'pdf'; readonly bytes: Uint8Array };

/** Why a worker converted nothing, as a sentence. */
export interface Refused {
  readonly refused: string;
}

export interface WorkOptions {
  /** The most milliseconds for a PDF: 20,000 unless given. */
  readonly pdfMs?: number;
  /** The most megabytes that the worker may add to the process: 768 unless given. */
  readonly growthMb?: number;
  /** The program of the worker that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  readonly signal: AbortSignal;
}

/** The program of the worker, beside the chunks of the built program. */
const builtWorker = new URL('../page-worker.js', import.meta.url);

const inlineChars = 256 * 1024;
const htmlMs = 5_000;
const mostPdfMs = 20_000;
/** The limit of the worker counts objects alone; a decoded stream lies outside of them, so the memory of the process
 * without what the main thread holds is watched as well. One worker runs at a time, so what grows is its own. */
const mostHeapMb = 512;
const mostGrowthMb = 768;
const watchMs = 100;

/** Converts a page: a small one here, a large one and a PDF in a worker that is stopped when it takes too long. Throws
 * a `WebRefusal`. */
export async function convertPage(work: PageWork, options: WorkOptions): Promise<PageText> {
  if (work.kind === 'html' && work.html.length <= inlineChars) {
    const { pageText } = await import('./page-text.js');
    return pageText(work.html, work.base, work.format);
  }
  const turn = lastWork.then(async () => await inWorker(work, options));
  lastWork = turn.then(
    () => undefined,
    () => undefined,
  );
  return await turn;
}

let lastWork: Promise<void> = Promise.resolve();

/** Returns the memory of the process that is not the main thread's. */
function foreignBytes(): number {
  const { rss, heapTotal, external } = process.memoryUsage();
  return rss - heapTotal - external;
}

async function inWorker(
  work: PageWork,
  { worker: program = builtWorker, pdfMs = mostPdfMs, growthMb = mostGrowthMb, signal }: WorkOptions,
): Promise<PageText> {
  const { Worker } = await import('node:worker_threads');
  return await new Promise((resolve, reject) => {
    const worker = new Worker(program, {
      workerData: work,
      env: {},
      stdin: true,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: mostHeapMb },
    });
    const end = (): void => {
      clearTimeout(timer);
      clearInterval(watch);
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
    const limitMs = work.kind === 'pdf' ? pdfMs : htmlMs;
    const timer = setTimeout(() => {
      fail(`${what} could not be converted within ${limitMs / 1000} s.`);
    }, limitMs);
    const before = foreignBytes();
    const watch = setInterval(() => {
      if (foreignBytes() - before <= growthMb * 1024 * 1024) return;
      fail(`${what} was not converted: it needs more than ${growthMb} MB of memory.`);
    }, watchMs);
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    worker.once('message', (result: PageText | Refused | null) => {
      if (result === null || 'refused' in result) {
        fail(result?.refused ?? `${what} could not be read.`);
        return;
      }
      end();
      resolve(result);
    });
    worker.once('error', (error: unknown) => {
      const isFull = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      fail(
        isFull
          ? `${what} was not converted: it needs more than ${mostHeapMb} MB of memory.`
          : `${what} could not be read.`,
      );
    });
    worker.once('exit', () => {
      fail(`${what} could not be read.`);
    });
  });
}

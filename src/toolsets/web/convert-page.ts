import { fileURLToPath } from 'node:url';
import { deserialize, serialize } from 'node:v8';
import { runBounded } from '../../tools/process/bounded-program.js';
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
  /** The most megabytes that the program may take beyond an idle Node: 768 unless given. */
  readonly growthMb?: number;
  /** The program that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  readonly signal: AbortSignal;
}

/** That program, beside the chunks of the built one. */
const builtWorker = new URL('../page-worker.js', import.meta.url);

const inlineChars = 256 * 1024;
const htmlMs = 5_000;
const mostPdfMs = 20_000;
/** The limit of the heap counts objects alone; a decoded stream lies outside of them. */
const mostHeapMb = 512;
const mostGrowthMb = 768;
const mostOutputBytes = 64 * 1024 * 1024;

/** Converts a page: a small one here, a large one and a PDF in a process of its own, which is killed when it takes too
 * long or too much memory. One runs at a time. Throws a `WebRefusal`. */
export async function convertPage(work: PageWork, options: WorkOptions): Promise<PageText> {
  if (work.kind === 'html' && work.html.length <= inlineChars) {
    const { pageText } = await import('./page-text.js');
    return pageText(work.html, work.base, work.format);
  }
  const turn = lastWork.then(async () => await apart(work, options));
  lastWork = turn.then(
    () => undefined,
    () => undefined,
  );
  return await turn;
}

let lastWork: Promise<void> = Promise.resolve();

async function apart(
  work: PageWork,
  { worker = builtWorker, pdfMs = mostPdfMs, growthMb = mostGrowthMb, signal }: WorkOptions,
): Promise<PageText> {
  const what = work.kind === 'pdf' ? 'The PDF' : 'The page';
  const timeoutMs = work.kind === 'pdf' ? pdfMs : htmlMs;
  const end = await runBounded({
    program: fileURLToPath(worker),
    input: serialize(work),
    timeoutMs,
    maxHeapMb: mostHeapMb,
    maxGrowthMb: growthMb,
    maxOutputBytes: mostOutputBytes,
    signal,
  });
  const fail = (message: string): never => {
    throw new WebRefusal('execution_failed', message);
  };
  switch (end.ended) {
    case 'exit': {
      // The program is ours, and what it says of a page is text.
      const result = end.output.length === 0 ? null : (deserialize(end.output) as PageText | Refused | null);
      return result === null || 'refused' in result ? fail(result?.refused ?? `${what} could not be read.`) : result;
    }
    case 'memory':
      return fail(`${what} was not converted: it needs more than ${end.limitMb} MB of memory.`);
    case 'timeout':
      return fail(`${what} could not be converted within ${timeoutMs / 1000} s.`);
    case 'cancelled':
      return fail(`${what} was not converted: the call was stopped.`);
    case 'failed':
      return fail(`${what} could not be read.`);
    default:
      return end satisfies never;
  }
}

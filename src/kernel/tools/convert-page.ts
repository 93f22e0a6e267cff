import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { isRecord, parseJson } from '../core/json.js';
import { WebRefusal } from './web-refusal.js';
import type { PageText, TextFormat } from './page-text.js';
import { createProcessRunner } from './process/runner.js';

/** The page to convert. */
export type PageWork =
  | { readonly kind: 'html'; readonly html: string; readonly base: string; readonly format: TextFormat }
  | { readonly kind: 'pdf'; readonly bytes: Uint8Array };

/** The reason why a page was not converted, as a sentence. */
export interface Refused {
  readonly refused: string;
}

export interface WorkOptions {
  /** The most milliseconds for a PDF: 20,000 unless given. */
  readonly pdfMs?: number;
  /** The most megabytes that the conversion may take: 768 unless given. */
  readonly growthMb?: number;
  /** The program that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  readonly signal: AbortSignal;
}

/** The first line of what the program is given. The page follows. */
export interface WorkHead {
  readonly kind: PageWork['kind'];
  readonly base: string;
  readonly format: TextFormat;
  readonly limitMs: number;
  readonly growthMb: number;
}

/** The program, beside the chunks of the built program. */
const builtWorker = new URL('../page-worker.js', import.meta.url);

const inlineChars = 256 * 1024;
const htmlMs = 5_000;
const mostPdfMs = 20_000;
const mostGrowthMb = 768;
/** The program watches its own time. It is ended where it does not. */
const graceMs = 3_000;
const maxAnswerBytes = 64 * 1024 * 1024;

/** Converts a page: a small one here, a large one and a PDF in a process of its own, with limits on its time and memory.
 * One runs at a time. Throws a `WebRefusal`. */
export async function convertPage(work: PageWork, options: WorkOptions): Promise<PageText> {
  if (work.kind === 'html' && work.html.length <= inlineChars) {
    const { pageText } = await import('./page-text.js');
    return pageText(work.html, work.base, work.format);
  }
  const turn = lastWork.then(async () => await inProcess(work, options));
  lastWork = turn.then(
    () => undefined,
    () => undefined,
  );
  return await turn;
}

let lastWork: Promise<void> = Promise.resolve();

async function inProcess(
  work: PageWork,
  { worker: program = builtWorker, pdfMs = mostPdfMs, growthMb = mostGrowthMb, signal }: WorkOptions,
): Promise<PageText> {
  const what = work.kind === 'pdf' ? 'The PDF' : 'The page';
  const limitMs = work.kind === 'pdf' ? pdfMs : htmlMs;
  const page = work.kind === 'pdf' ? { base: '', format: 'text' as const } : { base: work.base, format: work.format };
  const head: WorkHead = { kind: work.kind, ...page, limitMs, growthMb };
  const body = work.kind === 'pdf' ? work.bytes : Buffer.from(work.html);
  const printed: Buffer[] = [];
  const result = await createProcessRunner({ marker: { name: 'AGENT_PAGE', value: randomUUID() } }).run({
    file: process.execPath,
    args: [fileURLToPath(program)],
    cwd: '/',
    env: {},
    sandbox: 'off',
    signal,
    timeoutMs: limitMs + graceMs,
    maxTotalBytes: maxAnswerBytes,
    input: Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), body]),
    onOutput: (chunk, stream) => {
      if (stream === 'stdout') printed.push(Buffer.from(chunk));
    },
  });
  if (result.ended === 'cancelled') throw refusal(`${what} was not converted: the call was stopped.`);
  if (result.ended === 'timeout') throw refusal(`${what} could not be converted within ${limitMs / 1000} s.`);
  const answer = answerOf(Buffer.concat(printed).toString());
  if (answer === null) throw refusal(`${what} could not be read.`);
  if ('refused' in answer) throw refusal(answer.refused);
  return answer;
}

function answerOf(text: string): PageText | Refused | null {
  try {
    const value = parseJson(text);
    if (!isRecord(value)) return null;
    const { refused, title, text: converted } = value;
    if (typeof refused === 'string') return { refused };
    return typeof converted === 'string' && typeof title === 'string' ? { text: converted, title } : null;
  } catch {
    return null;
  }
}

function refusal(message: string): WebRefusal {
  return new WebRefusal('execution_failed', message);
}

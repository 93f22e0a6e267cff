import { readFileSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { parseJson } from '../core/json.js';
import type { PageWork, Refused, WorkHead } from './convert-page.js';
import type { PageText } from './page-text.js';
import { pdfProblem } from './pdf-bounds.js';
import { pageText } from './page-text.js';

// A program of its own: it converts the page on descriptor 3 and prints the text as JSON, or null where it cannot. The
// conversion runs in a thread, so that the main thread can end the process when it takes too long or too much memory.

/** The limit of a thread counts objects alone; a decoded stream lies outside of them. */
const mostHeapMb = 512;
const watchMs = 50;

function serve(): void {
  const input = readFileSync(3);
  const end = input.indexOf('\n');
  const head = parseJson(input.toString('utf8', 0, end)) as WorkHead;
  const what = head.kind === 'pdf' ? 'The PDF' : 'The page';
  const answer = (result: PageText | Refused | null): void => {
    process.stdout.write(JSON.stringify(result), () => {
      process.exit();
    });
  };
  const tooLarge = (mb: number): void => {
    answer({ refused: `${what} was not converted: it needs more than ${mb} MB of memory.` });
  };
  const before = process.memoryUsage.rss();
  setInterval(() => {
    if (process.memoryUsage.rss() - before > head.growthMb * 1024 * 1024) tooLarge(head.growthMb);
  }, watchMs);
  setTimeout(() => {
    answer({ refused: `${what} could not be converted within ${head.limitMs / 1000} s.` });
  }, head.limitMs);
  const worker = new Worker(new URL(import.meta.url), {
    workerData: workOf(head, input.subarray(end + 1)),
    resourceLimits: { maxOldGenerationSizeMb: mostHeapMb },
  });
  worker.once('message', answer);
  worker.once('error', (error: unknown) => {
    const isFull = error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
    if (isFull) tooLarge(mostHeapMb);
    else answer(null);
  });
}

function workOf({ kind, base, format }: WorkHead, page: Buffer): PageWork {
  return kind === 'pdf' ? { kind, bytes: page } : { kind, html: page.toString('utf8'), base, format };
}

const maxChars = 2_000_000;

async function convert(work: PageWork): Promise<PageText | Refused> {
  if (work.kind === 'pdf') return await pdfText(work.bytes);
  return pageText(work.html, work.base, work.format);
}

const maxPages = 1000;

/** Reads a PDF page by page, each page object once, up to the most pages and characters; says what it left out. */
async function pdfText(bytes: Uint8Array): Promise<PageText | Refused> {
  const problem = pdfProblem(bytes);
  if (problem !== null) return { refused: `The PDF was not read: ${problem}.` };
  const { getDocumentProxy, getMeta } = await import('unpdf');
  const document = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  const { info } = await getMeta(document);
  const read = new Set<string>();
  const texts: string[] = [];
  let room = maxChars;
  let repeated = 0;
  let broken = 0;
  const last = Math.min(document.numPages, maxPages);
  for (let number = 1; number <= last && room > 0; number++) {
    try {
      const page = await document.getPage(number);
      const key = page.ref === null ? `page ${number}` : `${page.ref.num} ${page.ref.gen}`;
      if (read.has(key)) {
        repeated++;
        continue;
      }
      read.add(key);
      const text = await textOfPage(page, room);
      texts.push(text);
      room -= text.length;
      page.cleanup();
    } catch {
      broken++;
    }
  }
  const note = leftOut([
    [document.numPages > maxPages, `${document.numPages - maxPages} pages after page ${maxPages}`],
    [repeated > 0, `${repeated} pages that repeat an earlier one`],
    [broken > 0, `${broken} pages that are broken`],
    [room <= 0, `everything after ${maxChars} characters`],
  ]);
  const title: unknown = info['Title'];
  return { text: [...texts, ...note].join('\n\n'), title: typeof title === 'string' ? title.slice(0, 300) : '' };
}

function leftOut(parts: readonly (readonly [applies: boolean, what: string])[]): readonly string[] {
  const what = parts.filter(([applies]) => applies).map(([, text]) => text);
  return what.length === 0 ? [] : [`[Not in this text: ${what.join('; ')}]`];
}

interface TextPage {
  streamTextContent(): ReadableStream<{
    readonly items: readonly { readonly str?: string; readonly hasEOL?: boolean }[];
  }>;
}

/** Returns at most `most` characters of a page, and decodes little more. */
async function textOfPage(page: TextPage, most: number): Promise<string> {
  const reader = page.streamTextContent().getReader();
  let text = '';
  for (let part = await reader.read(); !part.done && text.length < most; part = await reader.read())
    for (const { str, hasEOL } of part.value.items)
      if (str !== undefined && text.length < most) text += hasEOL === true ? `${str}\n` : str;
  if (text.length >= most) await reader.cancel(new Error('enough'));
  return text.slice(0, most);
}

function convertHere(): void {
  convert(workerData as PageWork).then(
    (result) => {
      parentPort?.postMessage(result, []);
    },
    (error: unknown) => {
      const isLocked = error instanceof Error && error.name === 'PasswordException';
      parentPort?.postMessage(isLocked ? { refused: 'The PDF was not read: it needs a password.' } : null, []);
    },
  );
}

if (isMainThread) serve();
else convertHere();

import { parentPort, workerData } from 'node:worker_threads';
import type { PageWork } from './convert-page.js';
import type { PageText } from './page-text.js';

// A program of its own, run as a worker: it converts one page and answers with its text, or with null where it cannot.

const maxChars = 2_000_000;

async function convert(work: PageWork): Promise<PageText> {
  if (work.kind === 'pdf') return await pdfText(work.bytes);
  const { pageText } = await import('./page-text.js');
  return pageText(work.html, work.base, work.format);
}

/** Reads a PDF page by page, up to the most characters. */
async function pdfText(bytes: Uint8Array): Promise<PageText> {
  const { extractText, getDocumentProxy, getMeta } = await import('unpdf');
  const document = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  const { info } = await getMeta(document);
  const { text } = await extractText(document, { mergePages: false });
  const title: unknown = info['Title'];
  return { text: text.join('\n\n').slice(0, maxChars), title: typeof title === 'string' ? title.slice(0, 300) : '' };
}

convert(workerData as PageWork).then(
  (result) => {
    parentPort?.postMessage(result, []);
  },
  () => {
    parentPort?.postMessage(null, []);
  },
);

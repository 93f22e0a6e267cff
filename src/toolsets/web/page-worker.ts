import { deserialize, serialize } from 'node:v8';
import type { PageWork, Refused } from './convert-page.js';
import type { PageText } from './page-text.js';
import { pdfProblem } from './pdf-bounds.js';

// A program of its own: it reads one page from standard input, and prints its text, or null where it has none.

const maxChars = 2_000_000;

async function convert(work: PageWork): Promise<PageText | Refused> {
  if (work.kind === 'pdf') return await pdfText(work.bytes);
  const { pageText } = await import('./page-text.js');
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

async function readInput(): Promise<PageWork> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  // Our own process has written it.
  return deserialize(Buffer.concat(chunks)) as PageWork;
}

function answer(result: PageText | Refused | null): void {
  process.stdout.write(serialize(result), () => {
    process.exit(0);
  });
}

readInput()
  .then(convert)
  .then(answer, (error: unknown) => {
    const isLocked = error instanceof Error && error.name === 'PasswordException';
    answer(isLocked ? { refused: 'The PDF was not read: it needs a password.' } : null);
  });

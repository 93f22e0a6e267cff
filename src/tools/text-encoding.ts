/** How a text file is written: kept when it is written again. */
export interface TextForm { readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be'; readonly bom: boolean; readonly eol: '\n' | '\r\n' }

/** A text file's content without BOM, line ends as they are; `text` is null where the bytes are not valid in the encoding. */
export interface DecodedText { readonly text: string | null; readonly form: TextForm }

export const plainForm: TextForm = { encoding: 'utf-8', bom: false, eol: '\n' };

/** Which encoding a byte order mark names; without one it is UTF-8. */
export function sniffEncoding(start: Uint8Array): Pick<TextForm, 'encoding' | 'bom'> {
  if (start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf) return { encoding: 'utf-8', bom: true };
  if (start[0] === 0xff && start[1] === 0xfe) return { encoding: 'utf-16le', bom: true };
  if (start[0] === 0xfe && start[1] === 0xff) return { encoding: 'utf-16be', bom: true };
  return { encoding: 'utf-8', bom: false };
}

export function decodeText(bytes: Uint8Array): DecodedText {
  const { encoding, bom } = sniffEncoding(bytes);
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return { text, form: { encoding, bom, eol: dominantEol(text) } };
  } catch {
    return { text: null, form: { encoding, bom, eol: '\n' } };
  }
}

/** The bytes of a text whose line ends are already as they shall be. */
export function encodeText(text: string, form: TextForm): Buffer {
  const marked = form.bom && !text.startsWith('\uFEFF') ? `\uFEFF${text}` : text;
  if (form.encoding === 'utf-8') return Buffer.from(marked, 'utf8');
  const little = Buffer.from(marked, 'utf16le');
  return form.encoding === 'utf-16le' ? little : little.swap16();
}

export function withEol(text: string, eol: TextForm['eol']): string {
  const plain = withoutCarriageReturns(text);
  return eol === '\n' ? text : plain.replaceAll('\n', '\r\n');
}

export function withoutCarriageReturns(text: string): string {
  return text.includes('\r') ? text.replaceAll('\r\n', '\n') : text;
}

function dominantEol(text: string): TextForm['eol'] {
  let total = 0;
  let carriage = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) {
    total++;
    if (text.charCodeAt(at - 1) === 0x0d) carriage++;
  }
  return carriage * 2 > total ? '\r\n' : '\n';
}

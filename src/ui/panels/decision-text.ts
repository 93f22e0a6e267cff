import { escapeCode, hasUnseen } from '../../core/text.js';

const shortEscapes: Readonly<Record<number, string>> = {
  0x00: '\\0',
  0x07: '\\a',
  0x08: '\\b',
  0x09: '\\t',
  0x0a: '\\n',
  0x0d: '\\r',
  0x1b: '\\x1b',
};
const otherSpace = /[\p{Zs}]/u;

/** A text that a person decides by: no control, no attribute, nothing invisible or reordering passes; each is shown as
 * an ASCII escape, long runs of blanks are counted instead of shown, and host names in other scripts are named in
 * punycode. With `lines`, line breaks stay; else they are shown as `\n`. */
export function decisionText(text: string, options: { readonly lines: boolean }): string {
  let out = '';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (char === '\n' && options.lines) out += '\n';
    else if (char === ' ') out += ' ';
    else if (hasUnseen(char)) out += shortEscapes[code] ?? escapeCode(code);
    else if (otherSpace.test(char)) out += escapeCode(code);
    else out += char;
  }
  const shown = out
    .replace(/ {9,}/g, (run) => `⟨${run.length} spaces⟩`)
    .replace(/\n{4,}/g, (run) => `\n⟨${run.length - 1} empty lines⟩\n`);
  return nameHosts(shown);
}

function nameHosts(text: string): string {
  return text.replace(
    /\b[a-z][a-z0-9+.-]*:\/\/([^\s/"'`<>|;&()]+)[^\s"'`<>|;&()]*/gi,
    (whole: string, authority: string) => {
      if (/^[\x21-\x7e]*$/.test(authority)) return whole;
      const address = `http://${authority}`;
      return `${whole} ⟨${URL.canParse(address) ? new URL(address).hostname : 'not a host name'}⟩`;
    },
  );
}

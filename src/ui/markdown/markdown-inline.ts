import type { Token, Tokens } from 'marked';
import type { Paint } from '../theme.js';

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  apos: "'",
  nbsp: ' ',
};

/** Character references of HTML that models use; others stay as they are. */
function decode(text: string): string {
  return text.includes('&')
    ? text.replace(/&(amp|lt|gt|quot|#39|apos|nbsp);/g, (whole, name: string) => entities[name] ?? whole)
    : text;
}

/** Makes a text a link to an address. */
export type PaintLink = (address: string, text: string) => string;

/** Inline tokens as one text with attributes; line breaks stay. Addresses are always shown, nothing is fetched. */
export function renderInline(tokens: readonly Token[] | undefined, paint: Paint, link?: PaintLink): string {
  return (tokens ?? []).map((token) => renderToken(token, paint, link)).join('');
}

function renderToken(token: Token, paint: Paint, link: PaintLink | undefined): string {
  switch (token.type) {
    case 'strong':
      return styled('bold', token, paint, link);
    case 'em':
      return styled('italic', token, paint, link);
    case 'del':
      return styled('strike', token, paint, link);
    case 'codespan':
      return byLine(decode((token as Tokens.Codespan).text), (line) => paint('code', line));
    case 'br':
      return '\n';
    case 'link':
      return linkText(token as Tokens.Link, paint, link);
    case 'image':
      return `${(token as Tokens.Image).text} (${paint('link', (token as Tokens.Image).href)})`.trimStart();
    case 'checkbox':
      return (token as { readonly checked?: boolean }).checked ? '[x] ' : '[ ] ';
    case 'html':
      return token.raw;
    default: {
      const nested = (token as Tokens.Text).tokens;
      if (nested) return renderInline(nested, paint, link);
      return decode('text' in token && typeof token.text === 'string' ? token.text : token.raw);
    }
  }
}

type Styled = 'bold' | 'italic' | 'strike';

function styled(role: Styled, token: { readonly tokens?: Token[] }, paint: Paint, link: PaintLink | undefined): string {
  return byLine(renderInline(token.tokens, paint, link), (line) => paint(role, line));
}

function linkText(token: Tokens.Link, paint: Paint, link: PaintLink = (_address, text) => text): string {
  const address = token.href.replace(/^mailto:/, '');
  if (token.text === token.href || token.text === address) return link(token.href, paint('link', token.text));
  const text = byLine(renderInline(token.tokens, paint), (line) => link(token.href, line));
  return `${text} (${link(token.href, paint('link', token.href))})`;
}

function byLine(text: string, change: (line: string) => string): string {
  return text.split('\n').map(change).join('\n');
}

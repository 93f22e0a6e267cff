import type { Token, Tokens } from 'marked';
import type { Paint } from '../theme.js';

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", apos: "'", nbsp: ' ' };

/** Character references of HTML that models use; others stay as they are. */
function decode(text: string): string {
  return text.includes('&') ? text.replace(/&(amp|lt|gt|quot|#39|apos|nbsp);/g, (whole, name: string) => entities[name] ?? whole) : text;
}

/** Inline tokens as one text with attributes; line breaks stay. Addresses are always shown, nothing is fetched. */
export function renderInline(tokens: readonly Token[] | undefined, paint: Paint): string {
  return (tokens ?? []).map((token) => renderToken(token, paint)).join('');
}

function renderToken(token: Token, paint: Paint): string {
  switch (token.type) {
    case 'strong': return styled('bold', token, paint);
    case 'em': return styled('italic', token, paint);
    case 'del': return styled('strike', token, paint);
    case 'codespan': return byLine(decode((token as Tokens.Codespan).text), (line) => paint('code', line));
    case 'br': return '\n';
    case 'link': return link(token as Tokens.Link, paint);
    case 'image': return `${(token as Tokens.Image).text} (${paint('link', (token as Tokens.Image).href)})`.trimStart();
    case 'checkbox': return (token as { readonly checked?: boolean }).checked ? '[x] ' : '[ ] ';
    case 'html': return token.raw;
    default: {
      const nested = (token as Tokens.Text).tokens;
      return nested ? renderInline(nested, paint) : decode('text' in token && typeof token.text === 'string' ? token.text : token.raw);
    }
  }
}

function styled(role: 'bold' | 'italic' | 'strike', token: { readonly tokens?: Token[] }, paint: Paint): string {
  return byLine(renderInline(token.tokens, paint), (line) => paint(role, line));
}

function link(token: Tokens.Link, paint: Paint): string {
  const text = renderInline(token.tokens, paint);
  const address = token.href.replace(/^mailto:/, '');
  return token.text === token.href || token.text === address ? paint('link', token.text) : `${text} (${paint('link', token.href)})`;
}

function byLine(text: string, change: (line: string) => string): string {
  return text.split('\n').map(change).join('\n');
}

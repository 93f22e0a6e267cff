import { applySgr, linkOff, linkOn, type SgrState } from './sgr.js';

/** Hyperlinks on terminals that know them. Inside the program a link is an attribute like a colour, so that rows are
 * broken and compared with it; on its way to the terminal it becomes an OSC 8 sequence.
 * Source: "Hyperlinks (a.k.a. HTML-like anchors) in terminal emulators", Egmont Koblinger, OSC 8. */
export interface Links {
  /** Puts the link to `address` on a text without line breaks; the text alone where the address is none that may be
   * opened. */
  readonly paint: (address: string, text: string) => string;
  /** What is written to the terminal, links as it knows them. Texts come in the order in which they are written. */
  translate(text: string): string;
}

const mostAddress = 2_000;

export function createLinks(): Links {
  const numbers = new Map<string, number>();
  const addresses: string[] = [];
  const state: SgrState = new Map();
  const numberOf = (address: string): number => {
    const known = numbers.get(address);
    if (known !== undefined) return known;
    numbers.set(address, addresses.length);
    return addresses.push(address) - 1;
  };
  return {
    paint: (address, text) => {
      const safe = safeAddress(address);
      return safe === null || text === '' ? text : `\x1b[${linkOn};${numberOf(safe)}m${text}\x1b[${linkOff}m`;
    },
    translate: (text) =>
      text.replace(/\x1b\[([0-9;:]*)m/g, (whole, parameters: string) => {
        const before = state.get('link');
        applySgr(state, parameters);
        const after = state.get('link');
        const rest = withoutLink(parameters, whole);
        if (before === after) return rest;
        const number = after?.split(';')[1];
        return `${rest}\x1b]8;;${number === undefined ? '' : (addresses[Number(number)] ?? '')}\x1b\\`;
      }),
  };
}

function withoutLink(parameters: string, whole: string): string {
  if (!parameters.includes('888')) return whole;
  const rest = parameters.replace(/(?:^|;)(?:8888;\d+|8889)(?=;|$)/g, '').replace(/^;/, '');
  return rest === '' ? '' : `\x1b[${rest}m`;
}

/** An address in ASCII that a browser or a mail program opens; null for others. */
function safeAddress(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, href } = new URL(address);
  const opens = protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:';
  return opens && href.length <= mostAddress && /^[\x21-\x7e]+$/.test(href) ? href : null;
}

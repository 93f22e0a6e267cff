/** The SGR attributes that are on, each under the slot that its opposite clears. */
export type SgrState = Map<string, string>;

export const sgrReset = '\x1b[m';

/** Our own parameters, which no terminal has: the beginning of a link, followed by the number of its address, and its
 * end. */
const linkOn = '8888';
const linkOff = '8889';

const simpleSlots: Readonly<Record<string, string>> = {
  1: 'weight',
  2: 'dim',
  3: 'italic',
  4: 'underline',
  5: 'blink',
  6: 'blink',
  7: 'inverse',
  9: 'strike',
};
const clears: Readonly<Record<string, readonly string[]>> = {
  22: ['weight', 'dim'],
  23: ['italic'],
  24: ['underline'],
  25: ['blink'],
  27: ['inverse'],
  29: ['strike'],
  39: ['foreground'],
  49: ['background'],
};

/** Changes `state` by the parameters of one SGR sequence and ignores unknown ones. */
export function applySgr(state: SgrState, parameters: string): void {
  const codes = parameters === '' ? ['0'] : parameters.split(';');
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? '';
    if (code === linkOn) {
      state.set('link', codes.slice(i, i + 2).join(';'));
      i++;
    } else if (code === linkOff) state.delete('link');
    else if (code === '38' || code === '48') {
      const length = codes[i + 1] === '5' ? 3 : codes[i + 1] === '2' ? 5 : 1;
      state.set(code === '38' ? 'foreground' : 'background', codes.slice(i, i + length).join(';'));
      i += length - 1;
    } else applyCode(state, code);
  }
}

function applyCode(state: SgrState, code: string): void {
  const number = Number(code.split(':')[0]);
  if (code === '' || number === 0) {
    state.clear();
    return;
  }
  const slot = simpleSlots[number] ?? colorSlot(number);
  if (slot) state.set(slot, code);
  else for (const name of clears[number] ?? []) state.delete(name);
}

function colorSlot(number: number): string | undefined {
  if ((number >= 30 && number <= 38) || (number >= 90 && number <= 97)) return 'foreground';
  if ((number >= 40 && number <= 48) || (number >= 100 && number <= 107)) return 'background';
  return undefined;
}

/** Returns the sequence that switches on all of `state`; an empty text if that is nothing. */
export function openSgr(state: SgrState): string {
  return state.size === 0 ? '' : `\x1b[${[...state.values()].join(';')}m`;
}

export function withoutSgr(text: string): string {
  return text.replace(/\x1b\[[0-9;:]*m/g, '');
}

/** Splits a styled text into lines that do not depend on each other: attributes that are on at a line end begin again
 * in the next line. */
export function splitStyledLines(text: string): string[] {
  const lines = text.split('\n');
  if (!text.includes('\x1b')) return lines;
  const state: SgrState = new Map();
  return lines.map((line) => {
    const open = openSgr(state);
    for (const match of line.matchAll(/\x1b\[([0-9;:]*)m/g)) applySgr(state, match[1] ?? '');
    return open + line + (state.size > 0 ? sgrReset : '');
  });
}

/** Hyperlinks on terminals that know them. Inside the program a link is an attribute like a colour, so that rows are
 * broken and compared with it; the output contains an OSC 8 sequence instead. Source: "Hyperlinks (a.k.a. HTML-like
 * anchors) in terminal emulators", Egmont Koblinger, OSC 8. */
export interface Links {
  /** Links a text without line breaks to `address`. Returns the text alone if the address may not be opened. */
  readonly paint: (address: string, text: string) => string;
  /** Returns the output with links as the terminal knows them. Texts must come in the order of writing. */
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

/** Returns an address in ASCII that a browser or a mail program opens; null for others. */
function safeAddress(address: string): string | null {
  if (!URL.canParse(address)) return null;
  const { protocol, href } = new URL(address);
  const opens = protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:';
  return opens && href.length <= mostAddress && /^[\x21-\x7e]+$/.test(href) ? href : null;
}

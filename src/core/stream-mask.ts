/** A text that must not be shown, and what stands in its place. */
export interface HiddenText { readonly form: string; readonly mark: string }

/** Hides texts in one that comes in pieces, also where they lie across pieces: the end of a piece that may be the start of one waits for the next piece. */
export interface StreamMask {
  add(piece: string): string;
  /** What has waited: no more will come. */
  end(): string;
  /** Drops what has waited: what comes next does not follow it. */
  skip(): void;
  /** The characters of the longest hidden text. */
  readonly longest: number;
}

/** `hidden`: longest first, so that one that begins with another is replaced whole. */
export function createStreamMask(hidden: readonly HiddenText[]): StreamMask {
  /** By the low byte of a character: whether one of the texts may begin with it. */
  const firsts = new Uint8Array(256);
  for (const { form } of hidden) firsts[form.charCodeAt(0) & 0xff] = 1;
  let waiting = '';

  /** Takes `text` over up to where it has to wait. Nothing is allocated for a piece in which nothing begins. */
  const masked = (text: string, isLast: boolean): string => {
    let shown = '';
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      if (firsts[text.charCodeAt(at) & 0xff] === 0) continue;
      for (const { form, mark } of hidden) {
        const same = commonLength(text, at, form);
        if (same === form.length) {
          shown += text.slice(from, at) + mark;
          from = at + same;
          at = from - 1;
          break;
        }
        if (!isLast && at + same === text.length) {
          waiting = text.slice(at);
          return shown + text.slice(from, at);
        }
      }
    }
    return from === 0 ? text : shown + text.slice(from);
  };

  const release = (piece: string, isLast: boolean): string => {
    const text = waiting + piece;
    waiting = '';
    return text === '' ? '' : masked(text, isLast);
  };
  return {
    add: (piece) => release(piece, false),
    end: () => release('', true),
    skip() { waiting = ''; },
    longest: Math.max(0, ...hidden.map(({ form }) => form.length)),
  };
}

/** How many characters of `form` stand in `text` from `at` on. */
function commonLength(text: string, at: number, form: string): number {
  const most = Math.min(form.length, text.length - at);
  let same = 0;
  while (same < most && text.charCodeAt(at + same) === form.charCodeAt(same)) same++;
  return same;
}

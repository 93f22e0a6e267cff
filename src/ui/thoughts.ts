/** A model's reasoning as it streams, cut into paragraphs. */
export interface Thoughts {
  /** The paragraphs that `text` completes; empty where it completes none. */
  take(text: string): string;
  /** What is left, once something else comes. */
  end(): string;
}

export function createThoughts(): Thoughts {
  let pieces: string[] = [];
  return {
    take: (text) => {
      pieces.push(text);
      if (!text.includes('\n')) return '';
      const whole = pieces.join('');
      const at = whole.lastIndexOf('\n\n');
      pieces = [at < 0 ? whole : whole.slice(at + 2)];
      return at < 0 ? '' : whole.slice(0, at).trim();
    },
    end: () => {
      const rest = pieces.length === 0 ? '' : pieces.join('').trim();
      pieces = [];
      return rest;
    },
  };
}

/** A JSON value found in a text. */
export interface FoundJson {
  /** The value as JSON: the very characters where they were JSON already, else repaired. */
  readonly json: string;
  /** Where the value ends in the text. */
  readonly end: number;
}

const maxDepth = 64;
const literals: Readonly<Record<string, string>> = {
  true: 'true',
  false: 'false',
  null: 'null',
  True: 'true',
  False: 'false',
  None: 'null',
  undefined: 'null',
};
const quotes: Readonly<Record<string, string>> = { '"': '"', "'": "'", '`': '`', '“': '”', '‘': '’' };

/** The object or list that starts at `at`, read as models write it: comments, other quotes, names without quotes,
 * commas too many or forgotten at a line's end, Python's literals, line breaks in strings. Null where it is cut off, or
 * where one could only guess what was meant (an unescaped quote): a wrong guess would be run. */
export function findJson(text: string, at = 0): FoundJson | null {
  const reader = new Reader(text, at);
  const json = reader.value(0);
  if (json === null) return null;
  const exact = text.slice(at, reader.at);
  return { json: isJson(exact) ? exact : json, end: reader.at };
}

/** The members of an object that `findJson` found, each value as JSON. */
export function jsonMembers(json: string): ReadonlyMap<string, string> {
  const reader = new Reader(json, 0);
  const members = new Map<string, string>();
  reader.object(0, (key, value) => {
    members.set(key, value);
  });
  return members;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

class Reader {
  at: number;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** The value at `at` as JSON, or null. */
  value(depth: number): string | null {
    this.#blank();
    const first = this.#text[this.at] ?? '';
    if (depth > maxDepth || first === '') return null;
    if (first === '{') return this.object(depth, () => undefined);
    if (first === '[') return this.#list(depth);
    if (Object.hasOwn(quotes, first)) return this.#string(first);
    return this.#word();
  }

  object(depth: number, onMember: (key: string, json: string) => void): string | null {
    const members: string[] = [];
    const whole = this.#sequence('}', () => {
      const key = this.#key();
      if (key === null) return false;
      this.#blank();
      if (this.#text[this.at] !== ':') return false;
      this.at++;
      this.#blank();
      const start = this.at;
      const value = this.value(depth + 1);
      if (value === null) return false;
      const exact = this.#text.slice(start, this.at);
      onMember(JSON.parse(key) as string, isJson(exact) ? exact : value);
      members.push(`${key}:${value}`);
      return true;
    });
    return whole ? `{${members.join(',')}}` : null;
  }

  #list(depth: number): string | null {
    const items: string[] = [];
    const whole = this.#sequence(']', () => {
      const item = this.value(depth + 1);
      if (item === null) return false;
      items.push(item);
      return true;
    });
    return whole ? `[${items.join(',')}]` : null;
  }

  /** Members up to `close`; true where it was reached. Between two members there is a comma or at least a line's
   * end. */
  #sequence(close: string, member: () => boolean): boolean {
    this.at++;
    for (let parted = true; ;) {
      const lineEnded = this.#blank();
      const next = this.#text[this.at];
      if (next === undefined) return false;
      if (next === close) {
        this.at++;
        return true;
      }
      if (next === ',') {
        this.at++;
        parted = true;
        continue;
      }
      if (!parted && !lineEnded) return false;
      if (!member()) return false;
      parted = false;
    }
  }

  #key(): string | null {
    const first = this.#text[this.at] ?? '';
    if (Object.hasOwn(quotes, first)) return this.#string(first);
    const name = this.#match(/[\w$-]+/y);
    return name === null ? null : JSON.stringify(name);
  }

  #word(): string | null {
    const number = this.#match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y);
    if (number !== null) return number;
    const word = this.#match(/[A-Za-z]+(?![\w.+-])/y);
    return word !== null && Object.hasOwn(literals, word) ? (literals[word] ?? null) : null;
  }

  #string(open: string): string | null {
    const close = quotes[open] ?? open;
    let json = '"';
    for (this.at++; ;) {
      const character = this.#text[this.at];
      if (character === undefined) return null;
      if (character === '\\') {
        json += this.#escape();
        continue;
      }
      this.at++;
      if (character === close) break;
      json += character === '"' || character < ' ' ? JSON.stringify(character).slice(1, -1) : character;
    }
    return this.#follows() ? `${json}"` : null;
  }

  /** An escape that JSON does not know (`\d`) stands for its own characters. */
  #escape(): string {
    const known = this.#match(/\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])/y);
    if (known !== null) return known;
    const next = this.#text[this.at + 1];
    if (next === '\n' || next === "'" || next === '`') {
      this.at += 2;
      return next === '\n' ? '\\n' : next;
    }
    this.at++;
    return '\\\\';
  }

  /** True where what comes after a string may come there; anything else says that a quote inside it was not escaped. */
  #follows(): boolean {
    const before = this.at;
    const lineEnded = this.#blank();
    const next = this.#text[this.at];
    this.at = before;
    return next === undefined || lineEnded || ',:}]'.includes(next);
  }

  /** Passes blanks, comments and line breaks written as `\n`. True where a line ended. */
  #blank(): boolean {
    const passed = this.#match(/(?:[\s\ufeff]|\/\*[\s\S]*?\*\/|\/\/[^\n]*|\\[nrt])+/y);
    return passed?.includes('\n') === true;
  }

  #match(expression: RegExp): string | null {
    expression.lastIndex = this.at;
    const found = expression.exec(this.#text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    return found;
  }
}

type Pairs = Iterable<readonly [string, string]>;
type Given = Pairs | Readonly<Record<string, string>> | null | undefined;

/** The part of the fetch standard's `Headers` that the SDKs use. The build gives it to them in place of Node's own,
 * which comes with all of its fetch: 10 ms at the first request of every run. Names are kept in lower case, values of
 * one name joined with ", ". */
export class Headers {
  readonly #values = new Map<string, string>();

  constructor(given?: Given) {
    for (const [name, value] of pairs(given)) this.append(name, value);
  }

  append(name: string, value: string): void {
    const earlier = this.get(name);
    this.set(name, earlier === null ? value : `${earlier}, ${value.trim()}`);
  }

  /** Throws a TypeError for what HTTP does not allow in a name or a value. */
  set(name: string, value: string): void {
    const text = value.trim();
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError(`\`${name}\` is not a header name`);
    // oxlint-disable-next-line no-control-regex -- exactly what a value must not hold
    if (/[\0\r\n]|[^\0-\xff]/.test(text))
      throw new TypeError(`the value of the header ${name} holds a character that HTTP does not allow`);
    this.#values.set(name.toLowerCase(), text);
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }
  has(name: string): boolean {
    return this.#values.has(name.toLowerCase());
  }
  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }
  entries(): IterableIterator<[string, string]> {
    return this.#values.entries();
  }
  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }
}

/** An empty answer, for an SDK that judges nothing but its status. Source: `createSdkFetch`. */
export class Response {
  readonly status = 200;
  readonly ok = true;
  readonly body = null;
  readonly headers = new Headers();
}

function pairs(given: Given): Pairs {
  if (given === null || given === undefined) return [];
  return Symbol.iterator in given ? given : Object.entries(given);
}

/** Names a part that a feature adds to a run, such as its servers or what fires its tasks. */
export class PartKey<T> {
  readonly name: string;
  /** Only for the type checker. */
  declare readonly type: T;

  constructor(name: string) {
    this.name = name;
  }
}

/** The parts that features have added to a run. */
export class Parts {
  readonly #parts = new Map<PartKey<unknown>, unknown>();

  add<T>(key: PartKey<T>, part: T): this {
    this.#parts.set(key, part);
    return this;
  }

  /** Returns null where the feature added nothing. */
  find<T>(key: PartKey<T>): T | null {
    return this.#parts.has(key) ? (this.#parts.get(key) as T) : null;
  }

  /** Throws where the feature added nothing. */
  get<T>(key: PartKey<T>): T {
    if (!this.#parts.has(key)) throw new Error(`no part of this run is called ${key.name}`);
    return this.#parts.get(key) as T;
  }
}

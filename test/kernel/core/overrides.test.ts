import { expect, test } from 'vitest';
import { withOverrides } from '../../../src/kernel/core/overrides.js';

class Counter {
  #count = 0;
  readonly name = 'counter';
  add(): number {
    return ++this.#count;
  }
  count = (): number => this.#count;
  label(): string {
    return `${this.name} ${this.#count}`;
  }
}

test('an object with overrides keeps methods of its class, private fields and fields, and shares their state', () => {
  const counter = new Counter();
  const changed = withOverrides(counter, { label: () => 'another' });
  expect([changed.add(), changed.count(), changed.label(), changed.name]).toEqual([1, 1, 'another', 'counter']);
  expect(counter.label()).toBe('counter 1');
});

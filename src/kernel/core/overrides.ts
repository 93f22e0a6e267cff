/** Returns an object that answers as `base` does, but for `changes`. Unlike a spread it keeps methods of classes. */
export function withOverrides<T extends object>(base: T, changes: Partial<T>): T {
  return new Proxy(base, {
    get: (target, key): unknown => {
      if (Object.hasOwn(changes, key)) return Reflect.get(changes, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

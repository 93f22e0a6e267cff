export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Message = Readonly<Record<string, Json>>;

export type Path = readonly (string | number)[];

/** Every place in a JSON value, the whole of it last. */
export function placesOf(value: Json): readonly Path[] {
  const inner = Array.isArray(value)
    ? (value as readonly Json[]).map((item, index) => [index, item] as const)
    : typeof value === 'object' && value !== null
      ? Object.entries(value as Message)
      : [];
  return [...inner.flatMap(([key, item]) => placesOf(item).map((path) => [key, ...path])), []];
}

export function at(value: Json, path: Path): Json {
  const [key, ...rest] = path;
  return key === undefined ? value : at((value as Readonly<Record<string, Json>>)[key] ?? null, rest);
}

/** Returns the value with another one at a place; `undefined` takes it out. */
export function replaced(value: Json, path: Path, by: Json | undefined): Json | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return by;
  const inner = replaced(at(value, [key]), rest, by);
  if (Array.isArray(value))
    return (value as readonly Json[]).flatMap((item, index) =>
      index !== key ? [item] : inner === undefined ? [] : [inner],
    );
  const entries = Object.entries(value as Message).flatMap(([name, item]): (readonly [string, Json])[] =>
    name !== key ? [[name, item]] : inner === undefined ? [] : [[name, inner]],
  );
  return Object.fromEntries(entries);
}

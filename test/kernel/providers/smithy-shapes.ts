import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A folder with AWS's own client (`npm install @aws-sdk/client-bedrock-runtime` there): its shapes judge what we send,
 * and it reads what our double answers. */
const folder = process.env['AGENT_VENDOR_PACKAGES'] ?? '../shared/vendors';
const name = '@aws-sdk/client-bedrock-runtime';

export const hasShapes = existsSync(join(folder, 'node_modules', name));

/** The client, or null where it is not installed. */
export async function bedrockClient(): Promise<Readonly<Record<string, unknown>> | null> {
  if (!hasShapes) return null;
  const { resolve: find } = createRequire(resolve(folder, 'package.json'));
  const load = async (one: string): Promise<object> => (await import(pathToFileURL(find(one)).href)) as object;
  // Our double speaks HTTP/1.1 alone.
  return { ...(await load(name)), ...(await load('@smithy/node-http-handler')) };
}

/** A shape as the client has it: a number for a simple one, `[shape, traits]`, a function that returns it, or
 * `[kind, namespace, name, traits, …]` with kind 1 for a list, 2 for a map, 3 for a structure, 4 for a union. */
type Shape = number | string | readonly unknown[] | (() => Shape);

const simple: Readonly<Record<number, (value: unknown) => boolean>> = {
  0: (value) => typeof value === 'string',
  1: (value) => typeof value === 'number',
  2: (value) => typeof value === 'boolean',
  15: () => true,
  21: (value) => value instanceof Uint8Array || typeof value === 'string',
};

/** Says what is wrong with `value` as this shape, with its path; an empty list where nothing is. */
export function shapeErrors(value: unknown, shape: Shape, path = ''): readonly string[] {
  if (typeof shape === 'function') return shapeErrors(value, shape(), path);
  if (typeof shape === 'number') {
    if (shape >= 64 && shape < 128) return listErrors(value, shape - 64, path);
    return (simple[shape]?.(value) ?? true) ? [] : [`${path}: not of the simple type ${shape}`];
  }
  if (!Array.isArray(shape)) return [];
  const [kind] = shape as readonly unknown[];
  if (typeof kind !== 'number' || shape.length < 4) return shapeErrors(value, kind as Shape, path);
  if (kind === 1) return listErrors(value, shape[4] as Shape, path);
  if (kind === 3 || kind === 4) return structureErrors(value, shape as readonly unknown[], path);
  return kind === 2 && (typeof value !== 'object' || value === null) ? [`${path}: not a map`] : [];
}

function listErrors(value: unknown, item: Shape, path: string): readonly string[] {
  if (!Array.isArray(value)) return [`${path}: not a list`];
  return value.flatMap((one, index) => shapeErrors(one, item, `${path}[${index}]`));
}

function structureErrors(value: unknown, shape: readonly unknown[], path: string): readonly string[] {
  const [kind, , title, , names, members, required] = shape as readonly [
    ...[number, string, string, unknown],
    ...[readonly string[], readonly Shape[], number | undefined],
  ];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${path}: not a ${title}`];
  const given = Object.keys(value);
  const missing = names.slice(0, required ?? 0).filter((one) => !given.includes(one));
  return [
    ...(kind === 4 && given.length !== 1 ? [`${path}: ${title} takes exactly one member, not ${given.join()}`] : []),
    ...missing.map((one) => `${path}: ${title} has no ${one}`),
    ...Object.entries(value).flatMap(([one, inner]) => {
      const index = names.indexOf(one);
      return index < 0
        ? [`${path}: ${title} knows no ${one}`]
        : shapeErrors(inner, members[index] ?? 15, `${path}.${one}`);
    }),
  ];
}

import { isRecord } from '../core/json.js';
import { readBounded } from '../disk/bounded-file.js';
import type { KeyPath } from './schema.js';

/** A place in a file, both counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export type FileText =
  | { readonly kind: 'missing' }
  | { readonly kind: 'text'; readonly text: string }
  /** `reason` is a clause: `it is not a regular file`. */
  | { readonly kind: 'unreadable'; readonly reason: string };

export type Parsed =
  | { readonly kind: 'object'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: 'broken'; readonly reason: string; readonly position: Position };

const maxBytes = 1_048_576;

/** Reads a settings file without ever waiting for it: pipes, devices and files over 1 MiB are refused. */
export function readConfigFile(path: string): FileText {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  switch (found.kind) {
    case 'missing':
      return { kind: 'missing' };
    case 'refused':
      return { kind: 'unreadable', reason: found.reason };
    case 'read':
      return { kind: 'text', text: found.bytes.toString('utf8').replace(/^\uFEFF/, '') };
    default:
      return found satisfies never;
  }
}

/** Reads JSON with comments and trailing commas. The parser for these is loaded only where plain JSON does not do; an
 * empty text is `{}`. */
export async function parseConfigText(text: string): Promise<Parsed> {
  if (text.trim() === '') return { kind: 'object', value: {} };
  const plain = plainJson(text);
  if (plain !== undefined) return asObject(plain, text);
  const { parse, printParseErrorCode } = await import('jsonc-parser');
  const errors: { error: number; offset: number; length: number }[] = [];
  let value: unknown;
  try {
    value = parse(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: 'broken', reason: 'it is nested too deeply', position: { line: 1, column: 1 } };
  }
  const first = errors[0];
  if (first)
    return {
      kind: 'broken',
      reason: sentence(printParseErrorCode(first.error)),
      position: positionAt(text, first.offset),
    };
  return asObject(value ?? {}, text);
}

/** Where `path` stands in `text`: its key (`at` "key") or its value. Line 1 where it is not there. */
export async function positionOf(text: string, path: KeyPath, at: 'key' | 'value'): Promise<Position> {
  const { findNodeAtLocation, parseTree } = await import('jsonc-parser');
  const root = parseTree(text, [], { allowTrailingComma: true });
  const node = root && findNodeAtLocation(root, [...path]);
  const key = at === 'key' && node?.parent?.type === 'property' ? node.parent.children?.[0] : node;
  return positionAt(text, key?.offset ?? 0);
}

function plainJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function asObject(value: unknown, text: string): Parsed {
  if (isRecord(value)) return { kind: 'object', value };
  return { kind: 'broken', reason: 'it must hold one object: { … }', position: positionAt(text, text.search(/\S/)) };
}

function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

/** `CommaExpected` as `comma expected`. */
function sentence(code: string): string {
  return code.replace(/(?!^)([A-Z])/g, ' $1').toLowerCase();
}

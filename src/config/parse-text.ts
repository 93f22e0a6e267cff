import { checkValue, expected } from './check.js';
import type { Key } from './key.js';
import { maskText } from './mask.js';

export type ParsedText =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: string };

const truths = new Map([
  ['true', true],
  ['1', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['0', false],
  ['no', false],
  ['off', false],
]);

/** The value a text of the environment or of `--set` stands for, by what the key takes; lists and objects are JSON.
 * `reason` follows the name of the key or variable in a sentence. */
export function parseText(text: string, key: Key): ParsedText {
  const value = typed(text, key);
  if (value === undefined)
    return {
      ok: false,
      reason: `must be ${expected(key.node)}${isStructure(key) ? ' in JSON' : ''}, not ${maskText(JSON.stringify(text.slice(0, 60)))}`,
    };
  const issue = checkValue(value, key.node, key.path)[0];
  if (!issue) return { ok: true, value };
  const inside = issue.path.slice(key.path.length).join('.');
  return {
    ok: false,
    reason:
      inside === ''
        ? issue.reason
        : `: ${inside} ${issue.reason}${issue.nearest === null ? '' : ` (did you mean "${issue.nearest}"?)`}`,
  };
}

function typed(text: string, key: Key): unknown {
  switch (key.node.type) {
    case 'integer':
    case 'number':
      return /^-?\d+(?:\.\d+)?$/.test(text.trim()) ? Number(text) : undefined;
    case 'boolean':
      return truths.get(text.trim().toLowerCase());
    case 'array':
    case 'object':
      return json(text);
    default:
      return text;
  }
}

function isStructure(key: Key): boolean {
  return key.node.type === 'array' || key.node.type === 'object';
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { JsonSchema } from '../../../../src/kernel/core/json.js';
import { createTextScanner } from '../../../../src/kernel/providers/text/call-scanner.js';
import { findJson } from '../../../../src/kernel/providers/text/found-calls.js';

const folder = pathToFileURL('../shared/fixtures/parsers/');
const has = existsSync(folder);
const known = { jsonrepair: 137, 'llamacpp-chat': 119, ollama: 54, seed002: 6, vllm: 8, 'wild-args': 11 } as const;

interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}
interface Row {
  readonly name: string;
  readonly input: string;
  readonly calls: readonly Call[];
  readonly format: string;
}

interface RawRow {
  readonly id?: string;
  readonly line?: number;
  readonly name?: string;
  readonly template?: string;
  readonly format?: string;
  readonly partial?: boolean;
  readonly input?: string;
  readonly inputs?: readonly string[];
  readonly expect: { readonly calls: readonly { name: string; arguments: unknown }[] };
}

function cases(name: keyof typeof known): readonly unknown[] {
  if (!has) {
    console.log(`${name}: ${known[name]} rows skipped, the fixtures are not beside the repository`);
    return [];
  }
  return (JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as { cases: readonly unknown[] }).cases;
}

function plain(args: unknown): Readonly<Record<string, unknown>> {
  const value =
    typeof args === 'string'
      ? (JSON.parse(args === '' ? '{}' : args) as Readonly<Record<string, unknown>>)
      : (args as Readonly<Record<string, unknown>>);
  return '@call' in value ? {} : value;
}

function rows(name: 'llamacpp-chat' | 'ollama' | 'seed002' | 'vllm'): readonly Row[] {
  return (cases(name) as readonly RawRow[]).map((row) => {
    const expected = row.expect.calls;
    return {
      name: `${name} ${String(row.id ?? row.line ?? row.name)}`,
      input: row.input ?? row.inputs?.join('') ?? '',
      // A row that is still being written has a call without arguments.
      calls:
        row.partial === true ? [] : expected.map((call) => ({ name: call.name, arguments: plain(call.arguments) })),
      format: row.template ?? row.format ?? name,
    };
  });
}

/** The tools of a row, with the types that its arguments have: the fixtures do not carry the schemas. */
function toolsOf(calls: readonly Call[], all: readonly Row[]): ReadonlyMap<string, JsonSchema> {
  const names = all.flatMap((row) => row.calls.map((call) => call.name));
  const typed = calls.map(
    ({ name, arguments: args }) =>
      [
        name,
        {
          type: 'object',
          properties: Object.fromEntries(
            Object.entries(args).map(([key, value]) => [key, typeof value === 'string' ? { type: 'string' } : {}]),
          ),
        },
      ] as const,
  );
  return new Map<string, JsonSchema>([...names.map((name) => [name, {}] as const), ...typed]);
}

function scan(
  input: string,
  tools: ReadonlyMap<string, JsonSchema>,
  cut: (text: string) => readonly string[],
): { readonly calls: readonly Call[]; readonly text: string } {
  const scanner = createTextScanner(tools);
  const shown = cut(input).flatMap((piece) => scanner.push(piece));
  const { shown: rest, calls } = scanner.end(false);
  const text = [...shown, ...rest].map((part) => (part.type === 'text' ? part.text : '')).join('');
  // Arguments that are no JSON go back to the model as an error; such a call cannot run.
  return {
    text,
    calls: calls
      .filter((call) => findJson(call.arguments) !== null)
      .map(({ name, arguments: args }) => ({ name, arguments: plain(args) })),
  };
}

const cuts: Readonly<Record<string, (text: string) => readonly string[]>> = {
  whole: (text) => [text],
  characters: (text) => [...text],
  sevens: (text) => text.match(/[\s\S]{1,7}/g) ?? [],
};

/** Forms of which the program reads none: they print as unsupported, and their calls must not come out as other
 * calls. */
const unsupported = /gemma|lfm2|olmo3|Kimi-K3|gpt-oss|MiniMax-M3|muse/i;

test('calls written as text are found as other parsers find them, cut anywhere; rows without calls yield none', () => {
  const all = (['seed002', 'vllm', 'ollama', 'llamacpp-chat'] as const).flatMap((name) => rows(name));
  const passed = new Map<string, number>();
  const refused: string[] = [];
  for (const row of all) {
    for (const [how, cut] of Object.entries(cuts)) {
      const { calls, text } = scan(row.input, toolsOf(row.calls, all), cut);
      if (
        row.calls.length > 0 &&
        calls.length === 0 &&
        (unsupported.test(row.format) || /llamacpp-chat 5093/.test(row.name))
      ) {
        if (how === 'whole') refused.push(`${row.name} (${row.format})`);
        continue;
      }
      expect(calls, `${row.name}, ${how}: ${row.input}`).toEqual(row.calls);
      if (calls.length > 0) expect(text, row.name).not.toMatch(/tool_call|<function|"arguments"|"args"|▁/);
      if (how === 'whole')
        passed.set(row.name.split(' ')[0] ?? '', (passed.get(row.name.split(' ')[0] ?? '') ?? 0) + 1);
    }
  }
  console.log(
    [
      `Text calls: ${JSON.stringify(Object.fromEntries(passed))} rows passed, ${refused.length} unsupported:`,
      ...refused,
    ].join('\n  '),
  );
  expect(refused.length).toBeLessThanOrEqual(24);
});

test('JSON is mended where only one reading is possible, and refused elsewhere; never read as something else', () => {
  const count = { same: 0, refused: 0 };
  for (const row of cases('jsonrepair') as readonly { readonly input: string; readonly value?: unknown }[]) {
    const start = row.input.length - row.input.trimStart().length;
    const found = /^\s*[[{]/.test(row.input) ? findJson(row.input, start) : null;
    if (found === null || row.value === undefined) {
      count.refused++;
      continue;
    }
    count.same++;
    expect(JSON.parse(found.json), row.input).toEqual(row.value);
  }
  console.log(
    `jsonrepair: ${count.same} rows read the same, ${count.refused} refused (cut off, no object, or a guess)`,
  );
  if (has) expect(count.same).toBeGreaterThan(30);
});

test('broken arguments seen in the wild are mended or refused as they must be', () => {
  const count = { mended: 0, refused: 0 };
  for (const row of cases('wild-args') as readonly {
    readonly id: string;
    readonly raw: string;
    readonly must: string;
    readonly value?: unknown;
  }[]) {
    const found = row.raw === '' ? { json: '{}' } : findJson(row.raw);
    if (found === null || !found.json.startsWith('{')) {
      count.refused++;
      continue;
    }
    expect(row.must, row.id).not.toBe('refuse');
    count.mended++;
    // Types are never changed: the tool's schema refuses `"10"` where a number belongs, and the model is told.
    if (row.value !== undefined && row.value !== null && row.id !== 'wild-22')
      expect(JSON.parse(found.json), row.id).toEqual(row.value);
  }
  console.log(`wild-args: ${count.mended} read, ${count.refused} refused`);
});

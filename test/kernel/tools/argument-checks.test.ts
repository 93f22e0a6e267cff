import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isRecord, type JsonSchema } from '../../../src/kernel/core/json.js';
import type { CompiledCheck } from '../../../src/kernel/tools/argument-checks.js';
import { checkedText, explaining, loadSchemaCompiler } from '../../../src/kernel/tools/registry.js';

const generator = new URL('../../../config/compiled-checks.mjs', import.meta.url).href;
const rows = JSON.parse(
  readFileSync(new URL('../../../config/tool-schemas.json', import.meta.url), 'utf8'),
) as readonly {
  readonly tool: string;
  readonly schema: JsonSchema;
}[];

/** The checks as the build compiles them. */
async function compiledChecks(): Promise<ReadonlyMap<string, CompiledCheck>> {
  const { argumentChecks } = (await import(generator)) as { readonly argumentChecks: () => string };
  const folder = mkdtempSync(join(tmpdir(), 'agent-checks-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const file = join(folder, 'checks.mjs');
  const head = `import{createRequire}from'node:module';const require=createRequire(${JSON.stringify(generator)});`;
  writeFileSync(file, head + argumentChecks());
  const made = (await import(file)) as { readonly argumentChecks: ReadonlyMap<string, CompiledCheck> };
  return made.argumentChecks;
}

/** A value that fits a schema. */
function fitting(schema: unknown): unknown {
  if (!isRecord(schema)) return null;
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  if (Array.isArray(schema['anyOf'])) return fitting(schema['anyOf'][0]);
  const type = Array.isArray(schema['type']) ? (schema['type'][0] as unknown) : schema['type'];
  if (type === 'object') {
    const properties = Object.entries(isRecord(schema['properties']) ? schema['properties'] : {});
    return Object.fromEntries(properties.map(([name, node]) => [name, fitting(node)]));
  }
  if (type === 'array') return [fitting(schema['items'])];
  if (type === 'integer' || type === 'number') return schema['minimum'] ?? 1;
  return type === 'boolean' ? true : 'a word';
}

const strange = ['', 'x', '😀', -1, 0, 1, 1.5, 1e9, true, null, [], ['x'], {}, { x: 1 }, 'y'.repeat(70_000)];

/** `value`, and each way to put something strange in one place of it, leave it out or add to it. */
function variants(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return [...strange, [...value, ...value], ...value.flatMap(variants).map((item) => [item])];
  if (!isRecord(value)) return strange;
  const changed = Object.entries(value).flatMap(([name, inner]) => [
    Object.fromEntries(Object.entries(value).filter(([other]) => other !== name)),
    ...variants(inner).map((variant) => ({ ...value, [name]: variant })),
  ]);
  return [value, { ...value, extra: 1 }, ...strange, ...changed];
}

test('the checks that the build compiles say of every value what the compiler of a run says', async () => {
  const [checks, compile] = [await compiledChecks(), await loadSchemaCompiler()];
  const verdicts = { fits: 0, refused: 0 };
  for (const { tool, schema } of rows) {
    const check = checks.get(checkedText(schema));
    if (!check) throw new Error(`${tool} has no compiled check`);
    const [ahead, now] = [explaining(check), compile(schema)];
    for (const value of variants(fitting(schema))) {
      const problem = ahead(value);
      expect(problem, `${tool} ${JSON.stringify(value)?.slice(0, 300)}`).toEqual(now(value));
      verdicts[problem === null ? 'fits' : 'refused']++;
    }
  }
  expect(checks.size).toBe(new Set(rows.map(({ schema }) => checkedText(schema))).size);
  expect(verdicts.fits).toBeGreaterThan(rows.length);
  expect(verdicts.refused).toBeGreaterThan(20 * rows.length);
});

test('the text of a schema leaves out what is only said of it, and nothing else', () => {
  const said = { type: 'object', description: 'All.', properties: { n: { type: 'integer', description: 'One.' } } };
  const unsaid = { type: 'object', properties: { n: { type: 'integer' } } };
  expect(checkedText(said)).toBe(JSON.stringify(unsaid));
  const named = { type: 'object', properties: { description: { type: 'string' } }, required: ['description'] };
  expect(checkedText(named)).toBe(JSON.stringify(named));
});

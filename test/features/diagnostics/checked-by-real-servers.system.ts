import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { editedProject } from './edited-project.js';
import { realLanguageServers } from './real-language-servers.js';

const { path, found } = realLanguageServers();
const isThere = found();
const hasSandbox = existsSync('/usr/bin/bwrap');
const cases = 3;
if (!isThere)
  console.log(
    `typescript-language-server and pyright are not installed (npm run t:language-servers): ${cases} cases skipped`,
  );

/** An edit of a file that breaks `in`, which is the file itself unless another one is named. */
type Break = readonly [file: string, before: string, after: string, broken?: string];

const typescript = {
  files: {
    'tsconfig.json': JSON.stringify({
      compilerOptions: { strict: true, target: 'es2022', module: 'nodenext', noEmit: true },
      include: ['src'],
    }),
    'package.json': '{"type":"module"}',
    'src/shop.ts': [
      'export interface Item {\n  name: string;\n  cents: number;\n}\n',
      "export const kinds = ['book', 'cup'] as const;\n",
      'export function total(items: readonly Item[]): number {\n  return items.reduce((sum, item) => sum + item.cents, 0);\n}\n',
      'export class Cart {\n  #items: Item[] = [];\n  add(item: Item): void {\n    this.#items.push(item);\n  }\n  sum(): number {\n    return total(this.#items);\n  }\n}\n',
    ].join('\n'),
    'src/index.ts': "export * from './shop.js';\n",
    'src/print.ts': [
      "import { Cart, kinds, total } from './shop.js';\n",
      'const cart = new Cart();\ncart.add({ name: kinds[0], cents: 100 });\n',
      'export const line: string = `sum: ${cart.sum()} of ${total([])}`;\n',
      'export async function later(): Promise<string> {\n  return line;\n}\n',
    ].join('\n'),
  },
  breaks: [
    ['src/shop.ts', 'items.reduce', 'items.reduc'],
    ['src/shop.ts', 'sum + item.cents, 0', "sum + item.cents, ''"],
    ['src/shop.ts', 'return total(', 'return totals('],
    ['src/shop.ts', 'this.#items.push(item)', 'this.#items.push(item, 1)'],
    ['src/shop.ts', 'export class Cart {', 'export class Cart'],
    ['src/shop.ts', 'cents: number', 'cents: string'],
    ['src/shop.ts', 'sum(): number', 'sum(): string'],
    ['src/shop.ts', '#items: Item[] = []', '#items: Item[] = [1]'],
    ['src/shop.ts', 'interface Item {', 'interface Item { size: number;', 'src/print.ts'],
    ['src/shop.ts', 'export function total', 'function total', 'src/print.ts'],
    ['src/shop.ts', '  add(item', '  put(item', 'src/print.ts'],
    ['src/shop.ts', 'name: string', 'title: string', 'src/print.ts'],
    [
      'src/shop.ts',
      "export const kinds = ['book', 'cup'] as const",
      'export const kinds = [1, 2] as const',
      'src/print.ts',
    ],
    ['src/shop.ts', 'export class Cart', 'export class Basket', 'src/print.ts'],
    ['src/print.ts', 'new Cart()', 'new Cart(1)'],
    ['src/print.ts', 'cents: 100', 'cents: "100"'],
    ['src/print.ts', 'line: string', 'line: number'],
    ['src/print.ts', 'Promise<string>', 'Promise<number>'],
    ['src/print.ts', './shop.js', './shopp.js'],
    ['src/print.ts', 'return line;', 'return line);'],
  ] satisfies readonly Break[],
};

const python = {
  files: {
    'shop.py': [
      'from dataclasses import dataclass\n\n\n@dataclass\nclass Item:\n    name: str\n    cents: int\n',
      '\nkinds = ("book", "cup")\n',
      '\ndef total(items: list[Item]) -> int:\n    return sum(item.cents for item in items)\n',
      '\nclass Cart:\n    def __init__(self) -> None:\n        self.items: list[Item] = []\n',
      '    def add(self, item: Item) -> None:\n        self.items.append(item)\n',
      '    def sum(self) -> int:\n        return total(self.items)\n',
    ].join('\n'),
    'show.py': [
      'from shop import Cart, Item, kinds, total\n',
      'cart = Cart()\ncart.add(Item(name=kinds[0], cents=100))\n',
      'line: str = f"sum: {cart.sum()} of {total([])}"\n',
      '\ndef later() -> str:\n    return line\n',
    ].join('\n'),
  },
  breaks: [
    ['shop.py', 'item.cents for', 'item.cent for'],
    ['shop.py', 'return sum(item', 'return summ(item'],
    ['shop.py', 'return total(self', 'return totals(self'],
    ['shop.py', 'self.items.append(item)', 'self.items.append(item, 1)'],
    ['shop.py', 'class Cart:', 'class Cart'],
    ['shop.py', 'cents: int', 'cents: str'],
    ['shop.py', 'def sum(self) -> int', 'def sum(self) -> str'],
    ['shop.py', 'list[Item] = []', 'list[Item] = [1]'],
    ['shop.py', 'from dataclasses import dataclass', 'from dataclasses import dataclas'],
    ['shop.py', '    cents: int', '    cents: int\n    size: int', 'show.py'],
    ['shop.py', 'def total(', 'def totals('],
    ['shop.py', 'def add(self', 'def put(self', 'show.py'],
    ['shop.py', 'name: str', 'title: str', 'show.py'],
    ['shop.py', 'kinds = ("book", "cup")', 'kinds = (1, 2)', 'show.py'],
    ['shop.py', 'class Cart', 'class Basket', 'show.py'],
    ['show.py', 'Cart()\ncart', 'Cart(1)\ncart'],
    ['show.py', 'cents=100', 'cents="100"'],
    ['show.py', 'line: str', 'line: int'],
    ['show.py', 'from shop import', 'from shopp import'],
    ['show.py', '    return line', '    return line)'],
  ] satisfies readonly Break[],
};

test.skipIf(!isThere).each([
  ['typescript-language-server', typescript],
  ['pyright', python],
] as const)(
  '%s: each of 20 edits that break something is reported, and its repair reports nothing',
  { timeout: 300_000 },
  async (name, { files, breaks }) => {
    const { edit, state } = editedProject(files, { path: [path] });
    const reported: string[] = [];
    for (const [file, before, after, broken = file] of breaks as readonly Break[]) {
      const finding = await edit(file, before, after);
      const errors = [finding?.facts['diagnostics'] ?? []].flat().map(String);
      if (errors.some((line) => line.startsWith(`${broken}:`))) reported.push(after);
      expect(await edit(file, after, before), `the repair of ${after}`).toBeNull();
    }
    expect(reported).toEqual(breaks.map(([, , after]) => after));
    expect(reported).toHaveLength(20);
    expect(state(name)).toMatchObject({ state: 'running' });
  },
);

test.skipIf(!isThere || !hasSandbox)('both run in the sandbox', { timeout: 300_000 }, async () => {
  const { edit } = editedProject({ ...typescript.files, ...python.files }, { path: [path], isConfined: true });
  const [inTypescript] = [(await edit('src/shop.ts', 'items.reduce', 'items.reduc'))?.facts['diagnostics']].flat();
  expect(inTypescript).toMatch(/^src\/shop\.ts:\d+:\d+ error TS2551/);
  const [inPython] = [(await edit('shop.py', 'item.cents for', 'item.cent for'))?.facts['diagnostics']].flat();
  expect(inPython).toMatch(/^shop\.py:\d+:\d+ error reportAttributeAccessIssue/);
});

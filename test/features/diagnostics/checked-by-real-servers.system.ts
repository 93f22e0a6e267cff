import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { editedProject } from './edited-project.js';
import { realLanguageServers } from './real-language-servers.js';

const { path, found } = realLanguageServers();
const systemPath = (process.env['PATH'] ?? '').split(':');
const isThere = found();
const hasSandbox = existsSync('/usr/bin/bwrap');
const cases = 4;
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

const c = {
  files: {
    'compile_flags.txt': '-std=c11\n-Wall\n',
    'shop.h': [
      '#ifndef SHOP_H\n#define SHOP_H\n#include <stddef.h>\n',
      'typedef struct {\n  const char *name;\n  int cents;\n} Item;\n',
      'typedef struct {\n  Item items[8];\n  size_t count;\n} Cart;\n',
      'int total(const Item *items, size_t count);\nvoid add(Cart *cart, Item item);\nint sum(const Cart *cart);\n#endif\n',
    ].join('\n'),
    'shop.c': [
      '#include "shop.h"\n',
      'int total(const Item *items, size_t count) {\n  int all = 0;\n  for (size_t i = 0; i < count; i++) all += items[i].cents;\n  return all;\n}\n',
      'void add(Cart *cart, Item item) {\n  cart->items[cart->count++] = item;\n}\n',
      'int sum(const Cart *cart) {\n  return total(cart->items, cart->count);\n}\n',
    ].join('\n'),
    'show.c': [
      '#include <stdio.h>\n#include "shop.h"\n',
      'int main(void) {\n  Cart cart = {.count = 0};\n  add(&cart, (Item){.name = "book", .cents = 100});\n  printf("sum: %d\\n", sum(&cart));\n  return 0;\n}\n',
    ].join('\n'),
  },
  breaks: [
    ['shop.c', 'items[i].cents', 'items[i].cent'],
    ['shop.c', 'return all;', 'return alls;'],
    ['shop.c', 'total(cart->items', 'total(cart.items'],
    ['shop.c', 'cart->items[cart->count++] = item', 'cart->items[cart->count++] = item.name'],
    ['shop.c', 'int all = 0;', 'int all = 0'],
    ['shop.c', 'all += items', 'all + = items'],
    ['shop.c', 'void add(Cart *cart, Item item)', 'void add(Cart *cart, int item)'],
    ['shop.c', '#include "shop.h"', '#include "shopp.h"'],
    ['shop.c', 'int sum(const Cart *cart)', 'int sum(Cart *cart)'],
    ['shop.c', 'size_t i = 0;', 'sizet i = 0;'],
    ['shop.c', 'cart->items, cart->count', 'cart->items, 1, cart->count'],
    ['shop.h', 'int cents;', 'int prices;', 'shop.c'],
    ['shop.h', '} Cart;', '} Basket;'],
    ['shop.h', 'const char *name;', 'const char *title;', 'show.c'],
    ['shop.h', 'int sum(const Cart *cart);', 'int sum(const Cart *cart, int factor);', 'show.c'],
    ['shop.h', 'void add(Cart *cart, Item item);', 'void add(Cart cart, Item item);', 'show.c'],
    ['show.c', '.cents = 100', '.cent = 100'],
    ['show.c', 'sum(&cart)', 'sum(cart)'],
    ['show.c', 'return 0;', 'return 0);'],
    ['show.c', 'Cart cart =', 'Carts cart ='],
  ] satisfies readonly Break[],
};

const go = {
  files: {
    'go.mod': 'module example.com/shop\n\ngo 1.19\n',
    'shop/shop.go': [
      'package shop\n',
      'type Item struct {\n\tName  string\n\tCents int\n}\n',
      'var Kinds = []string{"book", "cup"}\n',
      'func Total(items []Item) int {\n\tall := 0\n\tfor _, item := range items {\n\t\tall += item.Cents\n\t}\n\treturn all\n}\n',
      'type Cart struct {\n\titems []Item\n}\n',
      'func (c *Cart) Add(item Item) {\n\tc.items = append(c.items, item)\n}\n',
    ].join('\n'),
    'shop/sum.go': 'package shop\n\nfunc (c *Cart) Sum() int {\n\treturn Total(c.items)\n}\n',
    'main.go': [
      'package main\n',
      'import (\n\t"fmt"\n\n\t"example.com/shop/shop"\n)\n',
      'func main() {\n\tcart := &shop.Cart{}\n\tcart.Add(shop.Item{Name: shop.Kinds[0], Cents: 100})\n\tfmt.Println("sum:", cart.Sum())\n}\n',
    ].join('\n'),
  },
  breaks: [
    ['shop/shop.go', 'item.Cents', 'item.Cent'],
    ['shop/shop.go', 'return all', 'return alls'],
    ['shop/shop.go', 'all := 0', 'all := ""'],
    ['shop/shop.go', 'append(c.items, item)', 'append(c.items, item, 1)'],
    ['shop/shop.go', 'func Total(items []Item) int {', 'func Total(items []Item) int'],
    ['shop/shop.go', 'range items', 'range itemz'],
    ['shop/shop.go', '(item Item) {', '(item Items) {'],
    ['shop/shop.go', 'Cents int', 'Cents string'],
    ['shop/shop.go', 'func Total(', 'func Totals(', 'shop/sum.go'],
    ['shop/shop.go', '\titems []Item', '\tgoods []Item', 'shop/sum.go'],
    ['shop/shop.go', 'Name  string', 'Title string', 'main.go'],
    ['shop/shop.go', 'var Kinds = []string{"book", "cup"}', 'var Kinds = []int{1, 2}', 'main.go'],
    ['shop/shop.go', ') Add(', ') Put(', 'main.go'],
    ['shop/sum.go', ') Sum() int', ') Sum() string'],
    ['shop/sum.go', ') Sum()', ') Summ()', 'main.go'],
    ['shop/sum.go', 'c.items', 'c.goods'],
    ['main.go', 'shop.Cart{}', 'shop.Basket{}'],
    ['main.go', 'Cents: 100', 'Cents: "100"'],
    ['main.go', '"example.com/shop/shop"', '"example.com/shop/shopp"'],
    ['main.go', 'cart.Sum())', 'cart.Sum()))'],
  ] satisfies readonly Break[],
};

const onPath = (program: string): boolean => spawnSync(program, ['version']).error === undefined;
const ofSystem = [
  ['clangd', c, onPath('clangd')],
  ['gopls', go, onPath('gopls') && onPath('go')],
] as const;
for (const [name, , isFound] of ofSystem) if (!isFound) console.log(`${name} is not installed: its cases are skipped`);

test.for([['typescript-language-server', typescript, isThere], ['pyright', python, isThere], ...ofSystem] as const)(
  '%s: each of 20 edits that break something is reported, and its repair reports nothing',
  { timeout: 300_000 },
  async ([name, { files, breaks }, isInstalled], { skip }) => {
    skip(!isInstalled);
    const { edit, state } = editedProject(files, { path: [path, ...systemPath] });
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

/** An edit that breaks something, and the code that is reported. gopls needs a cache that it can write. */
const confined = [
  ['typescript-language-server', typescript, ['src/shop.ts', 'items.reduce', 'items.reduc'], 'TS2551', isThere],
  ['pyright', python, ['shop.py', 'item.cents for', 'item.cent for'], 'reportAttributeAccessIssue', isThere],
  ['clangd', c, ['shop.c', 'items[i].cents', 'items[i].cent'], 'no_member', onPath('clangd')],
] as const;

test.for(confined)(
  '%s runs in the sandbox',
  { timeout: 300_000 },
  async ([, { files }, [file, before, after], code, isInstalled], { skip }) => {
    skip(!isInstalled || !hasSandbox);
    const { edit } = editedProject(files, { path: [path, ...systemPath], isConfined: true });
    const [reported] = [(await edit(file, before, after))?.facts['diagnostics']].flat();
    expect(reported).toMatch(new RegExp(`^${file}:\\d+:\\d+ error .*${code}`));
  },
);

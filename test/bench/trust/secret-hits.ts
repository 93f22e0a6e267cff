// How often ordinary code is taken for a secret: npm run t:secrets [folder...]
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createSecretScanner, secretForms } from '../../../src/kernel/core/secrets/scanner.js';

const folders = process.argv.slice(2);
const scanner = createSecretScanner(secretForms());
const code = /\.(?:[cm]?[jt]sx?|json|md|css|html|py|c|cc|h|sh|ya?ml|toml)$/;
const hits = new Map<string, number>();
let lines = 0;
let characters = 0;
let spentMs = 0;
for (const folder of folders.length > 0 ? folders : ['src', 'node_modules']) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name);
    if (!code.test(name) || !statSync(path).isFile()) continue;
    const text = readFileSync(path, 'utf8');
    lines += text.split('\n').length;
    characters += text.length;
    const startedAt = performance.now();
    const { found } = scanner.scan(text);
    spentMs += performance.now() - startedAt;
    for (const { kind, start, end } of found) {
      hits.set(kind ?? '', (hits.get(kind ?? '') ?? 0) + 1);
      process.stdout.write(
        `${path}: ${kind}: ${text.slice(Math.max(0, start - 30), Math.min(end, start + 60)).replaceAll(/\s+/g, ' ')}\n`,
      );
    }
  }
}
const count = [...hits.values()].reduce((sum, hit) => sum + hit, 0);
process.stdout.write(
  `${JSON.stringify(Object.fromEntries(hits))}\n${count} in ${lines} lines: ${((count / lines) * 100_000).toFixed(2)} in 100,000; ${((characters / 1_048_576 / spentMs) * 1000).toFixed(0)} MiB/s\n`,
);

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const generator = new URL('../../../config/commands-page.mjs', import.meta.url).href;

test('docs/commands.md is what `npm run commands:page` writes', async () => {
  const { commandsPage } = (await import(generator)) as { readonly commandsPage: () => string };
  expect(readFileSync(new URL('../../../docs/commands.md', import.meta.url), 'utf8')).toBe(commandsPage());
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  type ForeignCommand,
  foreignCommands,
  type ForeignFlag,
  foreignFlags,
} from '../../src/kernel/console/foreign-command-line.js';
import { namesOf, type OptionTable, rootOptions } from '../../src/kernel/console/options.js';

const page = new URL('../../docs/other-agents.md', import.meta.url);
const marker = '<!-- Written by npm run flags:page from here on. -->';
const options: OptionTable = rootOptions;

function table(head: string, rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  return [`| ${head} | of | here |`, '| --- | --- | --- |', ...lines].join('\n');
}

/** Our words, with the value of the other program as it is written there. */
function shown(words: readonly string[], flags: string): string {
  const [value = ''] = /(?<=[<[]).*(?=[>\]])/.exec(flags) ?? [];
  return `\`${words.map((word) => word.replace(/\$\w*/, () => `<${value.replace('...', '')}>`)).join(' ')}\``;
}

function flagText({ flags, gives, instead, because }: ForeignFlag): string {
  if (instead !== undefined) return `exit code 2: ${instead.replaceAll('<', '\\<')}`;
  if (because !== undefined) return `nothing is needed: ${because}`;
  if (!isList(gives)) {
    const values = Object.entries(gives ?? {}).map(([value, words]) => `\`${value}\`: ${shown(words, '')}`);
    return values.join('; ');
  }
  const same = Object.values(options).find(
    (option) => option.hidden === true && namesOf(option.flags).names.includes(gives[0] ?? ''),
  );
  const isItself = same !== undefined && namesOf(flags).names.includes(gives[0] ?? '');
  return isItself ? `the same: ${same.about}` : shown(gives, flags);
}

function isList(gives: ForeignFlag['gives']): gives is readonly string[] {
  return Array.isArray(gives);
}

function commandText({ usage, gives = [], instead }: ForeignCommand): string {
  if (instead !== undefined) return `exit code 2: ${instead.replaceAll('<', '\\<')}`;
  const operands = usage.split(' ').filter((word) => /^[<[]/.test(word));
  const words = gives.map((word) =>
    word.replace(/\$(\d)/, (_text, place: string) => operands[Number(place) - 1] ?? ''),
  );
  return `\`agent ${words.join(' ')}\``;
}

test('docs/other-agents.md lists every option and command of the table; npm run flags:page writes it', async () => {
  const [intro = ''] = readFileSync(page, 'utf8').split(`${marker}\n`);
  const flags = foreignFlags.map((flag) => [`\`${flag.flags}\``, flag.of, flagText(flag)]);
  const commands = foreignCommands.map((command) => [`\`${command.usage}\``, command.of, commandText(command)]);
  const sections = ['## Options', table('option', flags), '## Commands', table('command', commands)];
  await expect(`${intro}${marker}\n\n${sections.join('\n\n')}\n`).toMatchFileSnapshot(page.pathname);
});

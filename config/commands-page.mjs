// Writes docs/commands.md from config/commands/*.json, for people to review. `npm run commands:page`
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = new URL('commands/', import.meta.url);
const page = new URL('../docs/commands.md', import.meta.url);

const conditions = {
  program: 'the program is',
  verb: 'the operands begin with',
  alone: 'the operands are only',
  operands: 'the operands include',
  start: 'the words begin with',
  whole: 'the words are only',
  says: 'the words include',
  behind: 'after the first word comes',
  every: 'every word is one of',
  options: 'an option is',
  test: 'it passes the test',
};
const facts = {
  takes: 'options with a value',
  runs: '**dangerous** by options that run or load something',
  writes: 'files are written by',
  pattern: 'a pattern follows',
};

const code = (text) => (text === '' ? 'nothing' : `\`${text.replaceAll('|', '\\|')}\``);
const entriesOf = (list) => [list].flat().flatMap((line) => line.split(', '));
const listed = (list) => entriesOf(list).map(code).join(' ');

/** The page as text. */
export function commandsPage() {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json') && name !== 'schema.json')
    .toSorted()
    .map((name) => ({ name, ...JSON.parse(readFileSync(new URL(name, folder), 'utf8')) }));
  const notes = Object.assign({}, ...files.map(({ codes = {} }) => codes));
  const count = files.flatMap(({ programs = [] }) => programs.flatMap(({ names }) => entriesOf(names))).length;
  return [
    '# What the policy knows of programs',
    '',
    `Written by \`npm run commands:page\` from \`config/commands/*.json\`, ${count} programs. Do not edit it here.`,
    'The tables say which calls are dangerous. The first line that holds decides. A question for a version, by a word that',
    'is listed below, is harmless. `*` matches any characters of a word, `?` matches one. Where a line names a function,',
    'code of `src/kernel/permissions/shell` judges what data cannot say. `config/listed-commands.json` says which calls only read.',
    ...files.flatMap((file) => family(file, notes)),
    '',
  ].join('\n');
}

function family({ name, about, lists = {}, programs = [], questions = {} }, notes) {
  return [
    '',
    `## ${about}`,
    '',
    `\`config/commands/${name}\``,
    ...Object.entries(lists).flatMap(([list, texts]) => ['', `\`@${list}\` lists: ${listed(texts)}`]),
    ...programs.flatMap((entry) => program(entry, notes)),
    ...Object.entries(questions).flatMap(([word, names]) => ['', `\`${word}\`: ${listed(names)}`]),
  ];
}

function program(entry, notes) {
  const { names, rules = [], interprets, inputs, chooses } = entry;
  const lines = Object.entries(facts).flatMap(([key, text]) => (entry[key] ? [`${text}: ${listed(entry[key])}`] : []));
  if (chooses) lines.push(`files are chosen by name with ${listed(chooses.options)}`);
  if (inputs !== undefined) lines.push(`operands behind the first ${inputs} are files that are written`);
  if (entry.code === 'started') lines.push('starts the command among its words');
  if (entry.reads) lines.push('only reads, also files that other programs obey');
  if (interprets) lines.push(`runs a program, also from a word behind ${listed(inlineOf(interprets))}`);
  lines.push(...rules.map((rule) => `${outcome(rule, notes)} where ${when(rule)}`));
  const fallback = outcome(entry, notes);
  lines.push(lines.length === 0 ? fallback : `otherwise ${fallback}`);
  return ['', listed(names), '', ...lines.map((line) => `- ${line}`)];
}

function inlineOf({ letters = '', inline = [] }) {
  return [...[...letters].map((letter) => `-${letter}`), ...(inline.length > 0 ? entriesOf(inline) : [])];
}

function when(rule) {
  const parts = holds(rule);
  if (rule.also) parts.push(...holds(rule.also));
  if (rule.unless) parts.push(`not: ${rule.unless.map((one) => holds(one).join(' and ')).join(', nor: ')}`);
  return parts.length === 0 ? 'nothing above holds' : parts.join(', and ');
}

function holds(condition) {
  const parts = Object.entries(conditions).flatMap(([key, text]) =>
    condition[key] ? [`${text} ${listed(condition[key])}`] : [],
  );
  if (condition.filled) parts.push('the words include the output of another command');
  return condition.anyCase ? parts.map((part) => `${part} (in any case)`) : parts;
}

function outcome({ danger, code: name, like, sends }, notes) {
  const parts = [];
  if (danger) parts.push(`**dangerous** (${danger})`);
  if (like) parts.push(`as \`${like}\``);
  if (name) parts.push(`by the function \`${name}\`: ${notes[name]}`);
  if (sends) parts.push('harmless, unless the words include the output of another command');
  return parts.length === 0 ? 'harmless' : parts.join(', ');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, commandsPage());

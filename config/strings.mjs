// npm run strings: prints every string of the program that a user or a model can see, with its kind and place. A string
// counts when it has at least two words. npm run words checks the same strings.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseSync } from 'oxc-parser';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Two words with a space between them; SQL and CSS are no text for a reader. */
const isText = (text) => /\p{L}[\p{L}'’,;:.)`"}…-]* +[(`"“'{$]*\p{L}/u.test(text) && !isCode(text);
const isCode = (text) =>
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE FROM|CREATE|DROP|ALTER|PRAGMA|WITH RECURSIVE|BEGIN|COMMIT|ROLLBACK|GRANT|REVOKE|LOCK TABLE|WHERE|FROM|AND|ORDER BY|ON CONFLICT|LISTEN|NOTIFY)\b/.test(
    text,
  ) || /^[^{}]*\{[^{}]*:[^{}]*;/.test(text);

/** Returns the text of a literal, of JSX text or of a sum of them; other parts are shown as ${…}. */
function textOfNode(node, source) {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : undefined;
  if (node.type === 'JSXText') return node.value;
  if (node.type === 'TemplateLiteral')
    return node.quasis.map(({ value }, index) => value.cooked + hole(node.expressions[index], source)).join('');
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return undefined;
  const sides = [node.left, node.right].map((side) => textOfNode(side, source));
  if (sides.every((side) => side === undefined)) return undefined;
  return (sides[0] ?? hole(node.left, source)) + (sides[1] ?? hole(node.right, source));
}

const hole = (node, source) => (node ? `\${${source.slice(node.start, node.end).replace(/\s+/g, ' ')}}` : '');

const kinds = [
  [/Error$|^fail|^refus|^invalid|^usage/i, 'error'],
  [/notice|warn|notify|print|write|status/i, 'notice'],
  [/^(?:help|summary|hint|about)$/i, 'help'],
  [/description|^(?:prompt|instructions)$/i, 'prompt to model'],
];

/** Guesses the kind of a string from the nearest call, constructor or property around it that says one. */
function kindAmong(owners, source) {
  for (const owner of owners.toReversed()) {
    const name = owner.callee ?? (owner.type === 'Property' ? owner.key : undefined);
    const kind = name && kinds.find(([pattern]) => pattern.test(source.slice(name.start, name.end).split('.').at(-1)));
    if (kind) return kind[1];
  }
  return 'other';
}

/** Import paths and types of literals are no strings that anyone reads. */
const isUnread = (node) =>
  node.type === 'TSLiteralType' ||
  (/^(?:Import|Export(?:All|Named)Declaration$)/.test(node.type) && Boolean(node.source));

function stringsOfSource(path, source) {
  const found = [];
  const lines = [...source.matchAll(/\n/g)].map(({ index }) => index);
  const add = (node, owners, text) =>
    found.push({
      kind: kindAmong(owners, source),
      place: `${path}:${lines.filter((end) => end < node.start).length + 1}`,
      text: text.trim(),
    });
  const visit = (node, owners, isPart) => {
    if (Array.isArray(node)) return node.forEach((child) => visit(child, owners, isPart));
    if (typeof node?.type !== 'string' || isUnread(node)) return;
    const text = textOfNode(node, source);
    if (text !== undefined && !isPart && isText(text)) add(node, owners, text);
    // A part of a sum is not listed again; what is inside a placeholder is listed separately.
    const isSum = text !== undefined && node.type === 'BinaryExpression';
    for (const [key, child] of Object.entries(node)) if (key !== 'quasis') visit(child, [...owners, node], isSum);
  };
  visit(parseSync(path, source).program.body, [], false);
  return found;
}

/** Lists the strings of a table, by the path of their keys. */
function stringsOfTable(path, value, keys = []) {
  if (typeof value === 'string')
    return isText(value) ? [{ kind: 'setting', place: `${path}:${keys.join('.')}`, text: value }] : [];
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, child]) => stringsOfTable(path, child, [...keys, key]));
}

const filesBelow = (folder, pattern) =>
  readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => ({ path: `${folder}/${name}`, text: readFileSync(`${root}/${folder}/${name}`, 'utf8') }));

/** Tables of tools, of the repository and of other programs' words. */
const noTables =
  /(?:knip|tsconfig|models-overrides|models|oxfmt|oxlint|store-schema|tool-schemas|listed-commands|secret-forms)\.json$/;

/** Returns every string of two or more words in src, in the tables of config and in the prompts. */
export function visibleStrings() {
  return [
    ...filesBelow('src', /\.tsx?$/).flatMap(({ path, text }) => stringsOfSource(path, text)),
    ...filesBelow('config', /\.json$/)
      .filter(({ path }) => !noTables.test(path))
      .flatMap(({ path, text }) => stringsOfTable(path, JSON.parse(text))),
    ...filesBelow('config', /\.md$/).flatMap(({ path, text }) =>
      text
        .split('\n')
        .flatMap((line, index) =>
          isText(line) ? [{ kind: 'prompt to model', place: `${path}:${index + 1}`, text: line }] : [],
        ),
    ),
  ];
}

const strings = visibleStrings();
if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const kind of ['error', 'notice', 'help', 'setting', 'prompt to model', 'other'])
    console.log(
      [
        `# ${kind}`,
        ...strings
          .filter((found) => found.kind === kind)
          .map(({ place, text }) => `${place}  ${text.replace(/\n/g, '⏎')}`),
        '',
      ].join('\n'),
    );

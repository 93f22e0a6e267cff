// Finds the sentences and phrases that a person or a model can see: texts in the sources, and descriptions in config.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Files whose texts are SQL, style sheets or scripts of pages. */
const notProse = /(?:migrations|tables|rows|schema|functions|views|page-look)\.ts$|store\/(?:sqlite|memory)/;
const sql = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|PRAGMA|BEGIN|COMMIT|WITH|ATTACH|VACUUM|ANALYZE|REINDEX)\b/;
/** Keys of config files whose values are texts for people. */
const proseKeys = new Set(['description', 'about', 'reason', 'note', 'deprecated', 'hint', 'message', 'label']);

/** A phrase has at least two words; a single word with a capital is a label. */
function isPhrase(text) {
  const bare = text.replace(/\$\{…\}/g, 'X');
  return /[A-Za-z]{2,}[,;:.!?]?\s+\S*[A-Za-z]{2,}/.test(bare) && !sql.test(bare) && !/^[\w.-]+\/[\w./-]+$/.test(bare);
}

function* nodesOf(node, parent = null) {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) {
    for (const item of node) yield* nodesOf(item, parent);
    return;
  }
  if (typeof node.type === 'string') yield { node, parent };
  for (const [key, value] of Object.entries(node)) {
    if (key === 'parent' || value === null || typeof value !== 'object') continue;
    yield* nodesOf(value, typeof node.type === 'string' ? node : parent);
  }
}

/** Returns the text of a literal; null for what is no text of the program. */
function textOf({ node, parent }) {
  if (/^(?:Import|Export|TS)/.test(parent?.type ?? '') && parent.type !== 'TSAsExpression') return null;
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type === 'JSXText') return node.value.trim();
  if (node.type !== 'TemplateLiteral' || parent?.type === 'TaggedTemplateExpression') return null;
  return node.quasis.map(({ value }) => value.cooked ?? value.raw).join('${…}');
}

function sourceStrings(path) {
  const text = readFileSync(`${root}/${path}`, 'utf8');
  const { program } = parseSync(path, text);
  return [...nodesOf(program)].flatMap((found) => {
    const said = textOf(found);
    if (said === null || !isPhrase(said)) return [];
    const line = text.slice(0, found.node.start).split('\n').length;
    return [{ path, line, text: said.replace(/\s+/g, ' ').trim() }];
  });
}

function* valuesOf(value, key = '') {
  if (typeof value === 'string' && proseKeys.has(key)) yield value;
  if (value !== null && typeof value === 'object')
    for (const [name, item] of Object.entries(value)) yield* valuesOf(item, Array.isArray(value) ? key : name);
}

function configStrings(path) {
  const text = readFileSync(`${root}/${path}`, 'utf8');
  return [...valuesOf(JSON.parse(text))].flatMap((said) => {
    const line = text.slice(0, Math.max(0, text.indexOf(JSON.stringify(said)))).split('\n').length;
    return isPhrase(said) ? [{ path, line, text: said }] : [];
  });
}

function filesBelow(folder, pattern) {
  return readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => `${folder}/${name}`)
    .sort();
}

/** Returns every visible text with its place: `{path, line, text}`. */
export function visibleStrings() {
  const sources = filesBelow('src', /\.tsx?$/).filter((path) => !notProse.test(path));
  const configs = filesBelow('config', /(?:schema|providers|commands\/\w+)\.json$/);
  return [...sources.flatMap(sourceStrings), ...configs.flatMap(configStrings)];
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const { path, line, text } of visibleStrings()) console.log(`${path}:${line}: ${text}`);

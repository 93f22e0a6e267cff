// npm run words: lists words and names that docs/decisions/0022-tree-and-words.md replaces, in comments, pages and
// code, and fails where there is one.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { visibleStrings } from './strings.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Words of our own, and the term of the field for each. */
const terms = {
  'the person': ['the user', /\bthe person\b/gi],
  'goes on': ['continues, resumes, remains', /\b(?:go|goes|going|went) on\b/gi],
  stands: ['is, exists', /\b(?:stands|stood)\b/gi],
  // "tell me" is what a user types, and "No, and tell the model why" a choice of the permission prompt.
  told: ['reports, notifies, shows', /\b(?:tells|told|(?<!No, and )tell(?! me\b))\b/gi],
  anew: ['again', /\banew\b/gi],
  'of his own': ['custom', /\bof (?:the user's|one's|their) own\b/gi],
  picture: ['image', /\bpictures?\b(?!\.md)/gi],
  errand: ['task run', /\berrands?\b/gi],
  'so many': ['number of, at most', /^\s*(?:\/\*\*|\*|\/\/)\s*So (?:many|much|long|often|few)\b/gim],
  'noun clause': ['a verb first', /\/\*\* (?:What|Where|Who|Whoever|Those|Whether|Why|How)\b/g],
};

/** Phrases that a user or a model has to decode, and plain ones for each. */
const phrases = {
  'goes on': ['continues', /\b(?:go|goes|going|went) on\b(?! as\b)/i],
  'is kept': ['is saved, remains', /\b(?:is|are) kept\b|\bkeeps (?:it|them)\b/i],
  'takes back': ['undoes, reverts', /\btakes? (?:that|it|them) back\b|\btake[ns] back\b/i],
  stands: ['is, matches, replaces', /\bstands?\b/i],
  'where it': ['if it', /^where it\b/i],
  behind: ['after, past', /\bbehind\b/i],
  dearer: ['more expensive', /\bdearer\b/i],
  begun: ['started', /\bbegun\b/i],
  holds: ['contains', /\bholds\b/i],
  leaves: ['exits, cancels', /\bleaves\b/i],
  'asked for again': ['retrying', /\basked for again\b/i],
  'from here on': ['now', /\bfrom (?:here|now) on\b/i],
  'counts until': ['for this session', /\bcounts until\b/i],
  'is told': ['gets, receives', /\b(?:is|are|be) told\b/i],
  'of its own': ['separate, custom', /\bof (?:its|one's|your|their) own\b/i],
};

/** Words of tables, not of sentences, and the folders whose strings are checked in their own way. */
const unchecked =
  /^(?:config\/(?:commands\/(?:words|schema|packages)|offline\/)|src\/kernel\/permissions\/shell\/command-tables\.ts)/;

/** Names of functions that say nothing of what they do. */
const generic = /^(?:textOf|shown|listed|joined|named|said|told|heard|seen|placed|parsed|found|asked|done|kept)$/;

function filesBelow(folder, pattern) {
  return readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => ({ path: `${folder}/${name}`, text: readFileSync(`${root}/${folder}/${name}`, 'utf8') }));
}

const sources = filesBelow('src', /\.tsx?$/);
const pages = [...filesBelow('docs', /\.md$/), { path: 'README.md', text: readFileSync(`${root}/README.md`, 'utf8') }];
const commentsOf = (text) => (text.match(/(?<!\S)\/\*\*?[^]*?\*\/|^\s*\/\/.*$/gm) ?? []).join('\n');

/** Returns what there is of each kind, as lines. */
function findings() {
  const found = {};
  const texts = [...sources.map(({ path, text }) => ({ path, text: commentsOf(text) })), ...pages];
  for (const [name, [term, pattern]] of Object.entries(terms))
    found[name] = texts.flatMap(({ path, text }) =>
      (text.match(pattern) ?? []).map((word) => `${path}: "${word.trim()}"; better: ${term}`),
    );
  const strings = visibleStrings().filter(({ place }) => !unchecked.test(place));
  for (const [name, [term, pattern]] of Object.entries(phrases))
    found[`string: ${name}`] = strings.flatMap(({ place, text }) =>
      pattern.test(text.replace(/\$\{[^}]*\}/g, '…')) ? [`${place}: ${text}; better: ${term}`] : [],
    );
  found['generic function names'] = sources.flatMap(({ path, text }) =>
    [...text.matchAll(/\bfunction (\w+)\(/g)].flatMap(([, name]) => (generic.test(name) ? [`${path}: ${name}`] : [])),
  );
  const types = new Map();
  for (const { path, text } of sources)
    for (const [, name] of text.matchAll(/^export (?:interface|type|(?:abstract )?class) (\w+)/gm))
      types.set(name, [...(types.get(name) ?? []), path]);
  found['type names declared twice'] = [...types].flatMap(([name, paths]) =>
    paths.length > 1 ? [`${name}: ${paths.join(', ')}`] : [],
  );
  return found;
}

const lines = Object.entries(findings()).flatMap(([kind, found]) => found.map((line) => `${kind}: ${line}`));
console.log(lines.length > 0 ? lines.join('\n') : 'No word or name is left to replace.');
process.exitCode = lines.length > 0 ? 1 : 0;

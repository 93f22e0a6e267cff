// node config/settings-types.mjs           writes src/kernel/config/settings-values.ts, the types of config/config.schema.json
// node config/settings-types.mjs <schema>  prints the types of another schema
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const file = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** The types of a schema of settings. A setting with a default is always there. */
function typesOf({ definitions, ...schema }) {
  const declared = Object.keys(definitions).map((name) =>
    definitions[name].properties
      ? interfaceOf(typeName(name), definitions[name])
      : `export type ${typeName(name)} = ${typeOf(definitions[name])};`,
  );
  return [
    '// Made from config/config.schema.json by config/settings-types.mjs; a test compares them.',
    "import type { JsonObject } from '../core/json.js';",
    interfaceOf('SettingsValues', schema, '/** The settings of all layers, merged. */'),
    ...declared,
  ].join('\n\n');
}

function interfaceOf(name, schema, comment) {
  return [...(comment ? [comment] : []), `export interface ${name} ${membersOf(schema)}`].join('\n');
}

function membersOf(schema) {
  const members = Object.entries(schema.properties)
    .filter(([key]) => key !== '$schema')
    .map(([key, node]) => {
      const isSure = isSet(node) || schema.required?.includes(key);
      return `  readonly ${key}${isSure ? '' : '?'}: ${typeOf(node)};`;
    });
  return `{\n${members.join('\n')}\n}`;
}

/** A value with a default, or an object that holds one. */
function isSet(node) {
  return node.default !== undefined || Object.values(node.properties ?? {}).some(isSet);
}

function typeOf(node) {
  if (node.$ref) return typeName(node.$ref.replace('#/definitions/', ''));
  if (node.anyOf) return node.anyOf.map(typeOf).join(' | ');
  if (node.enum) return node.enum.map((value) => `'${value}'`).join(' | ');
  if (node.type === 'array') return `readonly ${node.items.enum ? 'string' : typeOf(node.items)}[]`;
  if (node.properties && typeof node.additionalProperties === 'object')
    return `${membersOf(node)} & Readonly<Record<string, ${typeOf(node.additionalProperties)}>>`;
  if (node.properties) return membersOf(node);
  if (typeof node.additionalProperties === 'object')
    return `Readonly<Record<string, ${typeOf(node.additionalProperties)}>>`;
  return { integer: 'number', number: 'number', boolean: 'boolean', string: 'string', object: 'JsonObject' }[node.type];
}

function typeName(name) {
  return `${name[0].toUpperCase()}${name.slice(1)}Values`;
}

const [schema] = process.argv.slice(2);
const types = typesOf(JSON.parse(readFileSync(schema ?? file('config/config.schema.json'), 'utf8')));
if (schema) process.stdout.write(types);
else writeFileSync(file('src/kernel/config/settings-values.ts'), `${types}\n`);

// The checks that ajv compiles when the program is built. Source: ajv, "Standalone validation code".
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standaloneCode from 'ajv/dist/standalone/index.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const standalone = standaloneCode.default ?? standaloneCode;

/** Puts them in the place of modules of that name, so that neither a start nor a call of a tool of ours loads the
 * schema compiler. */
export const withCompiledChecks = {
  name: 'compiled-checks',
  setup(plugin) {
    const compiled = { validators, 'argument-checks': argumentChecks };
    plugin.onResolve({ filter: /\/(?:validators|argument-checks)\.js$/ }, ({ path }) => ({
      path: path.replace(/^.*\/|\.js$/g, ''),
      namespace: 'compiled',
    }));
    plugin.onLoad({ filter: /.*/, namespace: 'compiled' }, ({ path }) => ({
      contents: compiled[path](),
      resolveDir: root,
    }));
  },
};

/** The checks of the settings and of themes. They carry their schema along, and the path in it with each error. Nobody
 * reads the texts or the paths there: they are 29 kB that every start would load. */
function validators() {
  const ajv = new Ajv({ allErrors: true, messages: false, inlineRefs: false, code: { source: true, esm: true } });
  ajv.addSchema(schemaWithoutTexts('config/config.schema.json'), 'settings');
  ajv.addSchema(schemaWithoutTexts('config/theme.schema.json'), 'theme');
  return withoutPaths(standalone(ajv, { settings: 'settings', theme: 'theme' }));
}

/** A setting may be named `description`, but then it is an object. */
function schemaWithoutTexts(file) {
  const isText = (key, value) => ['title', 'description'].includes(key) && typeof value === 'string';
  return JSON.parse(readFileSync(`${root}/${file}`, 'utf8'), (key, value) => (isText(key, value) ? undefined : value));
}

/** The checks of the arguments of our own tools, by the text of their schemas, with the options of `loadSchemaCompiler`
 * in `src/kernel/tools/registry.ts`. */
export function argumentChecks() {
  const schemas = JSON.parse(readFileSync(`${root}/config/tool-schemas.json`, 'utf8')).map(({ schema }) => schema);
  const ajv = new Ajv2020({ strict: false, verbose: true, code: { source: true, esm: true } });
  const names = Object.fromEntries(schemas.map((_schema, index) => [`check${index}`, `check${index}`]));
  for (const [index, schema] of schemas.entries()) ajv.addSchema(schema, `check${index}`);
  const entries = schemas.map((schema, index) => `[${JSON.stringify(JSON.stringify(schema))}, check${index}]`);
  return `${withoutPaths(standalone(ajv, names))}\nexport const argumentChecks = new Map([${entries.join()}]);\n`;
}

function withoutPaths(code) {
  return code.replaceAll(/schemaPath:"[^"]*",/g, '');
}

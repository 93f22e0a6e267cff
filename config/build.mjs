// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { build } from 'esbuild';
import { writeThirdPartyLicenses } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const readJson = (file) => JSON.parse(readFileSync(`${root}/${file}`, 'utf8'));
const versionIn = (file) => readJson(file).version;
const standalone = standaloneCode.default ?? standaloneCode;

/** The schemas of the built-in tools, of the settings and of themes, compiled now, so that a start loads no schema
 * compiler. Source: ajv, "Standalone validation code". */
const withPrecompiledSchemas = {
  name: 'precompiled-schemas',
  setup(plugin) {
    plugin.onResolve({ filter: /precompiled-schemas\.js$/ }, () => ({
      path: 'precompiled-schemas',
      namespace: 'compiled',
    }));
    plugin.onResolve({ filter: /\/validators\.js$/ }, () => ({ path: 'validators', namespace: 'compiled' }));
    plugin.onLoad({ filter: /.*/, namespace: 'compiled' }, async ({ path }) => ({
      contents: path === 'validators' ? validators() : await precompiledSchemas(),
      resolveDir: root,
    }));
  },
};

/** In the place of `src/config/validators.ts`. */
function validators() {
  const ajv = new Ajv({ allErrors: true, code: { source: true, esm: true } });
  ajv.addSchema(readJson('config/config.schema.json'), 'settings');
  ajv.addSchema(readJson('config/theme.schema.json'), 'theme');
  return standalone(ajv, { settings: 'settings', theme: 'theme' });
}

async function precompiledSchemas() {
  const folder = await mkdtemp(`${root}/node_modules/.agent-build-`);
  try {
    const names = { builtin: 'src/tools/builtin.ts', ajv: 'src/tools/ajv.ts' };
    await build({
      absWorkingDir: root,
      entryPoints: names,
      outdir: folder,
      outExtension: { '.js': '.mjs' },
      bundle: true,
      packages: 'external',
      format: 'esm',
      platform: 'node',
      logLevel: 'warning',
    });
    const { builtinTools } = await import(`${folder}/builtin.mjs`);
    const { Ajv2020, ajvOptions } = await import(`${folder}/ajv.mjs`);
    const ajv = new Ajv2020({ ...ajvOptions, code: { source: true, esm: true } });
    const schemas = builtinTools({
      timeoutS: 120,
      maxTimeoutS: 600,
      maxReadBytes: 1,
      env: {},
      protectedEnv: [],
      shell: 'sh',
    }).map((tool) => tool.input_schema);
    schemas.forEach((schema, index) => ajv.addSchema(schema, `s${index}`));
    const code = standalone(ajv, Object.fromEntries(schemas.map((_, index) => [`v${index}`, `s${index}`])));
    const entries = schemas.map((schema, index) => `[${JSON.stringify(JSON.stringify(schema))}, v${index}]`);
    return `${code}\nexport const precompiled = new Map([${entries.join(', ')}]);\n`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

await rm(`${root}/dist`, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/cli/main.ts'],
  outdir: 'dist',
  entryNames: '[name]',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  metafile: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  external: ['better-sqlite3', '@vscode/ripgrep', 'react-devtools-core', 'ws'],
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.DEV': '"false"',
    AGENT_VERSION: JSON.stringify(versionIn('package.json')),
  },
  // Packages in CommonJS ask for Node's own modules by `require`.
  banner: {
    js: "import{createRequire as createRequireHere}from'node:module';const require=createRequireHere(import.meta.url);",
  },
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [withPrecompiledSchemas],
});
await writeThirdPartyLicenses({ root, metafile, file: `${root}/dist/third-party-licenses.txt` });

// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { joinGroups } from './build-groups.mjs';
import { writeThirdPartyLicenses } from './third-party.mjs';
import { toCommonJs } from './to-commonjs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const versionIn = (file) => JSON.parse(readFileSync(`${root}/${file}`, 'utf8')).version;

/** What `string-width` makes when it is loaded takes 30 ms, and only text that is not plain needs it. */
const withLateConstants = {
  name: 'late-constants',
  setup(plugin) {
    plugin.onLoad({ filter: /node_modules\/(.*\/)?string-width\/index\.js$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8');
      const contents = source
        .replace(
          /^const segmenter = (new Intl\.Segmenter\(\));$/m,
          'let madeSegmenter; const segmenter = { segment: (text) => (madeSegmenter ??= $1).segment(text) };',
        )
        .replace(
          /^const rgiEmojiRegex = (\/.*\/v);$/m,
          'let madeRgi; const rgiEmojiRegex = { test: (text) => (madeRgi ??= $1).test(text) };',
        );
      if (!contents.includes('madeSegmenter')) throw new Error(`${path} is not what this build knows how to change`);
      return { contents };
    });
  },
};

/** A top-level `await` is nothing for CommonJS. Ink's layout engine has one: here it is ready when what `ink-panel.tsx`
 * gives as `ready` is. Ink has two for the tools of its own developers, which are left out. */
const withoutTopLevelAwait = {
  name: 'without-top-level-await',
  setup(plugin) {
    const changed = (path, changes) => {
      const source = readFileSync(path, 'utf8');
      return changes.reduce((text, [from, to]) => {
        if (!text.includes(from)) throw new Error(`${path} is not what this build knows how to change: ${from}`);
        return text.replaceAll(from, to);
      }, source);
    };
    plugin.onLoad({ filter: /node_modules\/yoga-layout\/dist\/src\/index\.js$/ }, ({ path }) => ({
      contents: changed(path, [
        [
          'const Yoga = wrapAssembly(await loadYoga());',
          'let Yoga; export const ready = loadYoga().then((assembly) => { Yoga = wrapAssembly(assembly); });',
        ],
        ['export default Yoga;', 'export { Yoga as default };'],
      ]),
    }));
    plugin.onLoad({ filter: /node_modules\/ink\/build\/reconciler\.js$/ }, ({ path }) => ({
      contents: changed(path, [['isDev()', 'false']]),
    }));
    plugin.onLoad({ filter: /src\/ui\/panels\/ink-panel\.tsx$/ }, ({ path }) => ({
      contents: `${readFileSync(path, 'utf8')}\nexport { ready } from 'yoga-layout';\n`,
      loader: 'tsx',
    }));
  },
};

/** The schemas of the built-in tools, compiled now, so that a start loads no schema compiler. Source: ajv, "Standalone
 * validation code". */
const withPrecompiledSchemas = {
  name: 'precompiled-schemas',
  setup(plugin) {
    plugin.onResolve({ filter: /precompiled-schemas\.js$/ }, () => ({
      path: 'precompiled-schemas',
      namespace: 'compiled',
    }));
    plugin.onLoad({ filter: /.*/, namespace: 'compiled' }, async () => ({
      contents: await precompiledSchemas(),
      resolveDir: root,
    }));
  },
};

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
    const { default: standaloneCode } = await import('ajv/dist/standalone/index.js');
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
    const code = (standaloneCode.default ?? standaloneCode)(
      ajv,
      Object.fromEntries(schemas.map((_, index) => [`v${index}`, `s${index}`])),
    );
    const entries = schemas.map((schema, index) => `[${JSON.stringify(JSON.stringify(schema))}, v${index}]`);
    return `${code}\nexport const precompiled = new Map([${entries.join(', ')}]);\n`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is loaded together, at what moment. */
const groups = [
  ['start', ['src/cli/run.ts', 'src/cli/chat.ts']],
  [
    'request',
    [
      'src/providers/http/endpoint-provider.ts',
      'src/providers/wires/chat-wire.ts',
      'src/providers/http/transport.ts',
      'src/providers/http/openai-client.ts',
    ],
  ],
  ['repl', ['src/cli/repl/repl.ts']],
  ['call', ['src/policy/assess.ts']],
  [
    'command',
    [
      'src/tools/process/start-child.ts',
      'src/tools/process/output-pipes.ts',
      'src/tools/process/watchdog.ts',
      'src/tools/changes/change-watch.ts',
    ],
  ],
];

const options = {
  absWorkingDir: root,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  external: ['bindings', '@vscode/ripgrep'],
  define: {
    'process.env.NODE_ENV': '"production"',
    'process.env.DEV': '"false"',
    AGENT_VERSION: JSON.stringify(versionIn('package.json')),
    SQLITE_DRIVER_VERSION: JSON.stringify(versionIn('node_modules/better-sqlite3/package.json')),
  },
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
};

await rm(`${root}/dist`, { recursive: true, force: true });
const { metafile } = await build({
  ...options,
  entryPoints: ['src/cli/main.ts'],
  outdir: 'dist',
  entryNames: '[name]',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  metafile: true,
  plugins: [withPrecompiledSchemas, withLateConstants, withoutTopLevelAwait],
});
await joinGroups({
  folder: `${root}/dist/chunks`,
  metafile,
  groups,
  apart: ['src/cli/main.ts', 'src/cli/repl/early-frame.ts'],
  options,
});
await toCommonJs(`${root}/dist`, options);
await writeThirdPartyLicenses({ root, metafile, file: `${root}/dist/third-party-licenses.txt` });

// Bundles src/ into dist/: one entry, split at every dynamic import, so that a path loads only what it uses.
import { execFileSync } from 'node:child_process';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withCompiledChecks } from './compiled-checks.mjs';
import { writeLibraryTypes } from './library-types.mjs';
import { writeThirdPartyLicenses } from './third-party.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const readJson = (file) => JSON.parse(readFileSync(`${root}/${file}`, 'utf8'));
const versionIn = (file) => readJson(file).version;

/** What every session loads. */
const startRoots = [
  'src/cli/run.ts',
  'src/frontends/repl/start-front-end.ts',
  'src/kernel/config/settings-check.ts',
  'src/kernel/providers/http/endpoint-provider.ts',
  'src/kernel/providers/wires/chat-request.ts',
  'src/kernel/providers/wires/chat-stream.ts',
  'src/features/hooks/hook-files.ts',
  'src/features/mcp/server-files.ts',
  'src/features/mcp/open-mcp.ts',
  'src/features/background-tasks/open-jobs.ts',
  'src/features/prompts-and-skills/open-commands.ts',
  'src/features/subagents/open-agents.ts',
  'src/features/attachments/open-pictures.ts',
  'src/features/prompts-and-skills/text-parts.ts',
  'src/features/subagents/agent-files.ts',
];

/** What a REPL loads besides: the sets of tools that it offers by itself. */
const replRoots = [
  'src/features/ask-and-plan/put-questions.ts',
  'src/features/todo/step-list.ts',
  'src/features/subagents/roles.ts',
  'src/features/background-tasks/background.ts',
  'src/features/background-tasks/jobs-tool.ts',
];

/** What a session loads besides where people bring something along: sets of tools, servers, skills, agents. */
const broughtRoots = [
  'src/features/code-execution/execute-code.ts',
  'src/features/custom-tools/open-custom.ts',
  'src/features/docs-search/open-docs.ts',
  'src/features/memory/open-memory.ts',
  'src/features/scheduled-tasks/schedule-tools.ts',
  'src/features/small-tools/clock.ts',
  'src/features/small-tools/file-facts.ts',
  'src/features/small-tools/key-values.ts',
  'src/features/small-tools/math.ts',
  'src/features/web/open-search.ts',
  'src/features/web/open-web.ts',
  'src/features/mcp/start-servers.ts',
  'src/features/memory/notes.ts',
  'src/features/prompts-and-skills/read-skills.ts',
  'src/features/prompts-and-skills/use-skill.ts',
  'src/features/memory/note-rows.ts',
];

/** What is loaded where nothing is brought along. */
const otherStarts = [
  'src/frontends/repl/repl.ts',
  'src/features/scheduled-tasks/repl-tasks.ts',
  'src/frontends/library/open-agent.ts',
  'src/kernel/permissions/permission-policy.ts',
];

/** Throws where two modules of one entry export the same name. */
function refuseEqualExports(outputs) {
  for (const roots of groups) {
    const names = Object.values(outputs).flatMap((file) => (roots.includes(file.entryPoint) ? file.exports : []));
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice !== undefined) throw new Error(`two modules of ${roots[0]} and on export \`${twice}\`: one name is lost`);
  }
}

/** Puts what is loaded together into one file, because Node takes half a millisecond to find and link each. esbuild
 * makes one file of the modules that the same entries reach. So each `import()` that reaches some of them goes to an
 * entry that reaches all, and all that name roots of one list go to the same entry. `inputs` and `outputs`: what a
 * build before found. */
function withFewFiles({ inputs, outputs }) {
  refuseEqualExports(outputs);
  const first = reached(inputs, ['src/cli/main.ts', 'src/ui/early-frame.ts']);
  const start = reached(inputs, startRoots);
  const repl = reached(inputs, replRoots);
  const brought = reached(inputs, broughtRoots);
  for (const path of repl) brought.delete(path);
  for (const path of reached(inputs, [...first, ...start, ...otherStarts])) {
    repl.delete(path);
    brought.delete(path);
  }
  const entries = new Map();
  for (const { imports } of Object.values(inputs))
    for (const { kind, path } of imports) {
      if (kind !== 'dynamic-import' || first.has(path)) continue;
      const isSome = (group, roots) => [...reached(inputs, roots)].some((found) => group.has(found));
      const besides = isSome(brought, [path]) ? broughtRoots : [];
      const along = isSome(repl, [path, ...besides]) ? [...replRoots, ...besides] : besides;
      const all = isSome(start, [path, ...along]) ? [...startRoots, ...along] : along;
      if (all.length > 0) entries.set(path, all);
    }
  return {
    name: 'few-files',
    setup(plugin) {
      plugin.onResolve({ filter: /^\.\.?\// }, ({ kind, path, resolveDir, namespace }) => {
        const source = relative(root, join(resolveDir, path)).replace(/\.js$/, '.ts');
        if (kind !== 'dynamic-import' || namespace !== 'file' || !entries.has(source)) return null;
        return { path: groupOf(source)[0], namespace: 'entry' };
      });
      plugin.onLoad({ filter: /.*/, namespace: 'entry' }, ({ path }) => {
        const lines = [
          ...entries.get(path).map((other) => `import './${other}';`),
          ...groupOf(path).map((other) => `export * from './${other}';`),
        ];
        return { contents: lines.join('\n'), resolveDir: root };
      });
    },
  };
}

/** Returns the modules that have one entry with `path`. */
const groups = [startRoots, replRoots, broughtRoots];
const groupOf = (path) => groups.find((roots) => roots.includes(path)) ?? [path];

/** Returns the modules that are loaded with `roots`. */
function reached(inputs, roots) {
  const found = new Set();
  const open = [...roots];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path) || !(path in inputs)) continue;
    found.add(path);
    open.push(...inputs[path].imports.filter(({ kind }) => kind !== 'dynamic-import').map((next) => next.path));
  }
  return found;
}

/** Node reads a table sooner as JSON in a text than as code. */
const withJsonAsText = {
  name: 'json-as-text',
  setup(plugin) {
    plugin.onLoad({ filter: /\/config\/.*\.json$/ }, ({ path }) => ({
      contents: `export default JSON.parse(${JSON.stringify(JSON.stringify(readJson(relative(root, path))))});`,
    }));
  },
};

const options = {
  absWorkingDir: root,
  entryPoints: [
    'src/cli/main.ts',
    'src/frontends/library/library.ts',
    'src/kernel/tools/page-worker.ts',
    'src/features/attachments/scale-worker.ts',
  ],
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
  // It finds its WebAssembly beside itself, so it goes along as it is.
  alias: { '@silvia-odwyer/photon-node': './photon_rs.cjs' },
  external: [
    'better-sqlite3',
    '@vscode/ripgrep',
    'react-devtools-core',
    'ws',
    'pg-native',
    'pg-cloudflare',
    './photon_rs.cjs',
  ],
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
  // Node prints the source line of an uncaught error.
  lineLimit: 200,
  legalComments: 'none',
  logLevel: 'warning',
};
// `npm start` builds once.
if (process.argv.includes('--once') && existsSync(`${root}/dist/agent.1`)) process.exit(0);
await rm(`${root}/dist`, { recursive: true, force: true });
const plugins = [withCompiledChecks, withJsonAsText];
const plan = await build({ ...options, write: false, plugins });
const { metafile } = await build({ ...options, plugins: [...plugins, withFewFiles(plan.metafile)] });
const photon = 'node_modules/@silvia-odwyer/photon-node';
await copyFile(`${root}/${photon}/photon_rs.js`, `${root}/dist/photon_rs.cjs`);
await copyFile(`${root}/${photon}/photon_rs_bg.wasm`, `${root}/dist/photon_rs_bg.wasm`);
await writeThirdPartyLicenses({ root, metafile, copied: [photon], file: `${root}/dist/third-party-licenses.txt` });
writeLibraryTypes(root);
// The manual page is made from the table of commands, by the program itself.
await writeFile(`${root}/dist/agent.1`, execFileSync(process.execPath, [`${root}/bin/agent.js`, 'help', '--man']));

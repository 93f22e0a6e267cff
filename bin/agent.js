#!/usr/bin/env node
// Process groups, signals and the shell are those of Unix.
if (process.platform === 'win32') {
  console.error(
    'agent: Windows itself is not supported: run agent in WSL. Install WSL with "wsl --install", open it with "wsl", and install Node and agent there.',
  );
  process.exit(2);
}
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || major === 21 || (major === 20 && minor < 19) || (major === 22 && minor < 14)) {
  console.error(
    `agent: Node ${process.version} is not supported\nInstall Node 22.14 or newer (or 20.19 or newer of 20).`,
  );
  process.exit(1);
}
// The cache lies beside the program and is as safe as the program's own files. Node 20 has none.
if (!process.argv.includes('--ephemeral'))
  process.getBuiltinModule('node:module').enableCompileCache?.(pathOf('../dist/compiled'));
await import('../dist/main.js').catch((error) => {
  const isBuilt = process.getBuiltinModule('node:fs').existsSync(pathOf('../dist/main.js'));
  console.error(
    isBuilt
      ? `agent: the program cannot be loaded: ${String(error).split('\n', 1)[0]}\nStart agent again, or install it anew.`
      : `agent: the program is not built yet\nRun npm run build in ${pathOf('..').slice(0, -1)}.`,
  );
  process.exit(1);
});

function pathOf(relative) {
  return process.getBuiltinModule('node:url').fileURLToPath(new URL(relative, import.meta.url));
}

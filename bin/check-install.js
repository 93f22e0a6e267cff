// Runs before npm installs what the program needs. Where that would end in pages of compiler output, says what is missing.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const { env, platform, version } = process;

const isThere = (name) =>
  (env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

/** What node-gyp needs, each with the programs of which one is enough. */
const needed = [
  ['python3', env.npm_config_python ?? env.PYTHON ?? 'python3', 'python'],
  ['make', env.MAKE ?? 'make', 'gmake'],
  ['a C++ compiler', (env.CXX ?? 'c++').split(' ')[0], 'c++', 'g++', 'clang++'],
];

const installers = [
  ['apt-get', 'apt-get install -y python3 make g++'],
  ['apk', 'apk add python3 make g++'],
  ['dnf', 'dnf install -y python3 make gcc-c++'],
  ['pacman', 'pacman -S --needed python make gcc'],
  ['xcode-select', 'xcode-select --install'],
];

// better-sqlite3 has ready binaries for Node 22 and newer alone.
if (Number(version.slice(1).split('.')[0]) < 22 && platform !== 'win32') {
  const missing = needed
    .filter(([, ...programs]) => !programs.some((program) => program.includes('/') || isThere(program)))
    .map(([what]) => what);
  if (missing.length > 0) {
    const how =
      installers.find(([program]) => isThere(program))?.[1] ?? 'install them by the package manager of the system';
    console.error(
      `agent needs better-sqlite3, which npm has to compile under Node ${version}. Missing for that: ${missing.join(', ')}.\n` +
        `Use Node 22.14 or newer, for which it comes compiled, or: ${how}`,
    );
    process.exit(1);
  }
}

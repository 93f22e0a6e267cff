import type { PathFacts } from '../facts.js';

const maxBytes = 65_536;
/** Settings of cargo and rustup by which even `cargo tree` starts a program of choice. */
const naming = /^\s*(?:\w+\.)*["']?(?:rustc(?:-\w+)*|runner|linker|credential-\w+|include|path|command|rustdoc)["']?\s*=|^\s*\[\s*(?:alias|env|credential|host)/im;

/** True where no folder from `cwd` up to the root names a program in the settings of cargo or rustup. The home directory's own settings are
 *  the user's. A file that cannot be read whole, or is a link, counts as naming one. */
export async function hasPlainCargo(cwd: string, facts: PathFacts): Promise<boolean> {
  for (let folder = cwd, depth = 0; depth < 64; depth++) {
    const base = folder === '/' ? '' : folder;
    const own = folder === facts.home ? [] : ['.cargo/config.toml', '.cargo/config'];
    const files = [...own, 'rust-toolchain.toml', 'rust-toolchain'];
    const found = await Promise.all(files.map((file) => facts.readWhole(`${base}/${file}`, maxBytes)));
    if (found.includes('refused')) return false;
    if (found.some((item) => typeof item !== 'string' && naming.test(new TextDecoder().decode(item)))) return false;
    if (folder === '/') return true;
    folder = folder.slice(0, Math.max(1, folder.lastIndexOf('/')));
  }
  return false;
}

import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { ensurePrivateDirectory } from '../config/paths.js';

type Load = (module: NodeJS.Module, filename: string) => void;
/** A file of the program that was compiled, the sum of its source, and where it is kept. */
interface Compiled { readonly script: Script; readonly sourceSum: number; readonly file: string }

/** What is smaller is compiled faster than it is found. */
const leastChars = 8192;
/** Sums of the source and of what follows: V8 looks at neither, and a damaged cache ends the process. */
const headBytes = 8;

/** Loads the larger files of this program as V8 left them compiled at the end of an earlier run, with every function that had run by then. All files of a run
 *  are kept again where one of them was not there yet, so that a run which does more leaves more. Such a file cannot `import()`; ours are `require`d. Source: nodejs.org, `vm.Script`, "cachedData". */
export function keepCompiledFiles(folder: string): void {
  const { extensions } = createRequire(import.meta.url);
  const plain = extensions['.js'] as Load;
  const place = join(folder, `${process.versions.v8}-${process.arch}`);
  const ours = dirname(import.meta.url); // in the built program the path of this file
  const compiled: Compiled[] = [];
  let isNew = false;

  const load: Load = (module, filename) => {
    const source = dirname(filename) === ours ? readFileSync(filename, 'utf8') : '';
    if (source.length < leastChars) { plain(module, filename); return; }
    const file = join(place, basename(filename));
    const sourceSum = crc32(source);
    const cachedData = kept(file, sourceSum);
    const script = new Script(`(function(exports,require,module,__filename,__dirname){${source}\n})`, { filename, ...(cachedData ? { cachedData } : {}) });
    if (!cachedData || script.cachedDataRejected === true) isNew = true;
    compiled.push({ script, sourceSum, file });
    const run = script.runInThisContext() as (this: unknown, exports: unknown, require: (id: string) => unknown, module: NodeJS.Module, filename: string, folder: string) => void;
    run.call(module.exports, module.exports, (id) => module.require(id) as unknown, module, filename, dirname(filename));
  };
  extensions['.js'] = load;
  process.once('exit', () => { if (isNew) keep(place, ours, compiled); });
}

/** Undefined where nothing sound is kept of this source. */
function kept(file: string, sourceSum: number): Buffer | undefined {
  try {
    const bytes = readFileSync(file);
    const data = bytes.subarray(headBytes);
    return bytes.readUInt32LE(0) === sourceSum && bytes.readUInt32LE(4) === crc32(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

/** Each file is there whole or not at all; what belongs to no file of the program any more goes. It saves time and nothing else, so a failure is nobody's concern. */
function keep(place: string, ours: string, compiled: readonly Compiled[]): void {
  try {
    ensurePrivateDirectory(place);
    for (const { script, sourceSum, file } of compiled) {
      const data = script.createCachedData();
      const head = Buffer.alloc(headBytes);
      head.writeUInt32LE(sourceSum, 0);
      head.writeUInt32LE(crc32(data), 4);
      const made = `${file}.${process.pid}`;
      writeFileSync(made, Buffer.concat([head, data]), { mode: 0o600 });
      renameSync(made, file);
    }
    for (const name of readdirSync(place)) if (!existsSync(join(ours, name))) rmSync(join(place, name));
  } catch { /* no room, no right */ }
}

import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire, Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { ensurePrivateDirectory } from '../config/locations.js';

type Load = (module: NodeJS.Module, filename: string) => void;
type Body = (
  this: unknown,
  exports: unknown,
  require: (id: string) => unknown,
  module: NodeJS.Module,
  filename: string,
  folder: string,
) => void;
/** A file of the program that was compiled, the sum of its source, and where it is kept. */
interface Compiled {
  readonly script: Script;
  readonly sourceSum: number;
  readonly file: string;
}

/** What is smaller is compiled faster than it is found. */
const leastBytes = 8192;
/** Sums of the source and of what follows: V8 looks at neither, and a damaged cache ends the process. */
const headBytes = 8;
const wrapper = ['(function(exports,require,module,__filename,__dirname){', '\n})'] as const;

/** Loads the files of this program, the larger ones as V8 left them compiled at the end of an earlier run, with every
 * function that had run by then. All files of a run are kept again where one of them was not there yet, so that a run
 * which does more leaves more. They find each other by name, without Node's search for modules; packages are Node's.
 * Returns what keeps them. Source: nodejs.org, `vm.Script`, "cachedData". */
export function keepCompiledFiles(folder: string): () => void {
  const { extensions, cache } = createRequire(import.meta.url);
  const plain = extensions['.js'] as Load;
  const place = join(folder, `${process.versions.v8}-${process.arch}`);
  const ours = dirname(import.meta.url); // in the built program the path of this file
  const compiled: Compiled[] = [];
  const read = createReader();
  let isNew = false;

  const load: Load = (module, filename) => {
    const bytes = dirname(filename) === ours ? read(filename, wrapper) : null;
    // What V8 keeps cannot `import()`: a small file that imports a package is Node's.
    if (bytes === null || (bytes.length < leastBytes && bytes.includes('import('))) {
      plain(module, filename);
      return;
    }
    const body = compile(bytes, filename).runInThisContext() as Body;
    body.call(module.exports, module.exports, (id) => requireFrom(module, id), module, filename, ours);
  };

  const compile = (bytes: Buffer, filename: string): Script => {
    const source = bytes.toString();
    if (bytes.length < leastBytes) return new Script(source, { filename });
    const file = join(place, basename(filename));
    const sourceSum = crc32(bytes);
    const cachedData = kept(read(file), sourceSum);
    const script = new Script(source, { filename, ...(cachedData ? { cachedData } : {}) });
    if (!cachedData || script.cachedDataRejected === true) isNew = true;
    compiled.push({ script, sourceSum, file });
    return script;
  };

  const requireFrom = (parent: NodeJS.Module, id: string): unknown => {
    const filename = id.startsWith('./') ? `${ours}/${id.slice(2)}` : null;
    const known = filename === null ? undefined : cache[filename];
    if (known) return known.exports;
    if (filename === null || !existsSync(filename)) return parent.require(id);
    const module = new Module(filename, parent);
    Object.assign(module, { filename, paths: parent.paths });
    cache[filename] = module;
    try {
      load(module, filename);
    } catch (error) {
      Reflect.deleteProperty(cache, filename);
      throw error;
    }
    module.loaded = true;
    return module.exports;
  };

  extensions['.js'] = load;
  return () => {
    if (isNew) keep(place, ours, compiled);
    isNew = false;
  };
}

type Reader = (file: string, around?: readonly [string, string]) => Buffer | null;

/** Reads whole files, with texts put before and behind; null where that fails. What was read is overwritten by the
 * next: all is read into one buffer. */
function createReader(): Reader {
  let buffer = Buffer.alloc(0);
  return (file, [head, tail] = ['', '']) => {
    let opened: number | null = null;
    try {
      opened = openSync(file, 'r');
      const { size } = fstatSync(opened);
      const end = head.length + size;
      if (buffer.length < end + tail.length) buffer = Buffer.allocUnsafeSlow((end + tail.length) * 2);
      buffer.write(head);
      if (readSync(opened, buffer, head.length, size, 0) < size) return null;
      buffer.write(tail, end);
      return buffer.subarray(0, end + tail.length);
    } catch {
      return null;
    } finally {
      if (opened !== null) closeSync(opened);
    }
  };
}

/** What is kept, without the sums; undefined where it is not sound or not of this source. */
function kept(bytes: Buffer | null, sourceSum: number): Buffer | undefined {
  if (bytes === null || bytes.length < headBytes) return undefined;
  const data = bytes.subarray(headBytes);
  return bytes.readUInt32LE(0) === sourceSum && bytes.readUInt32LE(4) === crc32(data) ? data : undefined;
}

/** Each file is there whole or not at all; what belongs to no file of the program any more goes. It saves time and
 * nothing else, so a failure is nobody's concern. */
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
  } catch {
    /* no room, no right */
  }
}

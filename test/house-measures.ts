import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';

/** What a reader of a tree of sources pays: files to open, names to tell apart, lines to scroll. */
export interface HouseMeasures {
  /** Those of the toolsets are counted apart. */
  readonly files: number;
  readonly filesOfToolsets: number;
  readonly medianLines: number;
  readonly largest: number;
  /** Percent of the files that exactly one other source imports at its top. */
  readonly oneImporterPercent: number;
  /** Percent of the files of 30 lines or fewer. */
  readonly smallPercent: number;
  readonly bytesALine: number;
  readonly linesOver120: number;
  /** Names of files, without their ending, that stand in two folders. */
  readonly doubledNames: readonly string[];
  /** Folders with more than 20 files of their own. */
  readonly crowdedFolders: readonly string[];
  /** Files whose name begins with that of their folder. */
  readonly repeatedPrefixes: readonly string[];
}

/** The rooms of the toolsets: their tools, their tables, the ports between the two, what fires tasks, and the library. */
const ofToolsets =
  /^(?:toolsets|extensions|telemetry|library|store\/(?:sets|postgres)|(?:cli|commands)\/(?:tasks|mcp|doors|connect|team|comfort|histories))\/|^(?:library|core\/(?:tasks|notes|form|hooks|files\/\w+|stream-lines|telemetry|team)|cli\/session\/(?:open-(?:followers|team|telemetry|toolsets|search|commands|mcp|hooks|agents|jobs|pictures|login)|set-makers|policy\/allowed-tools|run-agent)|cli\/project-files|providers\/native-search)\.ts$/;
const specifiers = /^(?:import|export)\b(?:[^;'"`]*?\bfrom\s*)?\s*'(\.[^'\n]+)'|\bimport\s*\(\s*'(\.[^'\n]+)'/gm;

/** Measures the TypeScript sources below `root`. */
export function measureHouse(root: string): HouseMeasures {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name));
  const texts = new Map(names.map((name) => [name, readFileSync(join(root, name), 'utf8')]));
  const lines = [...texts.values()].flatMap((text) => text.split('\n').slice(0, -1));
  const lengths = [...texts.values()].map((text) => text.split('\n').length - 1).toSorted((a, b) => a - b);
  const importers = importersOf(texts);
  const percent = (part: number): number => (100 * part) / names.length;
  return {
    files: names.length - names.filter((name) => ofToolsets.test(name)).length,
    filesOfToolsets: names.filter((name) => ofToolsets.test(name)).length,
    medianLines: lengths[lengths.length >> 1] ?? 0,
    largest: lengths.at(-1) ?? 0,
    oneImporterPercent: percent([...importers.values()].filter((from) => from.size === 1).length),
    smallPercent: percent(lengths.filter((length) => length <= 30).length),
    bytesALine: Buffer.byteLength([...texts.values()].join('')) / lines.length,
    linesOver120: lines.filter((line) => line.length > 120).length,
    doubledNames: repeated(names.map((name) => basename(name).replace(/\.tsx?$/, ''))),
    crowdedFolders: [...new Set(names.map((name) => dirname(name)))].filter(
      (folder) => names.filter((name) => dirname(name) === folder).length > 20,
    ),
    repeatedPrefixes: names.filter((name) => {
      const folder = basename(dirname(name)).replace(/s$/, '');
      return basename(name).startsWith(`${folder}-`) || basename(name).startsWith(`${basename(dirname(name))}-`);
    }),
  };
}

function importersOf(texts: ReadonlyMap<string, string>): Map<string, Set<string>> {
  const importers = new Map([...texts.keys()].map((name) => [name, new Set<string>()]));
  for (const [name, text] of texts) {
    for (const [, specifier = ''] of text.matchAll(specifiers)) {
      const target = normalize(join(dirname(name), specifier)).replace(/\.js$/, '');
      (importers.get(`${target}.ts`) ?? importers.get(`${target}.tsx`))?.add(name);
    }
  }
  return importers;
}

function repeated(names: readonly string[]): string[] {
  return [...new Set(names.filter((name, index) => names.indexOf(name) !== index))].toSorted();
}

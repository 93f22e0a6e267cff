import { isInside, normalise } from '../guarded-paths.js';
import { candidates, type FoundCommand, type ShellContext, unknownText } from './invocation.js';

/** The analysis of a command line, as far as it concerns paths. */
interface Analysed {
  readonly commands: readonly FoundCommand[];
  readonly folders: readonly string[];
  readonly writes: readonly string[];
}

/** More paths than this are not named. A reader that finds one more says so. */
const maxNamedPaths = 2000;
const maxTokens = 1000;
const maxLength = 4096;

/** Returns every path that a command line names, absolute, by text alone: what it is known to write, the words of its
 * programs, then whatever else in its text may be a path (code in quotes, here-documents). Wildcards stay as they are,
 * and parts that only the running shell knows become `*`. Which of them exist is for the reader to find out. */
export function namedPaths(command: string, analysis: Analysed, context: ShellContext): readonly string[] {
  const folders = [...new Set(analysis.folders.flatMap((folder) => [folder, context.landings?.get(folder) ?? folder]))];
  const found = new Set<string>();
  const add = (text: string, isWord: boolean): void => {
    for (const path of absolutePaths(text, folders, context.home)) {
      if (found.size > (isWord ? maxNamedPaths : maxNamedPaths - 1)) return;
      if (isWord || !isInside(context.cwd, normalise(path))) found.add(path);
    }
  };
  for (const path of analysis.writes) add(path, true);
  for (const { argv, words } of analysis.commands) {
    if (movers.has(argv[0] ?? '')) continue;
    for (const value of words.slice(1).flat()) for (const text of candidates(value)) add(text, true);
  }
  for (const token of tokensOf(command)) add(token, false);
  return [...found];
}

/** Returns the paths that the texts among the arguments of a tool may name. */
export function pathsInTexts(texts: readonly string[], cwd: string, home: string): readonly string[] {
  const found = texts.flatMap((text) => [text, ...tokensOf(text)]);
  return [...new Set(found.flatMap((text) => absolutePaths(text, [cwd], home)))]
    .filter((path) => !isInside(cwd, normalise(path)))
    .slice(0, maxNamedPaths);
}

/** Programs that only change where the others start. */
const movers = new Set(['cd', 'pushd', 'popd']);

function tokensOf(text: string): readonly string[] {
  const tokens = text.slice(0, 65_536).match(/[^\s'"`()<>|;&,={}[\]]+/g) ?? [];
  return [...new Set(tokens.filter((token) => !token.startsWith('-')))].slice(0, maxTokens);
}

function absolutePaths(text: string, folders: readonly string[], home: string): readonly string[] {
  const known = text.replace(new RegExp(`${unknownText}+`, 'g'), '*');
  if (known === '' || known === '*' || known.length > maxLength || known.includes('\n')) return [];
  if (known === '~' || known.startsWith('~/')) return [home + known.slice(1)];
  return known.startsWith('/') ? [known] : folders.map((folder) => `${folder}/${known}`);
}

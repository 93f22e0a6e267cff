import { isInside } from '../paths.js';
import { pathsOf } from './shell-findings.js';
import { unknownText, type Arg, type Scan } from './shell-types.js';

/** Listers that leave out hidden files by themselves. */
const skipsHidden = /^(?:rg|fd|fdfind)$/;
/** Files of one extension, of which none is a setting that some program obeys. */
const plainKind = /^\*?[\w*-]*\.(?!json|ya?ml|toml|sh|bash|zsh|fish|xml|lock|cfg|ini|conf|env)\w+$/;
const plainFolder = /^[\w][\w-]*(?:\/[\w][\w.-]*)*\/?$/;

/** The text of a word that stands for a file found by a lister: below the workspace and neither hidden nor protected,
 * so that writing to it is an ordinary change; null where that is not plain from the words. `words` are those of find,
 * or of the command before a pipe, its name first. */
export function listedBelow(words: readonly Arg[], scan: Scan): string | null {
  const { workspace } = scan.context;
  if (scan.lostCwd || !scan.cwds.every((cwd) => isInside(cwd, workspace))) return null;
  const texts = words.map(({ text }) => text);
  if (texts.some((text) => text.includes(unknownText) || /^[/~]|\.\.|[$|;`]/.test(text))) return null;
  return isNarrow(texts) || isVisible(texts) || isNamed(texts, scan) ? `${workspace}/${unknownText}` : null;
}

/** Only files of one extension. */
function isNarrow(texts: readonly string[]): boolean {
  return (
    texts.some((text, index) => /^-i?name$/.test(texts[index - 1] ?? '') && plainKind.test(text)) ||
    texts.some((text) => text.startsWith('--include=') && plainKind.test(text.slice(10))) ||
    (texts[0] === 'ls' &&
      texts
        .slice(1)
        .every(
          (text) =>
            /^-|^[\w/-]*\*\.\w+$/.test(text) && (text.startsWith('-') || plainKind.test(text.replace(/^.*\//, ''))),
        ) &&
      texts.length > 1)
  );
}

function isVisible(texts: readonly string[]): boolean {
  return (
    skipsHidden.test(texts[0] ?? '') && !texts.some((text) => /^(?:-\w*[uH.]|--hidden|--no-ignore\S*|-uu+)$/.test(text))
  );
}

/** Only a folder of the workspace that is not the whole of it: the first operand of find, the last of a search. */
function isNamed(texts: readonly string[], scan: Scan): boolean {
  const { workspace } = scan.context;
  const folders = texts.slice(1).filter((text) => plainFolder.test(text) && !text.startsWith('.git'));
  const folder =
    texts[0] === 'grep'
      ? /^(?:src|tests?|lib|app|packages|docs)(?:\/|$)/.exec(texts.at(-1) ?? '')?.input
      : texts[0] === 'find'
        ? folders[0]
        : undefined;
  return (
    folder !== undefined &&
    !texts.some((text) => /^\.\/?$/.test(text)) &&
    pathsOf(folder, scan).every((path) => isInside(path, workspace) && path !== workspace)
  );
}

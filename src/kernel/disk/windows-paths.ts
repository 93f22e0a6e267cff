import { readBoundedText } from './bounded-file.js';

export interface WslPlaces {
  /** The name of this distribution, WSL_DISTRO_NAME. */
  readonly distribution: string | undefined;
  /** The folder of the drives, `/mnt/`. */
  readonly drives: string;
}

/** Returns where this distribution has the files of Windows. Source: wsl.conf(5), `[automount] root`. */
export function wslPlaces(env: Readonly<Record<string, string | undefined>>, file = '/etc/wsl.conf'): WslPlaces {
  let text = '';
  try {
    text = readBoundedText(file, { maxBytes: 65_536, longer: 'refuse', links: 'follow' }) ?? '';
  } catch {
    /* The defaults apply. */
  }
  const section = /^\[automount\]\s*$([^[]*)/im.exec(text)?.[1] ?? '';
  const root = /^\s*root\s*=\s*"?([^"\n#]+?)"?\s*$/im.exec(section)?.[1] ?? '/mnt/';
  return { distribution: env['WSL_DISTRO_NAME'], drives: root.endsWith('/') ? root : `${root}/` };
}

/** Returns the path here of a path of Windows (`C:\Users\me`, `\\wsl$\Ubuntu\home`), as `wslpath -u` does. Null: it is
 * no such path, or one of another machine or distribution. */
export function fromWindowsPath(path: string, { distribution, drives }: WslPlaces): string | null {
  const [, drive, rest = ''] = /^([A-Za-z]):[\\/](.*)$/s.exec(path) ?? [];
  if (drive !== undefined) return `${drives}${drive.toLowerCase()}/${rest.replaceAll('\\', '/')}`;
  const [, name, inside = ''] = /^[\\/]{2}wsl(?:\$|\.localhost)[\\/]([^\\/]+)(.*)$/is.exec(path) ?? [];
  if (name === undefined || name.toLowerCase() !== distribution?.toLowerCase()) return null;
  return inside.replaceAll('\\', '/') || '/';
}

/** Returns the text with its paths here, if it is nothing but paths of Windows: as a terminal pastes files that are
 * dragged onto it, in double quotes where they contain blanks. Null for any other text. */
export function pastedWindowsPaths(text: string, places: WslPlaces): string | null {
  const whole = text.trim();
  if (!/^"?(?:[A-Za-z]:[\\/]|\\\\wsl)[^\n]*$/i.test(whole)) return null;
  const isQuoted = /^"[^"]+"(?:\s+"[^"]+")*$/.test(whole);
  const paths = isQuoted ? [...whole.matchAll(/"([^"]+)"/g)].map(([, path = '']) => path) : [whole];
  if (!isQuoted && whole.includes('"')) return null;
  const here = paths.map((path) => fromWindowsPath(path, places));
  if (here.some((path) => path === null)) return null;
  return here
    .map((path) => (/^[\w./@:+-]+$/.test(path ?? '') ? path : `'${path?.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

import { compileGlobs, shellGlob } from './globs.js';
import { lastName } from './paths.js';

/** Paths that stand for what `fs.deny` names when a word with wildcards is tried against it. */
const examples = [
  '.env',
  '.env.local',
  '.env.production',
  'prod.env',
  '.netrc',
  '.npmrc',
  '.pgpass',
  '.git-credentials',
  'id_rsa',
  'id_ed25519',
  'server.pem',
  'private.key',
  'credentials.json',
  'secrets.yml',
  'service-account.json',
];
const homeExamples = [
  '.ssh/id_rsa',
  '.ssh/id_ed25519',
  '.ssh/config',
  '.ssh/authorized_keys',
  '.aws/credentials',
  '.aws/config',
  '.netrc',
  '.npmrc',
  '.pgpass',
  '.git-credentials',
  '.gnupg/secring.gpg',
  '.kube/config',
  '.docker/config.json',
  '.config/gh/hosts.yml',
  '.config/gcloud/credentials.db',
  '.bash_history',
  '.zsh_history',
  '.env',
  '.azure/accessTokens.json',
];
const systemExamples = [
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/sudoers',
  '/proc/1/environ',
  '/proc/self/environ',
  '/proc/12345/environ',
  '/etc/ssh/ssh_host_rsa_key',
  '/run/secrets/token',
];

export interface SecretPaths {
  /** True for an absolute path of a file that holds a secret. */
  matches(path: string): boolean;
  /** True where an absolute path with wildcards may name such a file; a bare `*` names nothing in particular and does
   * not count. */
  mayMatch(glob: string): boolean;
  /** True where a filter over the names of files picks such files rather than files of any name: a glob, in which `*`
   * stands for a leading dot as well, or a regular expression, which may match any part of the name. */
  singlesOut(filter: string, kind: 'glob' | 'regex'): boolean;
}

/** Tests over secret files for one list of globs (`fs.deny`). `home` is absolute. */
export function createSecretPaths(globs: readonly string[], home: string): SecretPaths {
  const matches = compileGlobs(globs, home);
  let known: { readonly absolute: readonly string[]; readonly names: readonly string[] } | null = null;
  const examplesOf = (): NonNullable<typeof known> =>
    (known ??= {
      absolute: [...homeExamples.map((name) => `${home}/${name}`), ...systemExamples].filter(matches),
      names: examples.filter((name) => matches(`/${name}`)),
    });
  return {
    matches,
    singlesOut(filter, kind) {
      const picks = kind === 'glob' ? globFilter(filter) : regexFilter(filter);
      const { names } = examplesOf();
      const takes = (name: string): boolean => picks(name) && !matches(`/${name}`);
      const named = `/${filter.replace(/^(?:\*\*\/|\.?\/)+/, '')}`;
      if (takes('xq.txt')) return false;
      return matches(named) || names.some((name) => picks(name) && !takes(plainName(name)));
    },
    mayMatch(glob) {
      if (matches(glob)) return true;
      const test = shellGlob(glob);
      const { absolute, names } = examplesOf();
      if (absolute.some(test)) return true;
      const last = lastName(glob);
      if (/^[*?[\]\u0000]*$/.test(last)) return false;
      const directory = glob.slice(0, glob.length - last.length);
      const byName = shellGlob(last);
      return !/^\*\.\w+$/.test(last) ? names.some(byName) : matches(`${directory}x${last.slice(1)}`);
    },
  };
}

/** A name of the same kind that says nothing: a filter that takes it as well looks at more than secrets. */
function plainName(name: string): string {
  return `xq${/(?<=.)\.\w+$/.exec(name)?.[0] ?? ''}`;
}

function globFilter(filter: string): (name: string) => boolean {
  try {
    const test = compileGlobs([lastName(filter).replaceAll('[!', '[^')], '');
    return (name) => test(`/${name}`);
  } catch {
    return () => true;
  }
}

/** Also with the brackets and bars of basic expressions, which a backslash makes signs. */
function regexFilter(filter: string): (name: string) => boolean {
  try {
    const tests = [filter, filter.replace(/\\([()|])/g, '$1')].map((text) => new RegExp(text, 'i'));
    return (name) => tests.some((test) => test.test(name) || test.test(`./${name}`));
  } catch {
    return () => true;
  }
}

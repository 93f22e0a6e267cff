import { change, danger } from './shell-findings.js';
import type { Arg, Finding, Invocation } from './shell-types.js';

/** A package that is named by where it lies instead of by its name in a registry. */
export const remoteSource =
  /^(?:https?:|git[+:@]|ssh:|github:|gitlab:|bitbucket:|gist:|file:|svn\+|hg\+|bzr\+)|^[\w.-]+\/[\w.-]+(?:#.*)?$|\.(?:tgz|tar\.gz|whl)$|^\/|^\.\.\/|@(?:https?:|git[+:]|npm:|file:)/;

/** Packages of a name come from the registry that the project chose; addresses, other registries and global installs do
 * not. */
export function installs(call: Invocation, names: readonly Arg[]): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none'))
    return danger(call, 'installs what is known only when it runs');
  const address = names.find(({ text }) => remoteSource.test(text) && !/^@[\w.-]+\/[\w.-]+/.test(text));
  if (address) return danger(call, `installs from ${address.text}`);
  if (
    words.some(
      (text) =>
        /^(?:-g|--global|--location=global|--registry|--index-url|--extra-index-url|--trusted-host|--find-links|--source|--break-system-packages|--user|--user-install|--target|--prefix|--root|--install-dir|--bindir|-i|-t|-c|--channel|-s)(?:=|$)/.test(
          text,
        ) &&
        !(text === '-s' && call.name !== 'gem') &&
        !(text === '-c' && !/^(?:conda|mamba)$/.test(call.name)) &&
        !(text === '-i' && call.name === 'npm') &&
        !(text === '-t' && call.name === 'cargo'),
    )
  )
    return danger(call, 'installs outside the project or from another registry');
  return change(call, 'installs packages, which may run code');
}

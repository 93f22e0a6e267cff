import { change, danger } from './shell-findings.js';
import { asks } from './shell-queries.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

export const systemPackageHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...[
    'apt',
    'apt-get',
    'aptitude',
    'apt-key',
    'add-apt-repository',
    'yum',
    'dnf',
    'zypper',
    'pacman',
    'yay',
    'paru',
    'apk',
    'emerge',
    'xbps-install',
    'snap',
    'flatpak',
    'brew',
    'port',
    'choco',
    'winget',
    'scoop',
    'rpm',
    'rpmquery',
    'dpkg',
    'softwareupdate',
    'mas',
    'opkg',
    'eopkg',
    'swupd',
    'microdnf',
    'rpm-ostree',
    'tdnf',
  ].map((name): [string, Handler] => [name, systemPackages]),
  ...[
    'nix-env',
    'nix',
    'nix-shell',
    'nix-build',
    'nixos-rebuild',
    'nix-collect-garbage',
    'nix-store',
    'nix-channel',
    'home-manager',
    'guix',
  ].map((name): [string, Handler] => [name, nix]),
  ...['cpan', 'cpanm', 'pecl', 'pear', 'luarocks', 'easy_install', 'cargo-binstall', 'eget', 'mint', 'krew'].map(
    (name): [string, Handler] => [
      name,
      (call) =>
        /^(?:list|search|show|info|-l|help)$/.test(call.args[0]?.text ?? '')
          ? change(call, 'asks for packages')
          : danger(call, 'installs outside the project'),
    ],
  ),
]);

const questions =
  /^(?:list|search|show|info|policy|depends|rdepends|uses|-l|-L|-s|-S|-p|-q\w*|--list|--listfiles|--status|--search|-Q\w*|-Ss|-Si|--query|outdated|deps|config|doctor|leaves|--prefix|--print-architecture|-W|why|find|history|provides|whatprovides|repoquery|repolist|version|desc|cat|changelog|changes|services list)$/;

function systemPackages(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  if (
    words.some((text) =>
      /^--(?:root|dbpath|installroot|config-file|repofrompath|eval|define|pipe|load|macros|rcfile|setopt|config|hookdir)|^-[ocDE]|^-q\w*[DE]|^--fix$/.test(
        text,
      ),
    )
  )
    return danger(call, 'is given settings of choice');
  return words.length === 0 || isQuestion(call.name, words)
    ? asks(call)
    : danger(call, 'changes the programs of the machine');
}

/** Some take the question as an option, and `-S` is to install for pacman and to search for dpkg. */
function isQuestion(name: string, words: readonly string[]): boolean {
  const first = words[0] ?? '';
  const verb = words.find((text) => !text.startsWith('-')) ?? '';
  if (/^(?:rpm|dpkg|pacman|rpmquery)$/.test(name) || first === '--prefix')
    return name === 'rpmquery' || (questions.test(first) && !(name === 'pacman' && first === '-S'));
  return questions.test(verb);
}

function nix(call: Invocation): readonly Finding[] {
  return /^(?:search|show|--version)$/.test(call.args[0]?.text ?? '')
    ? change(call, 'asks for packages')
    : danger(call, 'changes the programs of the machine');
}

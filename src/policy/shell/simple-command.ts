import { builtinHandlers } from './builtins.js';
import { cloudHandlers, clusterHandlers, containerHandlers } from './clouds.js';
import { archiveHandlers, fileHandlers } from './file-programs.js';
import { findHandlers } from './finders.js';
import { gitHandlers } from './git.js';
import { interpreterHandlers } from './interpreters.js';
import {
  type Arg,
  candidates,
  change,
  danger,
  type Finding,
  type Handler,
  type Invocation,
  isFetched,
  pathsOf,
  type Place,
  quoted,
  type Scan,
  secretIn,
  shown,
  unanalysable,
} from './invocation.js';
import { networkHandlers } from './network-programs.js';
import { npmHandlers, packageHandlers, systemPackageHandlers } from './packages.js';
import { taskFindings, unknownFindings, writtenFindings } from './project-scripts.js';
import { judgeReader, namesOnly, readers, searchText } from './readers.js';
import { awkHandlers, sedHandlers } from './sed-and-awk.js';
import { forgeHandlers, serviceHandlers } from './services.js';
import { asksTool } from './steering-files.js';
import { compilerHandlers, mediaHandlers, systemHandlers } from './system.js';
import { wrapperHandlers } from './wrappers.js';

const systemFolder = /^\/(?:usr\/(?:local\/)?)?s?bin\/|^\/opt\/homebrew\/bin\//;
const plainName = /^[\w./+:@%=,~[\]-]+$/;
const systemPath = /^\/(?:etc|usr|bin|sbin|lib\w*|opt|proc|sys|dev|run|var|boot|System|Library|Applications)(?:\/|$)/;

/** Judges one simple command: its words, then what its program does with them. `prefixed` says that assignments stand
 * before it which may change what it does. */
export function judge(argv: readonly Arg[], place: Place, scan: Scan, prefixed = false): readonly Finding[] {
  const head = argv[0];
  if (!head) return [];
  const findings = judgeNamed(head, argv.slice(1), place, scan, prefixed);
  const plain = argv.every((arg) => !arg.dynamic && !arg.glob && arg.values.length === 1);
  const exact = plain && !prefixed && place.started !== true && !scan.functions.has(head.text);
  scan.commands.push({ argv: argv.map(({ text }) => text), words: argv.map(({ values }) => values), findings, exact });
  return findings;
}

function judgeNamed(head: Arg, args: readonly Arg[], place: Place, scan: Scan, prefixed: boolean): readonly Finding[] {
  const unclear = nameProblem(head);
  if (unclear !== null) return unanalysable(unclear);
  const inSystem = systemFolder.test(head.text);
  const name = inSystem ? head.text.replace(/^.*\//, '') : head.text;
  const call = invocation(name, args, place, scan);
  const general = generalFindings(call);
  const special = specialFindings(call);
  const planted = special.length > 0 && !name.startsWith('git') ? plantedFindings(call) : [];
  const beside =
    prefixed && general.length + special.length === 0 && !readers.has(name)
      ? change(call, 'runs with changed variables')
      : [];
  return [...general, ...planted, ...special, ...beside];
}

function nameProblem(head: Arg): string | null {
  if (head.dynamic || head.glob || head.values.length > 1 || head.substitution !== 'none')
    return `the command name ${quoted(head.text)} is known only when it runs`;
  if (head.text === '') return 'a command without a name';
  return plainName.test(head.text) ? null : `the command name ${quoted(head.text)}`;
}

function invocation(name: string, args: readonly Arg[], place: Place, scan: Scan): Invocation {
  const deeper = (change: Partial<Place> = {}): Place => ({
    ...place,
    ...change,
    started: true,
    depth: place.depth + 1,
  });
  return {
    name,
    args,
    place,
    scan,
    argv: (inner, changed) =>
      place.depth > 60 ? unanalysable('it is nested too deeply') : judge(inner, deeper(changed), scan),
    script: (text, changed) => {
      if (place.depth > 60) return unanalysable('it is nested too deeply');
      scan.script(text, deeper(changed));
      return [];
    },
  };
}

const inspectors = new Set(['[', 'test', '[[', 'unset', 'export']);

function generalFindings(call: Invocation): readonly Finding[] {
  const { name, args, scan } = call;
  const leaking = inspectors.has(name) ? undefined : args.find((arg) => arg.secretVariable !== null);
  if (leaking)
    return [
      { risk: 'dangerous', reason: `${shown(call)} uses the secret variable $${leaking.secretVariable}`, fixed: true },
    ];
  if (namesOnly(call)) return [];
  const text = searchText(call);
  for (const arg of args) {
    if (text.has(arg)) continue;
    if (!arg.dynamic)
      for (const path of arg.values.flatMap((value) => pathsOf(value, scan)))
        if (path.length < 4096) scan.reads.add(path);
    const secret = secretIn(arg, scan);
    if (secret !== null)
      return [
        {
          risk: 'dangerous',
          reason: `${shown(call)} names the secret file ${secret.replaceAll('\0', '…')}`,
          fixed: true,
          targets: [secret],
        },
      ];
  }
  return [];
}

function specialFindings(call: Invocation): readonly Finding[] {
  const { name, args, scan } = call;
  const handler = commandHandlers.get(name) ?? familyHandler(name);
  if (scan.functions.has(name) && !handler && !readers.has(name)) return [];
  if (isVersionQuestion(call)) return asksTool(call);
  if (handler) return handler(call);
  const reader = readers.get(name);
  if (reader) return judgeReader(reader, call);
  if (name.includes('/')) return program(call);
  return [
    ...unknownFindings(call),
    ...change(
      call,
      args.length === 1 && args[0]?.text === '--help' ? 'runs an unknown program' : 'is not known to only read',
    ),
  ];
}

/** Families of programs that a system has many of. */
function familyHandler(name: string): Handler | undefined {
  if (
    /^(?:lv|vg|pv)(?!s$|display$|scan$)[a-z]+$|^(?:mkfs|fsck|mount|umount)\.|^(?:ip6?|eb|arp)tables-|^grub2?-/.test(
      name,
    )
  )
    return (call) => danger(call, 'changes disks or the network');
  return /^(?:python|pypy|ruby|perl|lua|php)\d[\d.]*$/.test(name)
    ? commandHandlers.get(name.replace(/[\d.]+$/, ''))
    : undefined;
}

const versioned = new Set([
  'node',
  'npm',
  'pnpm',
  'yarn',
  'npx',
  'bun',
  'deno',
  'python',
  'python3',
  'python2',
  'pip',
  'pip3',
  'ruby',
  'gem',
  'bundle',
  'perl',
  'php',
  'composer',
  'java',
  'javac',
  'mvn',
  'gradle',
  'go',
  'cargo',
  'rustc',
  'rustup',
  'gcc',
  'g++',
  'cc',
  'clang',
  'make',
  'cmake',
  'ninja',
  'git',
  'gh',
  'docker',
  'kubectl',
  'helm',
  'terraform',
  'tsc',
  'bash',
  'zsh',
  'sh',
  'curl',
  'wget',
  'tar',
  'sed',
  'gawk',
  'vim',
  'vi',
  'vimdiff',
  'nvim',
  'tmux',
  'ssh',
  'psql',
  'mysql',
  'sqlite3',
  'redis-cli',
  'ffmpeg',
  'openssl',
  'dotnet',
  'swift',
  'uv',
  'poetry',
  'ruff',
  'black',
  'eslint',
  'prettier',
  'jq',
  'rg',
  'fd',
  'lua',
  'R',
  'julia',
  'ghc',
  'elixir',
  'nginx',
  'brew',
  'aws',
  'gcloud',
  'code',
  'bun',
  'turbo',
  'nx',
  'protoc',
  'flutter',
  'dart',
  'kotlin',
  'scala',
  'sbt',
  'stack',
  'cabal',
  'zig',
  'nim',
  'opam',
  'mix',
  'buf',
  'minikube',
  'kind',
  'ansible',
  'vagrant',
  'packer',
  'vault',
  'consul',
  'az',
  'doctl',
  'heroku',
  'flyctl',
  'mongosh',
  'mariadb',
  'pg_dump',
  'pg_config',
  'duckdb',
  'zip',
  'gzip',
  'xz',
  'zstd',
  'rsync',
  'nano',
  'emacs',
  'fzf',
  'gdb',
  'lldb',
  'strace',
  'valgrind',
  'clangd',
  'clang-format',
  'clang-tidy',
  'shellcheck',
  'shfmt',
  'hadolint',
  'yamllint',
  'pandoc',
  'dot',
  'convert',
  'magick',
  'tox',
  'mypy',
  'pylint',
  'flake8',
  'conda',
  'podman',
  'pulumi',
  'ctags',
  'bazel',
  'meson',
  'scons',
  'autoconf',
  'pkg-config',
  'hugo',
  'jekyll',
  'rspec',
  'rake',
  'rails',
  'elm',
  'purs',
  'stylua',
  'golangci-lint',
  'gopls',
  'rust-analyzer',
  'cargo-clippy',
  'xcodebuild',
  'pod',
  'fastlane',
  'adb',
  'nasm',
  'yasm',
  'tofu',
  'k9s',
  'skaffold',
  'trivy',
  'cosign',
  'sops',
  'age',
  'gpg',
  'dotenv',
  'direnv',
  'asdf',
  'mise',
  'nvm',
  'pyenv',
  'rbenv',
  'volta',
  'glab',
  'hub',
  'svn',
  'hg',
  'bzr',
  'fish',
  'dash',
  'pwsh',
  'less',
  'man',
  'systemctl',
  'journalctl',
  'iptables',
  'nft',
  'ip',
  'ss',
  'dig',
  'nmap',
  'ffprobe',
  'exiftool',
  'identify',
  'apt',
  'dpkg',
  'rpm',
  'dnf',
  'yum',
  'pacman',
  'snap',
  'flatpak',
  'sudo',
  'env',
  'bash',
  'nohup',
  'xargs',
  'find',
  'awk',
  'mawk',
  'busybox',
  'crontab',
  'scp',
  'sftp',
  'nc',
  'socat',
  'http',
]);

function isVersionQuestion({ name, args }: Invocation): boolean {
  if (args.length !== 1 || !versioned.has(name)) return false;
  const word = args[0]?.text ?? '';
  if (word === '--version') return true;
  if (word === '-v')
    return /^(?:node|npm|pnpm|yarn|ruby|php|gcc|gem|composer|bundle|tsc|eslint|go|docker|nginx|deno|bun|gradle)$/.test(
      name,
    );
  if (word === '-V') return /^(?:python\d?|ssh|tmux|rg|fd|perl|ruby|curl|wget|cargo|rustc)$/.test(name);
  if (word === 'version') return /^(?:go|git|terraform|openssl)$/.test(name);
  return word === '-version' && /^javac?$/.test(name);
}

/** A program named by its path: of the workspace, or fetched by this very script. */
function program(call: Invocation): readonly Finding[] {
  if (/^ld-(?:linux|musl)|^ld\.so/.test(call.name.replace(/^.*\//, '')))
    return danger(call, 'starts a program through the loader');
  if (isFetched(call.name, call.scan)) return danger(call, 'runs what was fetched from the network');
  if (pathsOf(call.name, call.scan).some((path) => /^\/(?:tmp|var\/tmp|dev\/shm)\//.test(path)))
    return danger(call, 'runs a program from a temporary folder');
  if (/^\/etc\/(?:init|rc\d?)\.d\//.test(call.name)) return danger(call, 'controls services');
  const base = call.name.replace(/^.*\//, '');
  if (/^(?:sudo|su|rm|dd|sh|bash|curl|wget|nc)$/.test(base))
    return danger(call, `runs a program called ${base} from an unusual place`);
  return [
    ...writtenFindings(call.name, call),
    ...taskFindings(call),
    ...change(call, 'runs a program of the workspace'),
  ];
}

/** Anything but a reader that names a file which some program obeys. */
function plantedFindings(call: Invocation): readonly Finding[] {
  const { scan } = call;
  for (const arg of call.args) {
    for (const text of arg.values.flatMap(candidates)) {
      const found = pathsOf(text, scan).find(
        (path) => path.length < 4096 && !systemPath.test(path) && scan.context.isProtected(path),
      );
      if (found !== undefined)
        return [
          {
            risk: 'dangerous',
            reason: `${shown(call)} may change the protected file ${found}`,
            fixed: true,
            targets: [found],
          },
        ];
    }
  }
  return [];
}

/** Every program that has rules of its own, by name. */
export const commandHandlers: ReadonlyMap<string, Handler> = new Map([
  ...systemHandlers,
  ...serviceHandlers,
  ...cloudHandlers,
  ...clusterHandlers,
  ...containerHandlers,
  ...forgeHandlers,
  ...npmHandlers,
  ...packageHandlers,
  ...systemPackageHandlers,
  ...compilerHandlers,
  ...mediaHandlers,
  ...networkHandlers,
  ...interpreterHandlers,
  ...archiveHandlers,
  ...fileHandlers,
  ...sedHandlers,
  ...awkHandlers,
  ...gitHandlers,
  ...findHandlers,
  ...builtinHandlers,
  ...wrapperHandlers,
]);

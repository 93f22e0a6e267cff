import versions from '../../../config/commands/versions.json' with { type: 'json' };
import {
  type Arg,
  candidates,
  change,
  danger,
  type Finding,
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
import { taskFindings, unknownFindings, writtenFindings } from './project-scripts.js';
import { namesOnly, searchText } from './readers.js';
import { asksTool } from './steering-files.js';

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
    prefixed && general.length + special.length === 0 && !isReader(call)
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
  const known = scan.programs.get(name) ?? scan.programs.get(familyOf(name));
  if (scan.functions.has(name) && !known) return [];
  if (isVersionQuestion(call)) return asksTool(call);
  if (known) return known.judge(call);
  if (name.includes('/')) return program(call);
  return [
    ...unknownFindings(call),
    ...change(
      call,
      args.length === 1 && args[0]?.text === '--help' ? 'runs an unknown program' : 'is not known to only read',
    ),
  ];
}

/** The entry that stands for a family of programs of which a system has many. */
function familyOf(name: string): string {
  if (/^(?:lv|vg|pv)(?!s$|display$|scan$)[a-z]+$/.test(name)) return 'mkfs.*';
  if (/^(?:mkfs|fsck|mount|umount)\.|^(?:ip6?|eb|arp)tables-|^grub2?-/.test(name)) return 'mkfs.*';
  return /^(?:python|pypy|ruby|perl|lua|php)\d[\d.]*$/.test(name) ? name.replace(/[\d.]+$/, '') : name;
}

function isReader({ name, scan }: Invocation): boolean {
  const entry = scan.programs.get(name)?.entry;
  return entry?.risk === 'read-only' && entry.asks === undefined;
}

/** `node --version` and its like; each program takes the words that it knows. */
function isVersionQuestion({ name, args }: Invocation): boolean {
  const word = args.length === 1 ? args[0]?.text : undefined;
  return word !== undefined && (versionWords.get(word)?.has(name) ?? false);
}

const versionWords: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(versions.questions).map(([word, names]) => [word, new Set(names)]),
);

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

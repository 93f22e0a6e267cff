import { addAll } from '../../core/lists.js';
import { parse as parseShell, type ParsedScript } from 'unbash';
import type { Risk } from '../../core/tool.js';
import { type Rule, unlistedReason } from '../../core/policy.js';
import { hasUnseen } from '../../core/text.js';
import type { Sandbox } from '../../core/tool.js';
import {
  directoryOf,
  isInWorkspace,
  normalise,
  type PathFacts,
  type ProtectedPaths,
  type SecretPaths,
} from '../guarded-paths.js';
import { commandRules } from '../suggested-rules.js';
import { reachingWord } from '../reaching-words.js';
import type { RuleTest, Subject } from '../rules.js';
import { commandTables } from './command-tables.js';
import { collectNames } from './expansions.js';
import {
  type Finding,
  type FoundCommand,
  type KnownPrograms,
  needsRule,
  type CommandPlace,
  quoted,
  type OptionScan,
  type ShellContext,
  unanalysable,
} from './invocation.js';
import { listedCommand, needsMachine } from './listed-commands.js';
import { namedPaths } from './named-paths.js';
import { hasPlainGit } from './safe-git-config.js';
import { type RealPath, realPaths } from './real-paths.js';
import { walk } from './walk.js';

export { namesSecret } from './words.js';

/** The judgement of a call before the approval mode is applied. */
export interface Judgement {
  readonly risk: Risk;
  /** Nothing has to be guessed: it is a reader by its tool, or all of its programs and options are on the short list. */
  readonly listed: boolean;
  /** It is dangerous only because its effect is not known. */
  readonly unclear: boolean;
  /** Its answer comes from processes, services or devices of the machine, so a rehearsal would be wrong. */
  readonly needsMachine: boolean;
  readonly reasons: readonly string[];
  /** Paths that the permission prompt shows. */
  readonly targets: readonly string[];
  /** Every path that the call names, for undo. */
  readonly named: readonly string[];
  /** Asked about in every mode, `never` included: file tools on secret and protected files, and beyond the workspace of
   * a sandbox. */
  readonly guarded: boolean;
  /** The sandbox, or for file tools the workspace, holds all that it may do. */
  readonly confined: boolean;
  /** A rule of the user decides; `sandbox`: it could not be carried out in the sandbox. */
  readonly ruling: 'allow' | 'ask' | 'deny' | 'sandbox' | null;
  /** Allow rules for this call and those like it; none where no rule may allow it. */
  readonly rules: readonly Rule[];
}

export interface ShellRules {
  readonly facts: PathFacts;
  readonly secrets: SecretPaths;
  readonly isProtected: ProtectedPaths;
  readonly sandbox: Sandbox;
  readonly allow: RuleTest;
  readonly ask: RuleTest;
  readonly deny: RuleTest;
}

/** Adds to the judgement of a call what counts for a command of the words that it types: rules that stop it, and guards
 * of files that it names. */
export async function judgeTyped(
  judgement: Judgement,
  text: string,
  cwd: string,
  rules: ShellRules,
): Promise<Judgement> {
  const inShell = await judgeShell(text, cwd, 'bash', rules);
  const stops = inShell.ruling === 'deny' || (inShell.ruling === 'ask' && judgement.ruling !== 'deny');
  return {
    ...judgement,
    reasons: inShell.risk === 'dangerous' ? [...judgement.reasons, ...inShell.reasons] : judgement.reasons,
    guarded: judgement.guarded || inShell.guarded,
    ruling: stops ? inShell.ruling : judgement.ruling,
  };
}

/** Judges a command line for the tool `tool`, started in `cwd` (absolute). */
export async function judgeShell(command: string, cwd: string, tool: string, rules: ShellRules): Promise<Judgement> {
  const { facts, secrets, isProtected } = rules;
  const { home, workspace, added = [] } = facts;
  const places = { home, cwd, workspace, added };
  const { context, analysis } = await followed(command, { ...places, secrets, isProtected }, facts);
  const disk = await namedOnDisk(analysis, facts);
  const linked = linkedFindings(disk, rules);
  const paths = rulePaths(analysis, disk);
  const findings = [...linked, ...analysis.findings];
  const listed =
    findings.length === 0 && !wanders(analysis, command, context)
      ? await isListedHere(command, analysis.folders, facts)
      : false;
  const outside = analysis.commands.some(({ argv: [program = ''] }) => needsMachine(program));
  const inside = isInWorkspace(normalise((await facts.landing(cwd)) ?? '/'), facts);
  const targets = [...new Set([...findings.flatMap((finding) => finding.targets ?? [])])];
  return {
    risk: findings.length > 0 ? 'dangerous' : listed ? 'read-only' : 'mutating',
    listed,
    unclear: findings.length > 0 && findings.every((finding) => finding.unclear === true),
    needsMachine: outside,
    reasons: findings.length > 0 || listed ? findings.map((finding) => finding.reason) : [unlisted(command, outside)],
    targets,
    named: namedPaths(command, analysis, context),
    guarded: false,
    confined: rules.sandbox !== 'off',
    ruling: ruling(analysis, linked, { tool, paths, writes: writtenPaths(analysis, disk), inside }, rules),
    rules: canBeAllowed(analysis, linked, inside)
      ? commandRules(unruled(analysis, { tool, paths }, rules), tool, (line) => classifyShell(line, context))
      : [],
  };
}

/** Says why a command that is not dangerous does not count as reading. */
function unlisted(command: string, outside: boolean): string {
  const line = quoted(command.trim().replaceAll(/\s+/g, ' '));
  return outside
    ? `${line} looks at processes, services or devices, which a rehearsal hides`
    : `${line} ${unlistedReason}`;
}

/** Returns true if a part of the command may run in an unknown folder. */
function wanders(analysis: ShellAnalysis, command: string, context: ShellContext): boolean {
  return analysis.wanders && classifyShell(command.replace(topLevel, '.'), context).wanders;
}

/** The root of the repository around a command. Its settings are checked in any case. */
const topLevel = /\$\(git rev-parse --show-toplevel\)/g;
const maxRounds = 8;

/** Judges the line and follows links on the way to each of its folders, because `..` behind a link leads elsewhere. */
async function followed(
  command: string,
  context: ShellContext,
  facts: PathFacts,
): Promise<{ readonly context: ShellContext; readonly analysis: ShellAnalysis }> {
  const landings = new Map<string, string>();
  for (let round = 0; ; round++) {
    const judged = { ...context, landings: new Map(landings) };
    const analysis = classifyShell(command, judged);
    const unknown = analysis.folders.filter((folder) => !landings.has(folder) && !folder.includes('\0'));
    for (const folder of unknown) landings.set(folder, (await facts.landing(folder)) ?? folder);
    const isSettled = unknown.every((folder) => landings.get(folder) === folder);
    if (isSettled || round === maxRounds) return { context: judged, analysis };
  }
}

/** A folder with so many names may have more than were read. */
const manyNames = 5000;

/** Returns true if a command is on the short list, as the machine is now: a wildcard may match a file that is named
 * like an option, a program may be in the workspace, a repository may name programs for git. */
async function isListedHere(command: string, folders: readonly string[], facts: PathFacts): Promise<boolean> {
  const listed = listedCommand(command);
  if (listed === null) return false;
  const checks = [
    ...(listed.git ? [isPlainEverywhere(hasPlainGit, folders, facts)] : []),
    ...(listed.wildcards ? folders.map((folder) => hasPlainNames(folder, facts)) : []),
    ...listed.programs.map((name) => isOutside(name, facts)),
  ];
  return (await Promise.all(checks)).every(Boolean);
}

/** No name in a folder looks like an option. */
async function hasPlainNames(folder: string, facts: PathFacts): Promise<boolean> {
  const names = (await facts.namesIn?.(folder)) ?? [];
  return names.length > 0 && names.length < manyNames && !names.some((name) => name.startsWith('-'));
}

/** The PATH finds a program, and not in the workspace. */
async function isOutside(name: string, facts: PathFacts): Promise<boolean> {
  const path = (await facts.programAt?.(name)) ?? null;
  return path !== null && directoryOf(path, facts) === null;
}

/** `cd` and `git -C` may lead into another repository, with settings of its own. */
async function isPlainEverywhere(
  isPlain: typeof hasPlainGit,
  folders: readonly string[],
  facts: PathFacts,
): Promise<boolean> {
  const plain = await Promise.all(folders.map((folder) => isPlain(folder, facts)));
  return plain.every(Boolean);
}

/** The paths of a command as they are on disk. */
interface NamedOnDisk {
  readonly reads: readonly RealPath[];
  readonly writes: readonly RealPath[];
  readonly targets: readonly RealPath[];
}

async function namedOnDisk({ reads, writes, targets }: ShellAnalysis, facts: PathFacts): Promise<NamedOnDisk> {
  return {
    reads: await realPaths(reads, facts),
    writes: await realPaths(writes, facts),
    targets: await realPaths(targets, facts),
  };
}

/** Every path that a rule is held against: as it is spelled, and where it leads. */
function rulePaths({ reads, writes, targets }: ShellAnalysis, disk: NamedOnDisk): readonly string[] {
  const landed = [...disk.reads, ...disk.writes, ...disk.targets].flatMap((one) => [one.path, one.landed]);
  return [...new Set([...writes, ...reads, ...targets, ...landed])];
}

/** The paths that a command writes or destroys. */
function writtenPaths({ writes, targets }: ShellAnalysis, disk: NamedOnDisk): readonly string[] {
  const landed = [...disk.writes, ...disk.targets].flatMap((one) => [one.path, one.landed]);
  return [...new Set([...writes, ...targets, ...landed])];
}

/** Finds redirects and operands that lead to guarded files: by a link, or by a wildcard. */
function linkedFindings({ reads, writes }: NamedOnDisk, { secrets, isProtected }: ShellRules): readonly Finding[] {
  const leads = ({ path, landed, wildcard }: RealPath, kind: string): Finding => ({
    reason:
      landed === path
        ? `${wildcard ?? path} matches the ${kind} file ${landed}`
        : `${path} leads to the ${kind} file ${landed}`,
    fixed: true,
    targets: [landed],
  });
  const isElsewhere = ({ path, landed, wildcard }: RealPath): boolean => landed !== path || wildcard !== null;
  return [
    ...writes
      .filter((one) => isElsewhere(one) && (isProtected(one.landed) || secrets.matches(one.landed)))
      .map((one) => leads(one, 'protected')),
    ...reads.filter((one) => isElsewhere(one) && secrets.matches(one.landed)).map((one) => leads(one, 'secret')),
  ];
}

/** Applies the user's rules. One command that is denied or asked about decides for the line. A line is allowed if every
 * command that does more than read is allowed, nothing else in it counts, and all of it runs where it starts, in the
 * workspace. */
function ruling(
  analysis: ShellAnalysis,
  linked: readonly Finding[],
  { inside, ...touched }: Pick<Subject, 'tool' | 'paths' | 'writes'> & { readonly inside: boolean },
  rules: ShellRules,
): Judgement['ruling'] {
  const { tool, paths } = touched;
  const subjects = [touched, ...analysis.commands.map(({ argv, words }) => ({ ...touched, argv, words }))];
  if (subjects.some((subject) => rules.deny(subject) !== null)) return 'deny';
  if (subjects.some((subject) => rules.ask(subject) !== null)) return 'ask';
  if (!canBeAllowed(analysis, linked, inside)) return null;
  return analysis.commands.length > 0 && unruled(analysis, { tool, paths }, rules).length === 0 ? 'allow' : null;
}

/** Returns true if rules for its commands could allow the line. */
function canBeAllowed(analysis: ShellAnalysis, linked: readonly Finding[], inside: boolean): boolean {
  const stays = inside && analysis.folders.length === 1 && !analysis.wanders;
  const isFixed = analysis.findings.some((finding) => finding.fixed === true);
  return stays && linked.length === 0 && analysis.loose.length === 0 && !analysis.redirects && !isFixed;
}

/** Returns the commands that no rule allows. */
function unruled(
  analysis: ShellAnalysis,
  { tool, paths }: { readonly tool: string; readonly paths: readonly string[] },
  { allow, facts }: ShellRules,
): readonly FoundCommand[] {
  const active = analysis.commands.filter(needsRule);
  const { home, workspace, added = [] } = facts;
  const place = { cwd: analysis.folders[0] ?? workspace, home, workspace, added };
  return (active.length > 0 ? active : analysis.commands).filter(({ exact, argv, findings }) => {
    const risk = findings.length > 0 ? 'dangerous' : 'mutating';
    const rule = exact ? allow({ tool, argv, paths, risk }) : null;
    // A rule that names the words itself covers them.
    return rule?.argv === undefined || reachingWord(argv.slice(rule.argv.length), place) !== null;
  });
}

/** A longer command is not looked at. Bytes of UTF-8 are at most three times the characters counted here. Source:
 * security 5.1. */
const maxCharacters = 65_536;

/** Everything known of a command line without running it. */
export interface ShellAnalysis {
  /** The reasons why it is dangerous, without repetitions; none if it is not. */
  readonly findings: readonly Finding[];
  /** Every program that would run, wrappers included, with its words; NUL marks text that is not known. */
  readonly commands: readonly FoundCommand[];
  /** Findings that belong to no command: redirects, assignments, expansions. */
  readonly loose: readonly Finding[];
  /** A redirect in it writes, or reads what is known only when it runs. */
  readonly redirects: boolean;
  /** Every directory that a part of it may stand in, absolute. */
  readonly folders: readonly string[];
  /** It may stand in other folders too. */
  readonly wanders: boolean;
  /** Absolute paths read and written by redirects and known arguments, by text alone: links are not followed. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Absolute paths that dangerous commands would destroy or disclose. */
  readonly targets: readonly string[];
}

type Parse = (source: string) => ParsedScript;

/** Judges a command line as `bash -c` would take it. What cannot be understood is dangerous; throws nothing. */
export function classifyShell(
  command: string,
  context: ShellContext,
  parse: Parse = parseShell,
  programs: KnownPrograms = commandTables,
): ShellAnalysis {
  const scan = newScan(context, parse, programs);
  const refused = refusal(command);
  if (refused) addAll(scan.findings, unanalysable(refused));
  else runScript(command, scan, parse, { piped: false, captured: false, input: '', next: null, depth: 0 });
  return summary(scan);
}

function newScan(context: ShellContext, parse: Parse, programs: KnownPrograms): OptionScan {
  const scan: OptionScan = {
    context,
    programs,
    folders: { cwds: [context.cwd], lost: false, wanders: false },
    files: { writes: new Set(), reads: new Set(), fetched: new Set(), written: new Map() },
    functions: new Set(),
    variables: new Map(),
    commands: [],
    findings: [],
    redirects: false,
    parts: 0,
    script: (text, place) => {
      runScript(text, scan, parse, place);
    },
  };
  return scan;
}

function runScript(text: string, scan: OptionScan, parse: Parse, place: CommandPlace): void {
  try {
    const script = parse(text);
    collectNames(script, scan);
    walk(script, scan, place);
  } catch (cause) {
    addAll(scan.findings, unanalysable(cause instanceof Error ? cause.message : 'the parser failed'));
  }
}

const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
/** Blanks that are not a blank to the shell. */
const otherBlank = /[^\P{Zs} ]/u;

/** Returns why a text is not parsed: people, terminals and shells would read it in different ways. */
function refusal(command: string): string | null {
  if (command.length > maxCharacters) return `it is longer than ${maxCharacters} characters`;
  if (control.test(command)) return 'it contains control characters';
  if (otherBlank.test(command) || hasUnseen(command.replace(/[\t\n]/g, ''))) return 'it contains invisible characters';
  if (/[^\S\n]{80,}\S/.test(command) || /\n{20,}\s*\S/.test(command)) return 'long runs of spaces hide a part of it';
  if (!command.isWellFormed()) return 'it contains broken characters';
  return nestsDeeply(command) ? 'it is nested too deeply' : null;
}

const maxNesting = 200;
const maxBackquotes = 10_000;

/** A parser goes into each bracket that is open. Those in quoted texts count as well. */
function nestsDeeply(command: string): boolean {
  let open = 0;
  let backquotes = 0;
  for (const char of command) {
    if (char === '(' || char === '{') open++;
    else if ((char === ')' || char === '}') && open > 0) open--;
    else if (char === '`') backquotes++;
    if (open > maxNesting || backquotes > maxBackquotes) return true;
  }
  return false;
}

function summary(scan: OptionScan): ShellAnalysis {
  const seen = new Map<string, Finding>();
  for (const finding of scan.findings) if (!seen.has(finding.reason)) seen.set(finding.reason, finding);
  const findings = [...seen.values()];
  const owned = new Set(scan.commands.flatMap((command) => command.findings));
  return {
    findings,
    commands: scan.commands,
    loose: scan.findings.filter((finding) => !owned.has(finding)),
    redirects: scan.redirects,
    folders: scan.folders.cwds,
    wanders: scan.folders.lost || scan.folders.wanders,
    reads: [...scan.files.reads],
    writes: [...scan.files.writes],
    targets: [...new Set(findings.flatMap((finding) => finding.targets ?? []))],
  };
}

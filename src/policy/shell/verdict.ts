import { addAll } from '../../core/lists.js';
import { parse as parseShell, type ParsedScript } from 'unbash';
import type { Risk } from '../../core/tool.js';
import type { Rule } from '../../core/policy.js';
import { hasUnseen } from '../../core/text.js';
import type { Sandbox } from '../../core/tool.js';
import { isInside, normalise, type PathFacts, type ProtectedPaths, type SecretPaths } from '../guarded-paths.js';
import { commandRules } from '../lasting-rules.js';
import type { RuleTest } from '../rules.js';
import { commandTables } from './command-tables.js';
import { collectNames } from './expansions.js';
import {
  type Finding,
  type FoundCommand,
  type KnownPrograms,
  type Place,
  type Scan,
  type ShellContext,
  unanalysable,
} from './invocation.js';
import { namedPaths } from './named-paths.js';
import { hasPlainGit } from './plain-git.js';
import { type RealPath, realPaths } from './real-paths.js';
import { steeredFamilies } from './steering-files.js';
import { walk } from './walk.js';

/** What is known of a call before the approval mode is asked. */
export interface Judgement {
  readonly risk: Risk;
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

/** Judges a command line for the tool `tool`, started in `cwd` (absolute). */
export async function judgeShell(command: string, cwd: string, tool: string, rules: ShellRules): Promise<Judgement> {
  const { facts, secrets, isProtected } = rules;
  const places = { home: facts.home, cwd, workspace: facts.workspace };
  const start = { ...places, secrets, isProtected, plainGit: true, steered: new Set<string>() };
  const { context, analysis: first } = await followed(command, start, facts);
  const wanders = first.wanders && classifyShell(command.replace(topLevel, '.'), context).wanders;
  const plainGit =
    !first.relies.has('git') || (!wanders && (await isPlainEverywhere(hasPlainGit, first.folders, facts)));
  const steered = wanders ? first.relies : await steeredFamilies(first.relies, first.folders, facts);
  const analysis = plainGit && steered.size === 0 ? first : classifyShell(command, { ...context, plainGit, steered });
  const disk = await namedOnDisk(analysis, facts);
  const linked = linkedFindings(disk, rules);
  const paths = rulePaths(analysis, disk);
  const findings = [...linked, ...analysis.findings];
  const risk = linked.length > 0 ? 'dangerous' : analysis.risk;
  const inside = isInside(normalise((await facts.landing(cwd)) ?? '/'), facts.workspace);
  const targets = [...new Set([...findings.flatMap((finding) => finding.targets ?? [])])];
  return {
    risk,
    reasons: findings.map((finding) => finding.reason),
    targets,
    named: namedPaths(command, analysis, context),
    guarded: false,
    confined: rules.sandbox !== 'off',
    ruling: ruling(analysis, linked, { tool, paths, inside }, rules),
    rules: canBeAllowed(analysis, linked, inside)
      ? commandRules(unruled(analysis, { tool, paths }, rules), tool, (line) => classifyShell(line, context))
      : [],
  };
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

/** Finds redirects and operands that lead to guarded files: by a link, or by a wildcard. */
function linkedFindings({ reads, writes }: NamedOnDisk, { secrets, isProtected }: ShellRules): readonly Finding[] {
  const leads = ({ path, landed, wildcard }: RealPath, kind: string): Finding => ({
    risk: 'dangerous',
    reason:
      landed === path
        ? `${wildcard ?? path} stands for the ${kind} file ${landed}`
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
  { tool, paths, inside }: { readonly tool: string; readonly paths: readonly string[]; readonly inside: boolean },
  rules: ShellRules,
): Judgement['ruling'] {
  const subjects = [{ tool, paths }, ...analysis.commands.map(({ argv, words }) => ({ tool, argv, words, paths }))];
  if (subjects.some((subject) => rules.deny(subject) !== null)) return 'deny';
  if (subjects.some((subject) => rules.ask(subject) !== null)) return 'ask';
  if (!canBeAllowed(analysis, linked, inside)) return null;
  return activeOf(analysis).length > 0 && unruled(analysis, { tool, paths }, rules).length === 0 ? 'allow' : null;
}

/** Whether rules for its commands could allow the line. */
function canBeAllowed(analysis: ShellAnalysis, linked: readonly Finding[], inside: boolean): boolean {
  const stays = inside && analysis.folders.length === 1 && !analysis.wanders;
  const isFixed = analysis.findings.some((finding) => finding.fixed === true);
  return stays && linked.length === 0 && analysis.loose.length === 0 && !isFixed;
}

/** The commands that do more than read. */
function activeOf(analysis: ShellAnalysis): readonly FoundCommand[] {
  return analysis.commands.filter((command) => command.findings.length > 0);
}

/** Those of them that no rule allows. */
function unruled(
  analysis: ShellAnalysis,
  { tool, paths }: { readonly tool: string; readonly paths: readonly string[] },
  { allow }: ShellRules,
): readonly FoundCommand[] {
  return activeOf(analysis).filter(({ exact, argv, findings }) => {
    const risk = findings.some((finding) => finding.risk === 'dangerous') ? 'dangerous' : 'mutating';
    return !exact || allow({ tool, argv, paths, risk })?.argv === undefined;
  });
}

/** A longer command is not looked at. Bytes of UTF-8 are at most three times the characters counted here. Source:
 * security 5.1. */
const maxCharacters = 65_536;

/** Everything known of a command line without running it. */
export interface ShellAnalysis {
  readonly risk: 'read-only' | 'mutating' | 'dangerous';
  /** Most important first, without repetitions. */
  readonly findings: readonly Finding[];
  /** Every program that would run, wrappers included, with its words; NUL stands for text not known. */
  readonly commands: readonly FoundCommand[];
  /** Findings that belong to no command: redirects, assignments, expansions. */
  readonly loose: readonly Finding[];
  /** Every directory that a part of it may stand in, absolute. */
  readonly folders: readonly string[];
  /** It may stand in other folders too. */
  readonly wanders: boolean;
  /** Whose settings in these folders it took to be plain. */
  readonly relies: ReadonlySet<string>;
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

function newScan(context: ShellContext, parse: Parse, programs: KnownPrograms): Scan {
  const scan: Scan = {
    context,
    programs,
    folders: { cwds: [context.cwd], lost: false, wanders: false },
    files: { writes: new Set(), reads: new Set(), fetched: new Set(), written: new Map() },
    relies: new Set(),
    functions: new Set(),
    variables: new Map(),
    commands: [],
    findings: [],
    parts: 0,
    script: (text, place) => {
      runScript(text, scan, parse, place);
    },
  };
  return scan;
}

function runScript(text: string, scan: Scan, parse: Parse, place: Place): void {
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

/** Why a text is not parsed: people, terminals and shells would read it in different ways. */
function refusal(command: string): string | null {
  if (command.length > maxCharacters) return `it is longer than ${maxCharacters} characters`;
  if (control.test(command)) return 'it holds control characters';
  if (otherBlank.test(command) || hasUnseen(command.replace(/[\t\n]/g, '')))
    return 'it holds characters that cannot be seen';
  if (/[^\S\n]{80,}\S/.test(command) || /\n{20,}\s*\S/.test(command)) return 'blanks push a part of it out of sight';
  return command.isWellFormed() ? null : 'it holds broken characters';
}

function summary(scan: Scan): ShellAnalysis {
  const seen = new Map<string, Finding>();
  for (const finding of scan.findings) if (!seen.has(finding.reason)) seen.set(finding.reason, finding);
  const findings = [...seen.values()].toSorted((a, b) => weight(b) - weight(a));
  const owned = new Set(scan.commands.flatMap((command) => command.findings));
  const [worst] = findings;
  return {
    risk: worst?.risk ?? 'read-only',
    findings,
    commands: scan.commands,
    loose: scan.findings.filter((finding) => !owned.has(finding)),
    folders: scan.folders.cwds,
    wanders: scan.folders.lost || scan.folders.wanders,
    relies: scan.relies,
    reads: [...scan.files.reads],
    writes: [...scan.files.writes],
    targets: [...new Set(findings.flatMap((finding) => finding.targets ?? []))],
  };
}

function weight(finding: Finding): number {
  return finding.risk === 'dangerous' ? 1 : 0;
}

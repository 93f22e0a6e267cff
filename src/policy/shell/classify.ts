import type { ParsedScript } from 'unbash';
import { hasUnseen } from '../../core/text.js';
import { commandTables } from './command-tables.js';
import { collectNames } from './expansions.js';
import {
  type Finding,
  type FoundCommand,
  type Place,
  type Scan,
  type ShellContext,
  unanalysable,
  type KnownPrograms,
} from './invocation.js';
import { walk } from './walk.js';

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

/** Parses shell text. `unbash` gives it; it is passed in so that it is loaded only when a command is judged. */
export type Parse = (source: string) => ParsedScript;

/** Judges a command line as `bash -c` would take it. What cannot be understood is dangerous; throws nothing. */
export function classifyShell(
  command: string,
  context: ShellContext,
  parse: Parse,
  programs: KnownPrograms = commandTables,
): ShellAnalysis {
  const scan = newScan(context, parse, programs);
  const refused = refusal(command);
  if (refused) scan.findings.push(...unanalysable(refused));
  else runScript(command, scan, parse, { piped: false, captured: false, input: '', next: null, depth: 0 });
  return summary(scan);
}

function newScan(context: ShellContext, parse: Parse, programs: KnownPrograms): Scan {
  const scan: Scan = {
    context,
    programs,
    cwds: [context.cwd],
    lostCwd: false,
    wanders: false,
    relies: new Set(),
    functions: new Set(),
    variables: new Map(),
    commands: [],
    findings: [],
    writes: new Set(),
    reads: new Set(),
    fetched: new Set(),
    written: new Map(),
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
    scan.findings.push(...unanalysable(cause instanceof Error ? cause.message : 'the parser failed'));
  }
}

const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;
/** Blanks that are not a blank to the shell. */
const otherBlank = /[^\P{Zs} ]/u;

/** Why a text is not even parsed: readers, terminals and shells disagree about what it says. */
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
    folders: scan.cwds,
    wanders: scan.lostCwd || scan.wanders,
    relies: scan.relies,
    reads: [...scan.reads],
    writes: [...scan.writes],
    targets: [...new Set(findings.flatMap((finding) => finding.targets ?? []))],
  };
}

function weight(finding: Finding): number {
  return finding.risk === 'dangerous' ? 1 : 0;
}

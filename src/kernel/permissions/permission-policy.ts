import { isRecord } from '../core/json.js';
import { type ApprovalMode, type Policy, type Rules, type Verdict, writesReason } from '../core/policy.js';
import { type BoundCall, type CallPlace, type Judged, noSession, type Sandbox } from '../core/tool.js';
import {
  createProtectedPaths,
  createSecretPaths,
  directoryOf,
  normalise,
  type PathFacts,
  type ProtectedPaths,
  protectionReason,
  resolvePath,
  type SecretPaths,
} from './guarded-paths.js';
import { fileRules, toolRules } from './suggested-rules.js';
import { compileRules, refusedAllow, type Subject } from './rules.js';
import { subjectOf } from '../core/call-subject.js';
import { loadVerdict } from './shell/load-verdict.js';
import { pathsInTexts } from './shell/named-paths.js';
import type { Judgement, ShellRules } from './shell/verdict.js';

export interface PolicyOptions {
  /** `tools.confirm: false` is given as `never`. */
  readonly approval: ApprovalMode;
  /** Plan mode: whatever does more than read is denied, and no rule lifts that, but for tools of servers: what those do
   * is not known here, so the user says by name which of them only read. */
  readonly planning?: boolean;
  readonly sandbox: Sandbox;
  readonly facts: PathFacts;
  /** Globs of secret files (`fs.deny`). */
  readonly fsDeny: readonly string[];
  /** Allow rules for interpreters, wrappers and the like are left out; `refusedAllow` says which and why. */
  readonly rules?: Rules;
}

/** Makes the policy of a session. `assess` never rejects; its `cwd` is absolute. */
export function createPolicy(options: PolicyOptions): Policy {
  const { approval, sandbox, facts } = options;
  const rules: Rules = options.rules ?? { allow: [], ask: [], deny: [] };
  const shared: ShellRules = {
    facts,
    sandbox,
    secrets: createSecretPaths(options.fsDeny, facts.home),
    isProtected: createProtectedPaths(facts),
    allow: compileRules(
      rules.allow.filter((rule) => refusedAllow(rule) === null),
      facts.home,
      'allow',
    ),
    ask: compileRules(rules.ask, facts.home, 'stop'),
    deny: compileRules(rules.deny, facts.home, 'stop'),
  };
  /** A rule is offered only where it would be heeded. */
  const lasting = (judgement: Judgement, decision: Verdict['decision']): Pick<Verdict, 'rules'> => {
    const { rules: offered, ruling } = judgement;
    if (decision !== 'ask' || ruling !== null || offered.length === 0) return {};
    return decide({ ...judgement, ruling: 'allow' }, approval, sandbox) === 'allow' ? { rules: offered } : {};
  };
  const isHeld = ({ target }: BoundCall, { risk, ruling, guarded }: Judgement): boolean => {
    const isAllowed = target !== undefined && ruling === 'allow' && !guarded;
    return options.planning === true && risk !== 'read-only' && !isAllowed;
  };
  return {
    dangersOf: (paths) => Promise.resolve(dangersOf(paths, shared)),
    async assess(call, cwd, session = noSession): Promise<Verdict> {
      const judgement = await judgeCall(call, { cwd, session }, shared);
      const rehearsable = mayBeRehearsed(call, judgement, { approval, sandbox }) ? { rehearsable: true as const } : {};
      if (isHeld(call, judgement))
        return readsInSandbox(call, judgement) ? readInSandbox : { ...heldByPlan(judgement, sandbox), ...rehearsable };
      const decided = decide(judgement, modeFor(judgement, options), sandbox);
      const decision = decided === 'ask' && call.tool.inert === true && approval !== 'always' ? 'allow' : decided;
      const { risk, targets, named } = judgement;
      return {
        risk,
        decision,
        reasons: reasonsOf(judgement, decision),
        sandbox,
        ...rehearsable,
        ...(decision === 'ask' ? whoseQuestion(judgement, sandbox) : { decidedBy: deciderOf(judgement, decision) }),
        ...(targets.length > 0 ? { targets } : {}),
        ...(risk === 'read-only' ? {} : { named }),
        ...lasting(judgement, decision),
      };
    },
  };
}

/** Returns true if a command that plan mode holds back may run in a sandbox that only reads. */
function readsInSandbox({ tool }: BoundCall, { confined, risk }: Judgement): boolean {
  return tool.effect === 'execute' && confined && risk !== 'dangerous';
}

const readInSandbox: Verdict = {
  risk: 'read-only',
  decision: 'allow',
  reasons: [],
  sandbox: 'read-only',
  decidedBy: 'mode',
};

function reasonsOf(judgement: Judgement, decision: Verdict['decision']): readonly string[] {
  const { reasons, ruling } = judgement;
  if (decision === 'ask' && reasons.length === 0 && ruling !== 'ask') return ['you chose to approve every call'];
  return [...ruleReason(judgement, decision), ...reasons];
}

/** A rehearsal may answer for a command that is not dangerous, or that nobody can judge by its text. It cannot where the
 * command needs the machine, where the user wants each call asked about, or where a sandbox confines commands already. */
function mayBeRehearsed(
  { tool }: BoundCall,
  { risk, listed, unclear, needsMachine, guarded, ruling }: Judgement,
  { approval, sandbox }: Pick<PolicyOptions, 'approval' | 'sandbox'>,
): boolean {
  if (tool.rehearse === undefined || guarded || needsMachine || sandbox !== 'off' || approval === 'always')
    return false;
  return ruling !== 'ask' && ruling !== 'deny' && (unclear || (risk !== 'dangerous' && !listed));
}

function deciderOf({ listed, ruling }: Judgement, decision: Verdict['decision']): NonNullable<Verdict['decidedBy']> {
  if (ruling === 'deny' || (ruling === 'allow' && decision === 'allow')) return 'rule';
  return listed && decision === 'allow' ? 'static' : 'mode';
}

function dangersOf(paths: readonly string[], { secrets, isProtected, facts }: ShellRules): readonly string[] {
  return paths.flatMap((path) => {
    if (secrets.matches(path)) return [`${path} contains secrets`];
    if (isProtected(path)) return [protectionReason(path, facts)];
    return directoryOf(path, facts)?.readOnly === true ? [`${path} is in a directory that was added read-only`] : [];
  });
}

/** Says what of a question is not up to the approval mode. */
function whoseQuestion(judgement: Judgement, sandbox: Sandbox): Pick<Verdict, 'everyMode' | 'ruled'> {
  return {
    ...(decide(judgement, 'never', sandbox) === 'ask' ? { everyMode: true } : {}),
    ...(judgement.ruling === 'ask' ? { ruled: true } : {}),
  };
}

/** Judges a call by its arguments: a command line, a path, or only the effect of its tool. The tool's own judgement
 * counts if there is neither, and if it is not a shell, unless its `command` would be dangerous in one. */
async function judgeCall(call: BoundCall, place: CallPlace, rules: ShellRules): Promise<Judgement> {
  const { tool, args } = call;
  const { cwd } = place;
  if (tool.effect === 'execute' && typeof args['command'] === 'string') {
    const inShell = await judgeCommand(call, args['command'], cwd, rules);
    if (tool.judge === undefined || inShell.risk === 'dangerous') return inShell;
  }
  const touchesFiles = tool.effect === 'read' || tool.effect === 'write';
  if (touchesFiles && (tool.judge === undefined || namesPaths(call))) return judgeFileCall(call, cwd, rules);
  const judgement = await judgeByTool(call, place, rules);
  const typed = tool.typedText?.(args) ?? null;
  return typed === null ? judgement : await (await loadVerdict()).judgeTyped(judgement, typed, cwd, rules);
}

async function judgeByTool(call: BoundCall, place: CallPlace, rules: ShellRules): Promise<Judgement> {
  const { tool, args } = call;
  const judged: Judged = (await tool.judge?.(args, place)) ?? {
    risk: 'mutating',
    reasons: [tool.effect === 'network' ? `${tool.name} uses the network` : `${tool.name} runs a program`],
  };
  return {
    risk: judged.risk,
    listed: judged.risk === 'read-only',
    unclear: false,
    needsMachine: false,
    reasons: judged.reasons,
    targets: [],
    named: pathsOfArguments(call, place.cwd, rules),
    guarded: judged.everyMode === true,
    confined: false,
    ruling: toolRuling(call, judged, rules),
    rules: toolRules(call, judged),
  };
}

/** Judges the command that runs. A rule that stops the words that the model wrote stops what they stand for as well. */
async function judgeCommand(
  { tool, args, given }: BoundCall,
  command: string,
  cwd: string,
  rules: ShellRules,
): Promise<Judgement> {
  const { judgeShell } = await loadVerdict();
  const folder = await startFolder(args['workdir'], cwd, rules);
  const judgement = await judgeShell(command, folder, tool.name, rules);
  const written = given?.['command'];
  if (typeof written !== 'string' || judgement.ruling === 'deny') return judgement;
  const { ruling } = await judgeShell(written, folder, tool.name, rules);
  return ruling === 'deny' || ruling === 'ask' ? { ...judgement, ruling } : judgement;
}

/** A rule of the user goes before what the tool says that they have allowed. */
function toolRuling(
  { tool, target, args }: BoundCall,
  { allowed, risk }: Judged,
  rules: ShellRules,
): Judgement['ruling'] {
  const server = target?.server ? { server: target.server } : {};
  const about = subjectOf(tool.name, args);
  const subject = { tool: tool.name, ...server, ...(about === null ? {} : { target: about }), paths: [], risk };
  return rulingOf(subject, rules) ?? (allowed === true ? 'allow' : null);
}

/** Returns the folder where a command starts: the kernel follows the links on the way, as the shell would. */
async function startFolder(workdir: unknown, cwd: string, { facts }: ShellRules): Promise<string> {
  if (typeof workdir !== 'string') return cwd;
  const landed = await facts.landing(workdir.startsWith('/') ? workdir : `${cwd}/${workdir}`);
  return landed ?? resolvePath(cwd, workdir, facts.home);
}

async function judgeFileCall(call: BoundCall, cwd: string, rules: ShellRules): Promise<Judgement> {
  const { tool, args } = call;
  const writes = tool.effect === 'write';
  const judged = await Promise.all(namedPaths(call).map((text) => judgeFile(text, cwd, writes, rules)));
  const paths = judged.map(({ path }) => path);
  const guards = [
    ...judged.flatMap(({ guard }) => guard ?? []),
    ...(await secretFilter(args['glob'], tool.name, paths[0] ?? cwd, rules)),
  ];
  const outside = judged.filter(({ inside }) => !inside).map(({ path }) => `${path} is outside the workspace`);
  const held = rules.sandbox === 'off' ? [] : outside;
  const guarded = guards.length + held.length > 0;
  const written = writes ? paths : [];
  const shared = {
    listed: !writes,
    unclear: false,
    needsMachine: false,
    guarded,
    confined: outside.length === 0 && judged.length > 0,
    targets: writes || guarded ? paths : [],
    named: written,
  };
  const risk = guards.length > 0 ? 'dangerous' : writes ? 'mutating' : 'read-only';
  const refusal = refusedWrite(tool.name, judged, writes && rules.sandbox === 'read-only');
  if (refusal !== null) return { ...shared, risk, reasons: [refusal, ...guards], ruling: 'sandbox', rules: [] };
  const reasons = [...guards, ...(writes ? [...outside, writesReason(tool.name, paths)] : held)];
  return {
    ...shared,
    risk,
    reasons,
    ruling: rulingOf({ tool: tool.name, paths, writes: written }, rules),
    rules: fileRules(tool.name, paths, rules.facts),
  };
}

/** Returns why a file tool cannot write there, or null. */
function refusedWrite(
  tool: string,
  judged: readonly { readonly path: string; readonly held: boolean }[],
  isReadOnly: boolean,
): string | null {
  const held = judged.find((one) => one.held);
  if (held !== undefined) return `${held.path} is in a directory that was added read-only`;
  return isReadOnly ? `${tool} writes, and the sandbox is read-only` : null;
}

/** Returns the paths that the arguments of a program may name. */
function pathsOfArguments({ tool, args }: BoundCall, cwd: string, rules: ShellRules): readonly string[] {
  if (tool.effect !== 'execute') return [];
  return pathsInTexts(textsIn(args), cwd, rules.facts.home);
}

/** Returns the texts among the arguments of a call, those in lists and objects as well. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isRecord(value) ? Object.values(value).flatMap(textsIn) : [];
}

function namesPaths({ args }: BoundCall): boolean {
  return givenPaths(args).length > 0;
}

function givenPaths(args: BoundCall['args']): readonly string[] {
  return [args['path'], args['file_path'], args['destination']].filter((value) => typeof value === 'string');
}

/** Returns the paths that a file tool was given; the working directory for a reader without one. Stored outputs
 * (`event:7`) are not files to a reader. */
function namedPaths({ tool, args }: BoundCall): readonly string[] {
  const given = givenPaths(args);
  if (tool.effect === 'write') return given;
  if (given.length === 0) return ['.'];
  return given.filter((value) => !/^event:\d+$/.test(value));
}

function rulingOf(subject: Subject, rules: ShellRules): Judgement['ruling'] {
  if (rules.deny(subject)) return 'deny';
  if (rules.ask(subject)) return 'ask';
  return rules.allow(subject) ? 'allow' : null;
}

/** A filter that singles out secret files reads them as much as naming one does. One that also fits a harmless file
 * below the folder looks for more. */
async function secretFilter(
  glob: unknown,
  tool: string,
  folder: string,
  { secrets, facts }: ShellRules,
): Promise<readonly string[]> {
  if (typeof glob !== 'string' || tool === 'glob' || glob.startsWith('!')) return [];
  if (!secrets.singlesOut(glob, 'glob')) return [];
  const isWider = await facts.hasFile?.(folder, (path) => secrets.isHarmlessMatch(path, glob));
  return isWider === true ? [] : [`the filter ${glob} selects files with secrets`];
}

/** Names the user's own rule first, so that they know they can change it. */
function ruleReason({ ruling }: Judgement, decision: Verdict['decision']): readonly string[] {
  if (ruling === 'deny') return ['a rule in `rules.deny` denies it'];
  return ruling === 'ask' && decision === 'ask' ? ['a rule in `rules.ask` asks for approval'] : [];
}

/** Returns the approval mode of a call. In plan mode reading never asks, whatever the mode. */
function modeFor({ risk, listed }: Judgement, { approval, planning }: PolicyOptions): ApprovalMode {
  const reads = planning === true && risk === 'read-only' && listed;
  return reads && approval === 'always' ? 'mutating' : approval;
}

/** The verdict of plan mode on a call that does more than read. */
function heldByPlan({ risk, reasons, targets }: Judgement, sandbox: Sandbox): Verdict {
  const held = 'plan mode is read-only; add this to the plan';
  return { risk, decision: 'deny', reasons: [held, ...reasons], sandbox, ...(targets.length > 0 ? { targets } : {}) };
}

/** The one rule from risk to decision. Contracts 1 (approval modes) and 8 (secrets). */
function decide(judgement: Judgement, approval: ApprovalMode, sandbox: Sandbox): Verdict['decision'] {
  const { risk, guarded, confined, ruling } = judgement;
  if (ruling === 'deny' || ruling === 'sandbox') return 'deny';
  if (guarded || approval === 'always') return 'ask';
  if (approval === 'never') return 'allow';
  if (ruling !== null) return ruling;
  if (risk !== 'mutating') return risk === 'dangerous' ? 'ask' : 'allow';
  return approval === 'mutating' && !(sandbox !== 'off' && confined) ? 'ask' : 'allow';
}

/** One path of a file tool, and the reason why it is guarded. */
interface FileJudgement {
  /** Absolute, links resolved; the plain spelling where the kernel could not be asked. */
  readonly path: string;
  readonly guard: string | null;
  readonly inside: boolean;
  /** It would be written in a directory that was opened read-only. */
  readonly held: boolean;
}

interface FileRules {
  readonly facts: PathFacts;
  readonly secrets: SecretPaths;
  readonly isProtected: ProtectedPaths;
  readonly sandbox: Sandbox;
}

/** Judges the path that a tool was given by where the kernel would land, and also by its own spelling, so that neither
 * a link nor a name hides the other. */
async function judgeFile(text: string, cwd: string, writes: boolean, rules: FileRules): Promise<FileJudgement> {
  const { facts } = rules;
  const asked = text.startsWith('/') ? text : `${cwd}/${text}`;
  const spelled = normalise(asked);
  const landed = await facts.landing(asked);
  const path = landed === null ? spelled : normalise(landed);
  const directory = landed === null ? null : directoryOf(path, facts);
  return {
    path,
    guard: guardOf(path === spelled ? [path] : [path, spelled], writes, rules),
    inside: directory !== null && !(writes && directory.readOnly),
    held: writes && directory?.readOnly === true,
  };
}

function guardOf(paths: readonly string[], writes: boolean, rules: FileRules): string | null {
  const secret = paths.find((path) => rules.secrets.matches(path));
  if (secret !== undefined) return `${secret} contains secrets`;
  const guarded = writes ? paths.find((path) => rules.isProtected(path)) : undefined;
  return guarded === undefined ? null : protectionReason(guarded, rules.facts);
}

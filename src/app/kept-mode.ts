import { type Event, type EventDraft, knownEvent, type ModeData } from '../kernel/core/event.js';
import { directoryText } from '../kernel/core/directories.js';
import type { ApprovalMode } from '../kernel/core/policy.js';
import type { Sandbox } from '../kernel/core/tool.js';
import { CliError } from '../kernel/console/command.js';
import type { RunSandbox } from './open-tools.js';
import { isGivenOnCommandLine } from '../kernel/config/layers.js';
import type { SpendLimit } from './spend-limit.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import { approvalModes } from '../kernel/core/policy.js';
import type { SwitchablePolicy } from '../kernel/console/run-settings.js';

interface ModeSource {
  readonly policy: SwitchablePolicy;
  readonly sandbox: RunSandbox;
  readonly spend: SpendLimit;
  readonly settings: Settings;
}

/** From loose to strict. */
const sandboxes = ['off', 'workspace', 'read-only'] as const satisfies readonly Sandbox[];

/** Returns the event for how freely the session may act now. Null if its log says so already, and for a session without
 * any event of that kind that is as free as a session can be without a setting. */
export function modeChange(
  { policy, spend, settings }: Omit<ModeSource, 'sandbox'>,
  events: readonly Event[],
): EventDraft | null {
  const directories = policy.directories();
  const now: ModeData = {
    approval: policy.mode(),
    plan: policy.planning(),
    sandbox: policy.sandbox(),
    max_cost_usd: spend.limitUsd(),
    ...(directories.length === 0 ? {} : { directories: directories.map(directoryText) }),
  };
  const last = lastMode(events);
  const isFree =
    isFreeApproval(policy.mode(), settings) &&
    !now.plan &&
    now.sandbox === 'off' &&
    now.max_cost_usd === null &&
    directories.length === 0;
  if (last === null ? isFree : isEqual(last, now)) return null;
  return { kind: 'mode', content: modeText(now), data: now };
}

/** `dangerous` is the default; where it was asked for, it is stricter than `never`. */
function isFreeApproval(mode: ApprovalMode, settings: Settings): boolean {
  if (mode === 'never') return true;
  return (
    mode === 'dangerous' &&
    settings.config.policy.approval !== 'never' &&
    !isGivenOnCommandLine(settings.loaded, 'approval')
  );
}

function isEqual(one: ModeData, other: ModeData): boolean {
  return modeText(one) === modeText(other);
}

function modeText({ approval, plan, sandbox, max_cost_usd: limit, directories = [] }: ModeData): string {
  const cost = limit === null || limit === undefined ? '' : `, at most $${limit}`;
  const also = directories.length === 0 ? '' : `, also in ${directories.join(', ')}`;
  return `approval ${approval}${plan ? ', plan mode' : ''}, sandbox ${sandbox}${cost}${also}`;
}

function lastMode(events: readonly Event[]): ModeData | null {
  const event = events.findLast(({ kind }) => kind === 'mode');
  const known = event ? knownEvent(event) : null;
  return known?.kind === 'mode' ? known.data : null;
}

/** Keeps what a resumed session had stricter than this run, and says so. An option of the command line wins, and a
 * notice names what it loosens. `lineCounts`: false if the command line was meant for another session. Throws a
 * `CliError` (2) where the sandbox of the session cannot be opened here. */
export async function keepMode(
  run: ModeSource,
  restored: readonly Event[],
  lineCounts: boolean,
): Promise<readonly Notice[]> {
  const last = lastMode(restored);
  if (last === null) return [];
  const given = (key: string): boolean => lineCounts && isGivenOnCommandLine(run.settings.loaded, key);
  // Plan mode that the command line asks for leaves the mode behind it as it was.
  const approval = given('approval') && !run.settings.config.policy.planning;
  return [
    ...keptApproval(run, last, approval),
    ...keptPlan(run, last, approval),
    ...(await keptSandbox(run, last, given('sandbox'))),
    ...keptLimit(run, last, given('max_cost_usd')),
    ...droppedDirectories(run, last),
  ];
}

function keptApproval({ policy }: ModeSource, last: ModeData, isGiven: boolean): readonly Notice[] {
  const mode = policy.mode();
  const before = approvalModes.find((one) => one === last.approval) ?? mode;
  if (approvalModes.indexOf(before) <= approvalModes.indexOf(mode)) return [];
  if (isGiven) return [changed(`The approval mode is now ${mode}; this session had ${before}.`)];
  policy.switchTo(before);
  return [keptNotice(`Approval mode ${before}, as before in this session. /approval or --approval changes it.`)];
}

function keptPlan({ policy }: ModeSource, last: ModeData, isGiven: boolean): readonly Notice[] {
  if (!last.plan || policy.planning()) return [];
  if (isGiven)
    return [changed(`Plan mode is off: --approval ${policy.mode()} was given; this session was in plan mode.`)];
  policy.plan(true);
  return [keptNotice('Plan mode is on, as before in this session. /plan or --approval ends it.')];
}

async function keptSandbox(
  { policy, sandbox }: ModeSource,
  last: ModeData,
  isGiven: boolean,
): Promise<readonly Notice[]> {
  const now = policy.sandbox();
  const before = sandboxes.find((one) => one === last.sandbox) ?? now;
  if (sandboxes.indexOf(before) <= sandboxes.indexOf(now)) return [];
  if (isGiven) return [changed(`The sandbox is now ${now}; this session had ${before}.`)];
  try {
    await sandbox.need(before);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(
      error.exitCode,
      `this session used the sandbox ${before}, which is not available here: ${error.message}`,
      `${error.hint} To continue without it, add --sandbox ${now}.`,
    );
  }
  policy.confineTo(before);
  return [keptNotice(`Sandbox ${before}, as before in this session. --sandbox changes it.`)];
}

function keptLimit({ spend }: ModeSource, { max_cost_usd: limit }: ModeData, isGiven: boolean): readonly Notice[] {
  const now = spend.limitUsd();
  if (limit === null || limit === undefined || (now !== null && now <= limit)) return [];
  if (isGiven) return [changed(`The cost limit is now $${now}; this session had $${limit}.`)];
  spend.set(limit);
  return [keptNotice(`Cost limit $${limit}, as before in this session. /budget or --max-cost changes it.`)];
}

/** Directories are opened again only by the user: a session may come from someone else. */
function droppedDirectories({ policy }: ModeSource, { directories = [] }: ModeData): readonly Notice[] {
  const open = policy.directories().map(directoryText);
  const missing = directories.filter((text) => !open.includes(text));
  if (missing.length === 0) return [];
  const options = missing.map((text) => `--add-dir ${text}`).join(' ');
  return [changed(`This session also worked in ${missing.join(', ')}. ${options} or /add-dir opens it again.`)];
}

function keptNotice(message: string): Notice {
  return { level: 'warn', code: 'mode_kept', message };
}

function changed(message: string): Notice {
  return { level: 'warn', code: 'mode_changed', message };
}

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isError } from '../../core/envelope.js';
import type { ExtraDirectory } from '../../core/directories.js';
import { type Effects, hasEffects } from '../../core/effects.js';
import type { KeepResult, Rehearsal, ToolOutcome } from '../../core/tool.js';
import { unifiedDiff } from '../files/atomic-write.js';
import { type CollectedOutput, createOutputCollector } from '../process/output-collector.js';
import type { ProcessRequest, ProcessResult, ProcessRunner } from '../process/runner.js';
import type { ChildCommand } from '../process/start-child.js';
import { homeInside, seccompFilter, workspaceProblem } from '../sandbox/bubblewrap-profile.js';
import { isWithin } from '../sandbox/guards.js';
import { explainFailure, findProgram, missingProgram, missingSystem } from '../sandbox/open-sandbox.js';
import { changesIn, type LayerChanges, type ListMerged, textAt } from './layer-changes.js';
import { finishJournals } from './journal.js';
import { keepLayers } from './keep.js';
import { planKeep } from './keep-plan.js';
import {
  coveredFolders,
  isOwnerAlive,
  type Layers,
  makeLayers,
  mountsBelow,
  ownerName,
  placesFor,
  removeLeftLayers,
} from './overlay-layers.js';
import { type NetworkUse, openNetworkUse } from './network-use.js';
import { bytesOf } from './raw-paths.js';
import { createView, leftFile, listMerged, mountOptionsToTry } from './rehearsal-view.js';

export interface RehearsalOptions {
  readonly processes: ProcessRunner;
  /** Absolute, links resolved. */
  readonly workspace: string;
  /** The directories that the user opened beside it. */
  readonly directories?: () => readonly ExtraDirectory[];
  readonly home: string;
  readonly path: string;
  /** Recognises files with secrets by their absolute path, and variables by their name. */
  readonly isSecret: (path: string) => boolean;
  readonly isSecretVariable: (name: string) => boolean;
  /** The folder of the journals of changes that are kept. */
  readonly journals: string;
}

/** The reason why commands cannot be rehearsed here, and the step that fixes it. */
interface RehearsalProblem {
  readonly problem: string;
  readonly fix: string;
}

interface RehearsalRequest {
  readonly command: ChildCommand;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** The command is ended if it prints more. */
  readonly maxTotalBytes: number;
  readonly maxOutputBytes: number;
  /** Says how the command ended. */
  readonly outcome: (result: ProcessResult, collected: CollectedOutput) => ToolOutcome;
}

/** Runs commands on a copy-on-write view of the files. */
export interface Rehearsals {
  /** Tries once whether that is possible here. Never rejects. */
  problem(): Promise<RehearsalProblem | null>;
  /** Returns a sentence without its end where the command could not be run on such a view. Never rejects. */
  run(request: RehearsalRequest): Promise<Rehearsal | string>;
}

type Opened =
  | {
      readonly ok: true;
      readonly folders: readonly string[];
      /** The folder of the layers. */
      readonly place: string;
      readonly view: ReturnType<typeof createView>;
    }
  | ({ readonly ok: false } & RehearsalProblem);

export function createRehearsals(options: RehearsalOptions): Rehearsals {
  let last: { readonly directories: readonly ExtraDirectory[]; readonly opened: Promise<Opened> } | null = null;
  /** Opens again once the user has opened another directory. */
  const opened = async (): Promise<Opened> => {
    const directories = options.directories?.() ?? [];
    if (last?.directories !== directories)
      last = {
        directories,
        opened: open(options, directories).catch((error: unknown): Opened => failedToOpen(messageOf(error))),
      };
    return await last.opened;
  };
  return {
    problem: async () => {
      const found = await opened();
      return found.ok ? null : found;
    },
    run: async (request) => {
      const found = await opened();
      if (!found.ok) return found.problem;
      try {
        return await rehearse(request, found, options);
      } catch (error) {
        return messageOf(error);
      }
    },
  };
}

/** Finishes or takes back changes that a killed program was keeping, and removes what it left. */
export async function recoverRehearsals(journals: string): Promise<void> {
  await finishJournals(journals, isOwnerAlive);
  await removeLeftLayers();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function failedToOpen(complaint: string): Opened {
  return explainFailure(complaint, process.getuid?.() === 0);
}

async function open(options: RehearsalOptions, directories: readonly ExtraDirectory[]): Promise<Opened> {
  if (process.platform !== 'linux') return missingSystem(process.platform);
  const { workspace, home } = options;
  const misplaced = workspaceProblem(workspace, '');
  if (misplaced !== null) return { ok: false, problem: misplaced, fix: 'Start in the directory of a project.' };
  const program = findProgram(options.path, workspace);
  if (program === null) return missingProgram();
  await removeLeftLayers();
  const workspaces = [workspace, ...directories.map(({ path }) => path)];
  const all = coveredFolders(workspaces, homeInside(home) === home ? home : null);
  const mounts = mountsBelow(all);
  const folders = all.filter(
    (folder) => isWithin(workspace, folder) || !mounts.some((point) => isWithin(point, folder)),
  );
  const below = mounts.find((point) => folders.some((folder) => isWithin(point, folder)));
  if (below !== undefined)
    return {
      ok: false,
      problem: `${below} is a separate file system below the previewed folder`,
      fix: 'Start elsewhere.',
    };
  const shared = { program, workspaces, home, isSecret: options.isSecret, filter: seccompFilter(process.arch, true) };
  const places = placesFor(folders);
  let complaint = places.length > 0 ? '' : 'no folder for the copies';
  for (const place of places)
    for (const mountOptions of mountOptionsToTry) {
      const tried = { ok: true, folders, place, view: createView({ ...shared, mountOptions }) } as const;
      complaint = await probe(tried, options);
      if (complaint === '') return tried;
    }
  return failedToOpen(complaint);
}

const probeMs = 20_000;

/** Runs a command that does nothing. Returns what went wrong, or ''. */
async function probe(
  { folders, place, view }: Extract<Opened, { ok: true }>,
  options: RehearsalOptions,
): Promise<string> {
  const layers = makeLayers(folders, place);
  try {
    const command = { file: 'true', args: [], cwd: options.workspace, env: { PATH: options.path } };
    const { text, result } = await output(options.processes, {
      ...command,
      sandbox: 'workspace',
      confine: view(layers),
      signal: new AbortController().signal,
      timeoutMs: probeMs,
      maxTotalBytes: 65_536,
      joined: true,
    });
    if (result.ended === 'not_started') return result.error;
    return result.exitCode === 0 ? '' : text || `it ended with ${result.exitCode}`;
  } finally {
    await layers.remove();
  }
}

async function output(
  processes: ProcessRunner,
  request: Omit<ProcessRequest, 'onOutput'>,
): Promise<{ readonly text: string; readonly result: ProcessResult }> {
  const pieces: Buffer[] = [];
  const result = await processes.run({ ...request, onOutput: (chunk) => pieces.push(Buffer.from(chunk)) });
  return { text: Buffer.concat(pieces).toString('latin1'), result };
}

const lookEveryMs = 50;

/** Ends a command as soon as it tries to reach the network: it would wait for an answer that cannot come. */
interface NetworkWatch {
  begin(leader: number): void;
  /** Returns whether the command ran at all, and whether it tried. */
  end(): { readonly ran: boolean; readonly tried: boolean };
}

/** Null where the process has ended before anybody could look. */
function openedUse(leader: number): NetworkUse | null {
  try {
    return openNetworkUse(leader);
  } catch {
    return null;
  }
}

function watchNetwork(stop: AbortController): NetworkWatch {
  let use: NetworkUse | null = null;
  let timer: NodeJS.Timeout | undefined;
  return {
    begin: (leader) => {
      const opened = openedUse(leader);
      use = opened;
      if (opened === null) return;
      timer = setInterval(() => {
        if (opened.tried()) stop.abort();
      }, lookEveryMs);
    },
    end: () => {
      clearInterval(timer);
      const ran = use !== null;
      const tried = use?.tried() === true;
      use?.close();
      return { ran, tried };
    },
  };
}

/** Variables that lead to other programs: agents of keys, message buses, screens, the Windows around a WSL. */
const leadingOut =
  /^(?:SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_.*|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_RUNTIME_DIR|WSL_INTEROP|DOCKER_HOST|TMUX.*)$/;

/** Returns the environment of a rehearsal: without what leads out of it, and without secrets, because nobody is asked
 * before its output goes to the model. */
function rehearsalEnvironment(
  env: Readonly<Record<string, string>>,
  isSecretVariable: (name: string) => boolean,
): Readonly<Record<string, string>> {
  const isKept = (name: string): boolean =>
    name.startsWith('GIT_CONFIG_') || !(leadingOut.test(name) || isSecretVariable(name));
  return { ...Object.fromEntries(Object.entries(env).filter(([name]) => isKept(name))), ...unasked };
}

/** Switches off what tools do on the network besides their work: they look for new versions of themselves. */
const unasked: Readonly<Record<string, string>> = {
  NO_UPDATE_NOTIFIER: '1',
  npm_config_update_notifier: 'false',
  DO_NOT_TRACK: '1',
};

async function rehearse(
  request: RehearsalRequest,
  { folders, place, view }: Extract<Opened, { ok: true }>,
  options: RehearsalOptions,
): Promise<Rehearsal | string> {
  const layers = makeLayers(folders, place);
  try {
    // Node 20 can collect a signal of `AbortSignal.any` before it fires.
    const stop = new AbortController();
    request.signal.addEventListener('abort', () => {
      stop.abort();
    });
    if (request.signal.aborted) stop.abort();
    const network = watchNetwork(stop);
    const collector = createOutputCollector(request.maxOutputBytes);
    const result = await options.processes.run({
      ...request.command,
      env: rehearsalEnvironment(request.command.env, options.isSecretVariable),
      sandbox: 'workspace',
      confine: view(layers),
      signal: stop.signal,
      timeoutMs: request.timeoutMs,
      maxTotalBytes: request.maxTotalBytes,
      joined: true,
      onNamespace: (leader) => {
        network.begin(leader);
      },
      onOutput: (chunk) => {
        collector.add(chunk);
      },
    });
    const { ran, tried } = network.end();
    const collected = collector.collected();
    if (!ran) {
      await layers.remove();
      return notRun(result, collected);
    }
    const changes = await changesIn(layers.layers, options.home, mergedLists(options.processes, layers));
    const ended: EndedRun = { result, collected, tried, left: readFileSync(leftFile(layers), 'utf8') };
    return rehearsal(request, ended, changes, { layers, options });
  } catch (error) {
    await layers.remove();
    throw error;
  }
}

/** Returns why there is no rehearsal: the mounts of the view failed, or the command ended before its network could be
 * watched. */
function notRun(result: ProcessResult, { parts }: CollectedOutput): string {
  if (result.ended === 'not_started') return result.error;
  const hasFailed = result.exitCode === 125 || result.exitCode === 1;
  return (hasFailed ? parts.join('').trim() : '') || 'its network could not be watched';
}

/** The end of a rehearsed command. */
interface EndedRun {
  readonly result: ProcessResult;
  readonly collected: CollectedOutput;
  readonly tried: boolean;
  readonly left: string;
}

interface OpenLayers {
  readonly layers: Layers;
  readonly options: RehearsalOptions;
}

function rehearsal(
  request: RehearsalRequest,
  ended: EndedRun,
  changes: LayerChanges,
  { layers, options }: OpenLayers,
): Rehearsal {
  const { workspace, home, journals } = options;
  const effects: Effects = { ...changes.effects, network: ended.tried };
  const unclear = unclearEnd(ended);
  const added = (options.directories?.() ?? []).filter(({ readOnly }) => !readOnly);
  const places = { workspace, added: added.map(({ path }) => path), home };
  const plan = keepProblem(ended, unclear, changes) ?? planKeep(layers, changes.steps, places);
  const outcome = request.outcome(ended.result, ended.collected);
  return {
    outcome: hasEffects({ effects, unclear }) ? outcome : noted(outcome, ended.result),
    effects,
    unclear,
    keepProblem: typeof plan === 'string' ? plan : null,
    diff: (maxBytes) => diffOf(changes, maxBytes),
    keep: async (): Promise<KeepResult> => {
      if (typeof plan === 'string') return { ok: false, problem: plan };
      const kept = await keepLayers({ layers, plan, places, journals, name: `${ownerName()}-${randomUUID()}` });
      await layers.remove();
      return typeof kept === 'string' ? { ok: false, problem: kept } : { ok: true, outcome: { ...outcome, ...kept } };
    },
    discard: () => layers.remove(),
  };
}

const note = 'rehearsed: without network, sockets and other processes';

/** A command that failed may have failed for want of what a rehearsal does not have. */
function noted(outcome: ToolOutcome, result: ProcessResult): ToolOutcome {
  const { envelope } = outcome;
  if (isError(envelope) || result.ended !== 'exit' || result.exitCode === 0) return outcome;
  return { ...outcome, envelope: { ...envelope, note } };
}

/** Errors of programs that could not do on the view what they can do outside: rename a folder, change a file of another
 * owner, set its owner or attributes, write where the view is read-only. */
const refusedInView =
  /EXDEV|cross-device|os error 18\b|EOVERFLOW|Value too large|os error 75|EROFS|Read-only file system|os error 30|EPERM|Operation not permitted|os error 1\b|Operation not supported|os error 95|(?:owner|group)\S* of .*Invalid argument/i;

/** Errors of programs that could not reach what a rehearsal hides: a socket, another process. */
const hiddenFromView =
  /(?:cannot|could not|can't|couldn't|failed to|unable to|error) connect|error connecting|connection (?:to \S+ .{0,80}failed|refused)|ECONNREFUSED|dial unix|cannot communicate with|(?:cannot|unable to) open display|ESRCH|No such process/i;

/** Returns why a run does not show what the command would do, or null. */
function unclearEnd({ result, collected, left, tried }: EndedRun): string | null {
  if (result.ended === 'timeout') return 'it was still running when its time was over';
  if (result.ended === 'cancelled' && !tried) return 'it was stopped';
  if (left.includes('processes')) return 'its processes are still running';
  if (left.includes('memory')) return 'it creates files in /dev/shm';
  if (result.ended !== 'exit' || result.exitCode === 0) return null;
  const output = collected.parts.join('');
  if (refusedInView.test(output)) return 'it does something that a preview cannot';
  return hiddenFromView.test(output) ? 'it looks for something that a rehearsal hides' : null;
}

function keepProblem({ tried }: EndedRun, unclear: string | null, { odd }: LayerChanges): string | null {
  if (tried) return 'it uses the network';
  if (unclear !== null) return unclear;
  if (odd.length > 0) return `${odd[0] ?? ''} is neither a file nor a folder nor a link`;
  return null;
}

async function diffOf({ steps, effects }: LayerChanges, maxBytes: number): Promise<string> {
  const { written, deleted } = effects;
  let text = deleted.map((path) => `deleted: ${path}\n`).join('');
  for (const { path } of written) {
    const layer = steps.find((step) => isWithin(path, step.layer.real))?.layer;
    if (layer === undefined) continue;
    const name = Buffer.from(path.slice(layer.real.length + 1)).toString('latin1');
    const [before, after] = [textAt(bytesOf(layer.real, name)), textAt(bytesOf(layer.upper, name))];
    text +=
      after === null
        ? `not a text: ${path}\n`
        : ((await unifiedDiff(path.slice(1), before, after)) ?? `attributes: ${path}\n`);
    if (text.length > maxBytes)
      return `${text.slice(0, text.lastIndexOf('\n', maxBytes) + 1)}… The rest is left out.\n`;
  }
  return text;
}

/** Lists names in the merged view, in a namespace of its own. */
function mergedLists(processes: ProcessRunner, layers: Layers): ListMerged {
  return async (layer, folders) => {
    const { text, result } = await output(processes, {
      ...listMerged(layer, `${layers.folder}/view`),
      env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C' },
      sandbox: 'off',
      input: Buffer.from(folders.map((name) => `./${name}\0`).join(''), 'latin1'),
      signal: new AbortController().signal,
      timeoutMs: 120_000,
      maxTotalBytes: 256 * 1024 * 1024,
    });
    if (result.ended !== 'exit' || result.exitCode !== 0)
      throw new Error(`the merged view could not be read: ${text.slice(0, 200)}`);
    return namesByFolder(folders, text);
  };
}

function namesByFolder(folders: readonly string[], text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const names = new Map(folders.map((name) => [name, new Set<string>()]));
  for (const path of text.split('\0')) {
    const at = path.lastIndexOf('/');
    names.get(path.slice(2, at))?.add(path.slice(at + 1));
  }
  return names;
}

import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { HostDeps } from '../kernel/agent/dependencies.js';
import type { Recorder } from '../kernel/agent/recorder.js';
import { createSession, type Session, type SessionParts } from '../kernel/agent/session.js';
import type { Event, EventDraft } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';

import { lastTools, type ModelRef } from '../kernel/core/projection.js';
import type { Provider } from '../kernel/core/provider.js';
import { loadOnce, type Log } from '../kernel/core/runtime.js';
import type { SecretGuard } from '../kernel/core/secrets/guard.js';
import { placeOf, type SessionEnds, type SessionRow, type Store } from '../kernel/core/store.js';
import type { Registry } from '../kernel/core/tool.js';
import { contextWindowOf, findModel } from '../kernel/providers/models.js';
import { createReplacedRegistry, createSubsetRegistry } from '../kernel/tools/registry.js';
import type { RootOptions } from '../kernel/console/options.js';
import { CliError, exit, type RoleChoices } from '../kernel/console/command.js';
import { printError } from '../kernel/console/print.js';
import { sessionGuard } from '../kernel/secrets/known-secrets.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import { agentOpening, changedPrompt, changedTools, type PromptChange, sessionBeginning } from './context-files.js';
import { changesSince, newSessionId, openSession, refuseAgent } from './find-session.js';
import { directoryId } from '../kernel/disk/directory-id.js';
import type { OpenedSession, SessionChoice } from '../kernel/console/run-settings.js';
import type { AllowedTools } from './allowed-tools.js';
import { instructionPlace } from './instructions/instruction-places.js';
import { createFileNotes } from './instructions/later-instructions.js';
import { createLoadedInstructions } from './instructions/loaded-instructions.js';
import { runEvents } from './repeatable-line.js';
import { changedInstructions, type InstructionChange } from './changed-instructions.js';
import {
  addressNotices,
  choiceOf,
  chooseModel,
  fallbackModels,
  fallbackNotices,
  type ModelChoice,
  resolveAgentModel,
  resumedModel,
} from './model-resolution.js';
import { askWindow, type OpenedModel, openModel } from './open-model.js';
import { openOwner } from './live/open-owner.js';
import type { Owner } from './live/owner-host.js';
import { openPictures, type Pictures } from '../kernel/console/pictures.js';
import { provided } from './features.js';
import { keepMode, modeChange } from './kept-mode.js';
import { loadRules, openPolicy, policyElsewhere } from './open-policy.js';
import type { SwitchablePolicy } from '../kernel/console/run-settings.js';
import { openRunSandbox, openToolbox, type RunSandbox, type RunTools } from './open-tools.js';
import { createRoleChoices, openRoleModels, type RoleModels } from './role-models.js';
import { createLastSave, type LastSaveHost } from './last-save.js';
import { createSpendLimit, requirePrice, type SpendLimit } from './spend-limit.js';
import { explainMissing, lostEvents, noteEnds, openCapture, openSessionStore } from './open-record.js';
import type { AgentHost, AgentPlace } from '../kernel/console/feature.js';
import type { Tables } from '../kernel/store/tables.js';
import type { SessionSource } from '../kernel/core/hooks.js';
import { openRunParts, type RunParts } from './run-parts.js';

/** The state that all sessions of one run share. */
export interface Run {
  readonly settings: Settings;
  readonly options: RootOptions;
  readonly store: Store;
  readonly tables: Tables;
  /** Null: no session outlives this process. */
  readonly lasting: { readonly ends: SessionEnds } | null;
  readonly toolbox: RunTools;
  /** The images that messages and results bring. */
  readonly pictures: Pictures;
  /** The parts that features add to this run. */
  readonly parts: RunParts;
  readonly policy: SwitchablePolicy;
  readonly sandbox: RunSandbox;
  readonly spend: SpendLimit;
  /** The models of roles that count in this run. */
  readonly roles: RoleChoices;
  /** The notices so far. A method, not a getter: copies of a run must not keep the notices of that moment. */
  readonly notices: () => readonly Notice[];
  /** The most calls of the turn that begins now. Absent: any number. */
  readonly turnCalls?: () => number;
  close(): Promise<void>;
}

/** `canAsk`: a user is there to answer prompts during the whole run. `inRepl`: the run is a REPL. `updating` receives a
 * message before an old database is updated; without it the message is printed. */
interface RunKind {
  readonly canAsk: boolean;
  readonly inRepl?: boolean;
  readonly updating?: ((message: string) => void) | undefined;
}

export async function openRun(
  settings: Settings,
  options: RootOptions,
  { canAsk, inRepl = false, updating }: RunKind = { canAsk: false },
): Promise<Run> {
  const allowed = await openAllowed(settings, options);
  const policy = openPolicy(allowed.settings);
  if (options.plan === true) policy.plan(true);
  const sandbox = await openRunSandbox(settings);
  const opening = openSessionStore(settings, options.ephemeral === true, updating);
  const said: Notice[] = [];
  const notify = (message: string, code = 'tool_missing'): void => {
    said.push({ level: 'warn', code, message });
  };
  const [{ store, tables, ends, notices }, toolbox] = await Promise.all([
    opening,
    openToolbox(settings, options.tools, {
      approval: canAsk ? policy : null,
      sandbox,
      inRepl,
      ports: () => opening,
      notify,
    }),
  ]);
  const { processes, registry } = toolbox;
  const parts = await openRunParts({
    settings,
    options,
    registry,
    parts: toolbox.parts,
    tables,
    isLasting: ends !== null,
    canAsk,
    processes,
    policy,
    notify,
  });
  for (const tool of parts.tools()) registry.register(tool);
  await toolbox.offer(parts.offers());
  return {
    settings,
    options,
    store,
    tables,
    lasting: ends && { ends },
    parts,
    toolbox,
    pictures: openPictures(provided, settings, processes),
    policy,
    sandbox,
    spend: createSpendLimit(settings.config),
    roles: createRoleChoices(settings.config),
    notices: () => [...settings.notices, ...notices, ...said, ...allowed.notices(toolbox.registry), ...parts.notices()],
    close: async () => {
      await Promise.all([toolbox.close(), parts.close()]);
      await store.close();
    },
  };
}

/** Adds the rules of `--allowed-tools`, `--ask-tools` and `--disallowed-tools`. */
async function openAllowed(
  settings: Settings,
  { allowedTools: allow = [], askTools: ask = [], disallowedTools: deny = [] }: RootOptions,
): Promise<AllowedTools> {
  if (allow.length + ask.length + deny.length === 0) return { settings, notices: () => [] };
  return (await loadRules()).withRunRules(settings, {
    allow: allow.join(','),
    ask: ask.join(','),
    deny: deny.join(','),
  });
}

/** A tool that ignores TERM is killed after 2 s; a turn that runs longer than this is abandoned. */
const longestEndingMs = 3000;

const lastSaveHost: LastSaveHost = { clock: () => performance.now(), wait, report: printError };

/** A session with all its parts, ready for its next turn. */
export interface Assembly {
  readonly session: Session;
  readonly row: SessionRow;
  readonly model: OpenedModel;
  /** Other processes reach the session through it. */
  readonly owner: Owner;
  readonly notices: readonly Notice[];
  /** Knows the secrets of this session. */
  readonly secrets: SecretGuard;
  /** Saves all events, those of sub-agents too. Waits for a database that another process has locked. Returns the
   * number of events that could not be saved; says which they are. */
  readonly save: () => Promise<number>;
  /** Saves all events and gives back the lease and the connection; the run stays open. Returns what `save` does. */
  close(): Promise<number>;
}

/** Opens a new session or an old one. Throws a `CliError` with the exit code of what is wrong. */
export async function createAgentSession(run: Run, choice: SessionChoice, interactive: boolean): Promise<Assembly> {
  const { settings } = run;
  const opened = await offerRecorded(run, await findOrExplain(run, choice));
  const secrets = sessionGuard(settings, opened.restored);
  const open = (chosen: ModelChoice): Promise<OpenedModel> => openModel(settings, chosen, secrets, interactive);
  const model = overrideProvider(await firstModel(run, opened, choice, open), choice);
  const models = createModels(
    model,
    (ref) => open(choiceOf(ref)),
    () => session.settled(),
  );
  if (!interactive) model.warm(); // the prompt is sent in a moment
  const roleModels = roleModelsOf(run, open, () => session);
  const begun = beginningOf(run, opened, choice, { model, secrets });
  const { opening, notes, prompt, notices } = await begun.catch(letGo(opened, model));
  // The command line is about the first session of a run, not about those that a command or a task opens.
  const line = choice.after === undefined && choice.mission === undefined ? runEvents(run.options) : [];
  const isNew = opened.restored.length === 0;
  const records: Recorder[] = [];
  const row: SessionRow = { ...opened.row, cwd: settings.cwd, ...placeOf(model.ref) };
  const session = createSession({
    record: recordOf(run, opened, row, { opening: [...opening, ...line], notes }),
    model,
    models: { ...modelFacts(run, () => session), ...otherModels(roleModels) },
    connect: models.open,
    tools: sessionTools(run, { choice, isNew, session: () => session, openModel: open, roleModels, records }),
    limits: { ...settings.config.limits, ...(run.turnCalls ? { turnCalls: run.turnCalls } : {}) },
    interactive,
    ...replacements(run),
    attachments: run.pictures.attachments,
    grants: choice.mission?.grants ?? [],
    secrets,
    host: sessionHost(settings.log),
  });
  records.unshift(session.record);
  const save = createLastSave(records, lastSaveHost);
  const owner = openOwner(session, { settings, store: run.store, row });
  const detach = attachObservers(run, session, secrets);
  const since = await collectNotices(session, () => bringUpToDate(session, opened, { model, prompt, line }, run));
  if (!isNew) await owner.deliverKept();
  return {
    session,
    row,
    model,
    owner,
    secrets,
    notices: [...notices, ...since],
    save,
    close: async () => {
      await recordMode(run, session);
      return await endSession({ session, records, save }, async () => {
        await detach();
        owner.close();
        await opened.release().catch(() => undefined);
        models.close();
        roleModels.close();
      });
    },
  };
}

/** Returns what features put in the place of a message, and of the end of a turn at a usage limit. */
function replacements({ parts }: Run): Pick<SessionParts, 'expand' | 'mentions' | 'waitForLimit'> {
  return { expand: parts.expand, mentions: parts.mentions, ...parts.limitWait() };
}

function otherModels({ forRole, forTurn }: RoleModels): Pick<SessionParts['models'], 'forRole' | 'forTurn'> {
  return { forRole, forTurn };
}

function roleModelsOf(
  { settings, roles }: Run,
  open: (chosen: ModelChoice) => Promise<OpenedModel>,
  session: () => Session,
): RoleModels {
  return openRoleModels(settings, roles, open, (notice) => {
    session().notify(notice);
  });
}

function recordOf(
  { store }: Run,
  { restored, left, begin }: OpenedSession,
  row: SessionRow,
  beginning: Pick<SessionParts['record'], 'opening' | 'notes'>,
): SessionParts['record'] {
  return { store, row, restored, ...(left ? { left } : {}), begin, ...beginning };
}

/** Returns a handler that gives back what a session holds that cannot begin, and throws the reason. */
function letGo(opened: OpenedSession, model: OpenedModel): (error: unknown) => Promise<never> {
  return async (error) => {
    model.close();
    await opened.release();
    throw error;
  };
}

/** Returns what a session begins with: its prompt and tools, and what has changed since it ran before. */
async function beginningOf(
  run: Run,
  opened: OpenedSession,
  choice: SessionChoice,
  { model, secrets }: { readonly model: OpenedModel; readonly secrets: SecretGuard },
): Promise<
  Awaited<ReturnType<typeof sessionBeginning>> & Pick<InstructionChange, 'notes'> & Pick<PromptChange, 'prompt'>
> {
  const { settings } = run;
  const windowTokens = contextWindowOf(settings, model.ref.provider, model.ref.model);
  const facts = {
    listing: (registry: Registry) => run.parts.listing(registry, windowTokens),
    style: () => run.parts.style(),
    notes: () => run.parts.promptText(),
    mask: (text: string) => secrets.text(text),
  };
  const { opening, notices } = await sessionBeginning(settings, run.toolbox.registry, opened, facts);
  const offered = run.options.tools === undefined ? toolsOnRecord(run, () => opened.restored) : run.toolbox.registry;
  const changed =
    choice.after === undefined ? await changedPrompt(settings, offered, opened, facts) : { prompt: null, notices: [] };
  const since = await sinceThen(run, opened, choice, {
    windowTokens,
    secrets,
    isRendered: changed.prompt !== null,
  });
  return {
    opening,
    notes: since.notes,
    prompt: changed.prompt,
    notices: [
      ...run.parts.sessionNotices(),
      ...since.notices,
      ...changed.notices,
      ...familyNotice(model),
      ...fallbackNotices(settings, model.ref),
      ...notices,
    ],
  };
}

/** Notes where turns end, and has features follow the session. Returns what ends all that. */
function attachObservers({ parts, lasting }: Run, session: Session, secrets: SecretGuard): () => Promise<void> {
  const note = lasting && noteEnds(session, lasting.ends);
  const unfollow = parts.follow({ session, mask: (text) => secrets.text(text) });
  return async () => {
    unfollow();
    await note?.();
  };
}

/** Returns notes for the model and notices for the user about changes since the session last ran, and keeps its mode.
 * `isRendered`: a new prompt has the current instructions. */
async function sinceThen(
  run: Run,
  opened: OpenedSession,
  choice: SessionChoice,
  {
    windowTokens,
    secrets,
    isRendered,
  }: { readonly windowTokens: number | null; readonly secrets: SecretGuard; readonly isRendered: boolean },
): Promise<InstructionChange> {
  const { settings, toolbox, store, lasting } = run;
  const { row, restored } = opened;
  const notes = [...changesSince(opened, settings.cwd, Date.now()), ...(await run.parts.notesBefore(restored))];
  const kept = await keepMode(run, restored, choice.after === undefined);
  const notices = [...kept, ...movedNotice(opened, settings.cwd)];
  if (restored.length === 0) return { notes, notices };
  const lost = lasting ? await lostEvents(store, lasting.ends, choice, opened, settings.cwd) : [];
  if (isRendered) return { notes, notices: [...notices, ...lost] };
  const [skills, memory] = await Promise.all([
    run.parts.listing(toolbox.registry, windowTokens),
    run.parts.promptText(),
  ]);
  const changed = changedInstructions({
    settings,
    restored,
    cwdBefore: row.cwd,
    skills: skills.text,
    memory,
    mask: (text) => secrets.text(text),
  });
  return { notes: [...notes, ...changed.notes], notices: [...notices, ...changed.notices, ...lost] };
}

/** Records a mode that was switched after the last message. */
async function recordMode(run: Run, session: Session): Promise<void> {
  const change = session.recent().length > 0 && !session.busy() ? modeChange(run, session.recent()) : null;
  if (change) await session.append(change);
}

/** Returns the limits and windows of models that a turn needs. */
function modelFacts(
  { policy, spend, settings, parts }: Run,
  session: () => Pick<Session, 'recent' | 'totals'>,
): Omit<SessionParts['models'], 'forRole' | 'forTurn'> {
  const { models } = settings.config.provider;
  return {
    planning: () => policy.planning(),
    budget: (ref) => spend.budget(ref, parts.maxCostUsd(session().recent(), session().totals().spentUsd)),
    fallbacks: (ref, own) => fallbackModels(settings, ref, own),
    price: (ref) => findModel(ref.provider, ref.model, models)?.price ?? null,
    contextWindow: (ref) => contextWindowOf(settings, ref.provider, ref.model),
    askWindow: (ref) => askWindow(settings, ref),
  };
}

function overrideProvider(model: OpenedModel, { mission }: SessionChoice): OpenedModel {
  return mission?.answers ? { ...model, provider: mission.answers(model.provider) } : model;
}

/** Offers the tools on the record of a resumed session, also of sets that are not switched on by now. */
async function offerRecorded({ options, toolbox }: Run, opened: OpenedSession): Promise<OpenedSession> {
  const { restored } = opened;
  const last = options.tools === undefined ? lastTools(restored) : null;
  if (last) await toolbox.offer(last.tools.map(({ name }) => name));
  return opened;
}

function sessionTools(
  run: Run,
  {
    choice,
    isNew,
    session,
    openModel: open,
    roleModels,
    records,
  }: Pick<AgentHost, 'records'> & {
    readonly roleModels: RoleModels;
    readonly openModel: (chosen: ModelChoice) => Promise<OpenedModel>;
    readonly choice: SessionChoice;
    readonly isNew: boolean;
    readonly session: () => Session;
  },
): SessionParts['tools'] {
  const registry = isNew ? run.toolbox.registry : toolsOnRecord(run, () => session().recent());
  const hooks = run.parts.hooks(sourceOf(choice, isNew));
  const { settings, store, parts } = run;
  const noting = loadOnce(() => parts.beforeChanges(session()));
  const agents = parts.agents({
    settings,
    store,
    registry,
    resolveModel: (name, current) => resolveAgentModel(settings, name, current),
    openModel: (ref) => open(choiceOf(ref)),
    openDefaultModel: (current) => roleModels.forRole('subagent', current),
    openSession: (resume, fresh) => openSession(store, { continueNewest: false, resume, fork: false }, fresh),
    ...agentTexts(settings, parts),
    openPlace: (cwd) => openAgentPlace(run, registry, cwd),
    hooks: (source, agent) => parts.hooks(source, agent),
    follow: (followed) => parts.follow(followed),
    records,
  });
  return {
    ...(agents ? { agents } : {}),
    ...(hooks ? { hooks } : {}),
    registry,
    policy: { ...run.policy, record: (events) => modeChange(run, events) },
    choose: async (whole, choice) => (await loadRules()).chosenRegistry(whole, choice),
    allowing: async (patterns) => {
      const { rules, problems } = (await loadRules()).readTurnRules(settings, patterns);
      return { policy: policyElsewhere(run.policy, settings, rules), problems };
    },
    news: (events) => parts.news(events),
    fileNotes: createFileNotes(instructionPlace(settings), (message) => {
      session().notify({ level: 'warn', code: 'context_file', message });
    }),
    loadedInstructions: createLoadedInstructions(instructionPlace(settings)),
    capture: openCapture(run.settings),
    beforeChanges: () => noting.get(),
    renewPrompt: (prompt) => run.parts.renewPrompt(prompt),
  };
}

/** Returns what agents in the directory of `settings` read at the beginning, and about the files of their calls. */
function agentTexts(settings: Settings, parts: RunParts): Pick<AgentHost, 'opening' | 'fileNotes'> {
  return {
    opening: async (offered, { role, named, windowTokens }) =>
      agentOpening(settings, offered, {
        role,
        known: [...(await parts.namedTexts(named)), (await parts.listing(offered, windowTokens)).text],
      }),
    fileNotes: (warn) => createFileNotes(instructionPlace(settings), warn),
  };
}

/** Opens the worktree of an agent: its calls are judged, confined, watched and undone there as those of the session are
 * in its own directory. */
async function openAgentPlace(run: Run, registry: Registry, cwd: string): Promise<AgentPlace> {
  const settings: Settings = { ...run.settings, cwd };
  const { limits, tools } = settings.config;
  const elsewhere = await run.toolbox.toolsAt(cwd, run.policy.sandbox());
  return {
    ...agentTexts(settings, run.parts),
    registry: createReplacedRegistry(registry, elsewhere.tools, {
      maxOutputBytes: limits.maxOutputBytes,
      timeoutMs: limits.toolTimeoutMs,
      now: () => performance.now(),
      limits: tools.limits,
    }),
    policy: policyElsewhere(run.policy, settings),
    capture: openCapture(settings),
    close: () => elsewhere.close(),
  };
}

/** Returns the tools that the session has on record: a resume offers no others, neither to the model nor to its agents. */
function toolsOnRecord({ toolbox }: Run, events: () => readonly Event[]): Registry {
  return createSubsetRegistry(toolbox.registry, {
    offers: (name) => lastTools(events())?.tools.some((tool) => tool.name === name) ?? true,
    reaches: () => true,
  });
}

/** Returns how a session of that choice starts, for hooks. */
function sourceOf({ fork, after }: SessionChoice, isNew: boolean): SessionSource {
  if (isNew) return after === undefined ? 'startup' : 'clear';
  return fork ? 'fork' : 'resume';
}

/** Finds the session and takes its lease. Where it is not found, the error says what is known of it. */
async function findOrExplain(run: Run, asked: SessionChoice): Promise<OpenedSession> {
  const { store, lasting } = run;
  const choice = lasting ? await run.parts.find(asked, store) : asked;
  const { cwd } = run.settings;
  const createdAt = Date.now();
  // Options are about the first session of a run, not about those that a command or a task opens.
  const isFirst = choice.after === undefined && choice.mission === undefined;
  const given: Pick<RootOptions, 'name' | 'sessionId'> = isFirst ? run.options : {};
  const title = given.name === undefined ? null : run.settings.guard.text(given.name);
  const fresh: SessionRow = {
    id: given.sessionId === undefined ? newSessionId(() => createdAt) : await unusedId(store, given.sessionId, choice),
    parentId: null,
    cwd,
    title,
    provider: null,
    model: null,
    createdAt,
    updatedAt: createdAt,
    ...directoryOf(cwd),
    ...(choice.mission?.door ? { door: choice.mission.door } : {}),
  };
  const refuse = (found: SessionRow): Promise<unknown> => {
    refuseAgent(found, choice);
    return resumedModel(run.settings, found, () => store.load(found.id), choice.after === undefined);
  };
  const opened = await openSession(store, choice, fresh, refuse).catch(async (error: unknown) => {
    throw lasting ? await explainMissing(error, store, lasting.ends, choice, cwd) : error;
  });
  if (title !== null && opened.row.title !== title) await store.update(opened.row.id, { title });
  return title === null ? opened : { ...opened, row: { ...opened.row, title } };
}

/** Returns the id of `--session-id`. Throws a `CliError` where no new session can have it. */
async function unusedId(store: Store, id: string, { continueNewest, resume, fork }: SessionChoice): Promise<string> {
  if (!/^[\w-]{6,64}$/.test(id))
    throw new CliError(
      exit.usage,
      `--session-id: \`${id}\` cannot be the id of a session`,
      'Give 6 to 64 letters, digits and hyphens, for example a UUID.',
    );
  if ((continueNewest || resume !== null) && !fork)
    throw new CliError(exit.usage, '--session-id names a new session', 'Add --fork, or leave it out.');
  if ((await store.session(id)) !== null)
    throw new CliError(exit.session, `there is a session ${id} already`, `Continue it: agent -r ${id}`);
  return id;
}

/** Opens the model that the session starts with. Gives the lease back where that fails. */
async function firstModel(
  run: Run,
  opened: OpenedSession,
  choice: SessionChoice,
  open: (chosen: ModelChoice) => Promise<OpenedModel>,
): Promise<OpenedModel> {
  try {
    const load = () => run.store.load(opened.row.id);
    const model = await open(await chooseModel(run.settings, opened, load, choice.after));
    requirePrice(run.spend, model.ref);
    return model;
  } catch (error) {
    await opened.release();
    throw error;
  }
}

/** Ends the turn and saves all events. A turn that does not end in time is abandoned. */
async function endSession(
  { session, records, save }: Pick<Assembly, 'session' | 'save'> & { readonly records: readonly Recorder[] },
  release: () => Promise<void>,
): Promise<number> {
  session.interrupt();
  await Promise.race([session.settled(), wait(longestEndingMs, undefined, { ref: false })]);
  await session.ended();
  const unsaved = await save();
  for (const record of records) record.end();
  await release();
  return unsaved;
}

/** The clock, timers and hashes of this machine, as a session uses them. */
export function sessionHost(log: Log): HostDeps {
  return {
    now: Date.now,
    schedule: (callback, delayMs) => {
      const timer = setTimeout(callback, delayMs);
      return () => {
        clearTimeout(timer);
      };
    },
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    log,
  };
}

function directoryOf(cwd: string): Pick<SessionRow, 'directoryId'> {
  const id = directoryId(cwd);
  return id === null ? {} : { directoryId: id };
}

/** Says which model a family is, because it changes with the provider's list. */
function familyNotice({ ref, family }: OpenedModel): readonly Notice[] {
  if (family === undefined) return [];
  return [{ level: 'info', code: 'model_family', message: `${family} is ${ref.provider}/${ref.model}.` }];
}

function movedNotice({ row, movedFrom }: OpenedSession, cwd: string): readonly Notice[] {
  return movedFrom === null
    ? []
    : [
        {
          level: 'warn',
          code: 'directory_moved',
          message: `This directory was ${movedFrom} before it was moved. Session ${row.id} continues in ${cwd}.`,
        },
      ];
}

/** Opens the models that a session is switched to. The one before is closed once no turn uses it, the last one with the
 * session. */
function createModels(
  first: OpenedModel,
  openOther: (ref: ModelRef) => Promise<OpenedModel>,
  settled: () => Promise<void>,
): { readonly open: (ref: ModelRef) => Promise<Provider>; readonly close: () => void } {
  let current = first;
  return {
    open: async (ref) => {
      if (sameModel(current.ref, ref)) return current.provider;
      const left = current;
      current = await openOther(ref);
      void settled().then(() => {
        left.close();
      });
      return current.provider;
    },
    close: () => {
      current.close();
    },
  };
}

function sameModel(one: ModelRef, other: ModelRef): boolean {
  return (
    one.provider === other.provider &&
    one.model === other.model &&
    one.api === other.api &&
    one.baseUrl === other.baseUrl
  );
}

/** Returns the notices of `work`, and those that the session emits meanwhile: nobody else listens yet. */
async function collectNotices(session: Session, work: () => Promise<readonly Notice[]>): Promise<readonly Notice[]> {
  const said: Notice[] = [];
  const stop = session.subscribe((event) => {
    if (event.type === 'notice') said.push({ level: event.level, code: event.code, message: event.message });
  });
  const notices = await work();
  stop();
  return [...said, ...notices];
}

/** Brings an old session up to date: answers open calls, records another model and an explicit change of the tools. */
async function bringUpToDate(
  session: Session,
  opened: OpenedSession,
  {
    model,
    prompt,
    line,
  }: { readonly model: OpenedModel; readonly line: readonly EventDraft[] } & Pick<PromptChange, 'prompt'>,
  run: Run,
): Promise<readonly Notice[]> {
  if (opened.restored.length === 0) return [];
  await run.parts.settle(session, run.store);
  await session.repair();
  const { row } = opened;
  const switched = row.provider !== model.ref.provider || row.model !== model.ref.model;
  if (switched || row.baseUrl !== model.ref.baseUrl || (row.baseUrl !== undefined && row.api !== model.ref.api))
    await session.switchModel(model.ref);
  const dropped: readonly Notice[] =
    switched && hasReasoning(opened.restored)
      ? [
          {
            level: 'info',
            code: 'model_changed',
            message:
              `The session continues with ${model.ref.provider}/${model.ref.model}. ` +
              'It does not get the reasoning of the previous model.',
          },
        ]
      : [];
  const notices = [...dropped, ...addressNotices(row, model)];
  if (prompt) await session.append(prompt);
  for (const event of line) await session.append(event);
  const tools = changedTools(run.settings, run.toolbox.registry, lastTools(opened.restored), run.options.tools);
  if (tools === null) return notices;
  await session.append(tools);
  return [
    ...notices,
    {
      level: 'warn',
      code: 'tools_changed',
      message: 'The tools or their settings changed: the next request is not cached.',
    },
  ];
}

function hasReasoning(events: readonly Event[]): boolean {
  return events.some(
    (event) => event.kind === 'assistant' && isRecord(event.data) && Array.isArray(event.data.reasoning),
  );
}

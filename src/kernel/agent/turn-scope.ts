import { countingEvents, type Event, knownEvent, type CommandSource, type TurnSettingsData } from '../core/event.js';
import { onlyReading, type Policy } from '../core/policy.js';
import type { ModelRef } from '../core/projection.js';
import type { AgentEvent, Expand } from '../core/session-port.js';
import type { Registry } from '../core/tool.js';
import { isUsualTurn, type TurnSettings } from '../core/turn-settings.js';
import type { ModelDeps, ReadyModel, ToolDeps, TurnSettingsUse } from './dependencies.js';
import type { Recorder } from './recorder.js';

interface TurnScopeParts {
  readonly record: Recorder;
  readonly emit: (event: AgentEvent) => void;
  readonly tell: (note: string) => void;
  readonly tools: ToolDeps;
  readonly models: Pick<ModelDeps, 'forTurn'>;
  /** The model of the session. */
  readonly ownRef: () => ModelRef;
  readonly expand?: Expand;
}

/** The settings in use. */
interface Active {
  readonly data: TurnSettingsData;
  /** Null: that of the session. */
  readonly model: ReadyModel | null;
  readonly registry: Registry;
  readonly policy: Policy;
}

/** Replaces the model, the tools and the policy of a session in a turn, where the file of a command or skill says so. The log has the settings, so that a turn which was killed continues with them. */
export class TurnScope implements TurnSettingsUse {
  readonly #parts: TurnScopeParts;
  #active: Active | null = null;
  /** Another model has stepped in for that of the turn. */
  #isModelLeft = false;
  /** Replaced when the turn ends. */
  #turn: object = {};

  constructor(parts: TurnScopeParts) {
    this.#parts = parts;
  }

  registry(): Registry {
    return this.#active?.registry ?? this.#parts.tools.registry;
  }
  policy(): Policy {
    return this.#active?.policy ?? this.#parts.tools.policy;
  }

  /** Puts the limits of the turn over the policy of another directory. */
  confine(policy: Policy): Policy {
    const data = this.#active?.data;
    return data?.only_reads === true ? this.#reading(policy, data) : policy;
  }

  /** Returns the model of the next request. */
  model(ofSession: ReadyModel): ReadyModel {
    if (this.#active === null || this.#isModelLeft) return ofSession;
    const { model, data } = this.#active;
    const ready = model ?? ofSession;
    return data.effort === undefined ? ready : { ...ready, effort: data.effort };
  }

  /** Returns the model that the turn was given, also while another one has stepped in; null if it was given none. */
  ownModel(): ModelRef | null {
    return this.#active?.model?.ref ?? null;
  }

  leaveModel(): void {
    this.#isModelLeft = true;
  }

  /** Uses the model of the turn again if it is this one. Returns false if it is not. */
  returnsTo({ provider, model }: ModelRef): boolean {
    const own = this.ownModel();
    if (own === null || own.provider !== provider || own.model !== model) return false;
    this.#isModelLeft = false;
    return true;
  }

  async begin(settings: TurnSettings, source: CommandSource): Promise<void> {
    await this.end('ended');
    if (isUsualTurn(settings)) return;
    const note = await this.#use(settings, source);
    if (note !== null) await this.#parts.record.note({ kind: 'user', content: note, data: { note: true } });
  }

  async add(settings: TurnSettings, source: CommandSource): Promise<void> {
    const added: TurnSettings = { ...settings, allow: [] };
    if (settings.allow.length > 0)
      this.#notice('info', `/${source.name}: its file allows calls only where you use the skill yourself.`);
    if (isUsualTurn(added)) return;
    const note = await this.#use(added, source);
    if (note !== null) this.#parts.tell(note);
  }

  /** Continues with the settings of a turn that the end of the program has interrupted. `stopped`: one that a usage limit has stopped,
   * which only continues if the turn does. */
  async resume(why: 'message' | 'continued', isStopped: boolean): Promise<void> {
    const left = unfinishedSettings(this.#parts.record.events());
    if (left === null) return;
    if (why === 'message' && isStopped) {
      await this.#recordEnd(left);
      return;
    }
    const allow = left.allow === undefined ? [] : await this.#allowedNow(left.command);
    this.#active = await this.#activate(settingsOf(left, allow), left);
    if (why === 'message')
      this.#notice(
        'info',
        `This message continues the interrupted turn of /${left.command.name}: ${describeSettings(left)}.`,
      );
  }

  /** Ends the settings with the turn. `kept`: the turn may continue with them later. */
  async end(how: 'ended' | 'kept'): Promise<void> {
    const active = this.#active;
    this.#active = null;
    this.#isModelLeft = false;
    this.#turn = {};
    if (active !== null && how === 'ended') await this.#recordEnd(active.data);
  }

  /** Returns a note for the model; null where its tools are those of the session. */
  async #use(settings: TurnSettings, source: CommandSource): Promise<string | null> {
    const name = `/${source.name}`;
    const model = settings.model === null ? null : await this.#openModel(settings.model, name);
    const data = joinSettings(this.#active?.data, settings, source, model);
    const text = describeSettings(data);
    if (text === '') return null;
    this.#active = await this.#activate(settings, data, model);
    await this.#parts.record.append({ kind: 'turn_settings', content: `${name}: this turn ${text}.`, data });
    this.#notice('info', `${name}: this turn ${text}.`, 'noted');
    return limitNote(data);
  }

  async #activate(settings: TurnSettings, data: TurnSettingsData, opened?: ReadyModel | null): Promise<Active> {
    const model =
      opened === undefined && settings.model !== null
        ? await this.#openModel(settings.model, `/${data.command.name}`)
        : (opened ?? this.#active?.model ?? null);
    return {
      data,
      model,
      registry: await this.#chosenRegistry(settings),
      policy: await this.#policy(settings, data),
    };
  }

  async #openModel(names: string, from: string): Promise<ReadyModel | null> {
    const own = this.#parts.ownRef();
    const opened = (await this.#parts.models.forTurn?.(names, own)) ?? 'this session cannot change its model';
    if (typeof opened !== 'string') return opened;
    const used = `${own.provider}/${own.model}`;
    this.#notice('warn', `${from}: the model ${names} of its file cannot be used: ${opened}. This turn uses ${used}.`);
    return null;
  }

  async #chosenRegistry(settings: TurnSettings): Promise<Registry> {
    const whole = this.registry();
    if (settings.tools === null && settings.withoutTools.length === 0) return whole;
    return (await this.#parts.tools.choose?.(whole, settings)) ?? whole;
  }

  /** Allows calls beforehand as long as the turn runs: an agent in the background may outlive it. */
  async #policy({ allow, onlyReads }: TurnSettings, data: TurnSettingsData): Promise<Policy> {
    const base = this.policy();
    const made = allow.length === 0 ? null : ((await this.#parts.tools.allowing?.(allow)) ?? null);
    for (const problem of made?.problems ?? []) this.#notice('warn', `/${data.command.name}: ${problem}`);
    const turn = this.#turn;
    const counts = (): boolean => this.#turn === turn;
    const granted: Policy =
      made === null
        ? base
        : { ...base, assess: async (...call) => await (counts() ? made.policy : base).assess(...call) };
    return onlyReads ? this.#reading(granted, data) : granted;
  }

  #reading(policy: Policy, { command }: TurnSettingsData): Policy {
    return onlyReading(policy, `/${command.name} only reads`);
  }

  /** The file of a command says what it allows, so a log that came from elsewhere allows nothing. */
  async #allowedNow({ name, sha256 }: CommandSource): Promise<readonly string[]> {
    const expansion = (await this.#parts.expand?.(`/${name}`)) ?? null;
    if (expansion === null || typeof expansion === 'string' || expansion.command?.sha256 !== sha256) return [];
    return expansion.turn?.allow ?? [];
  }

  async #recordEnd({ command }: TurnSettingsData): Promise<void> {
    const content = `The settings of /${command.name} have ended with its turn.`;
    await this.#parts.record.append({ kind: 'turn_settings', content, data: { state: 'ended', command } });
  }

  #notice(level: 'info' | 'warn', message: string, noted?: 'noted'): void {
    const more = noted === undefined ? {} : ({ noted: true } as const);
    this.#parts.emit({ type: 'notice', level, code: 'turn_settings', message, ...more });
  }
}

/** Returns the settings of the last turn if the program was killed in it, or a usage limit has stopped it; null if there
 * are none. */
function unfinishedSettings(events: readonly Event[]): TurnSettingsData | null {
  const last = events.findLast(({ kind }) => kind === 'turn_settings');
  const known = last ? knownEvent(last) : null;
  if (known?.kind !== 'turn_settings' || known.data.state === 'ended') return null;
  const counting = countingEvents(events);
  const at = counting.findIndex(({ seq }) => seq === known.seq);
  // A message that was not recorded, or that a rewind took back, has no turn.
  const hasMessage = counting.slice(at + 1).some((event) => event.kind === 'user' && event.data?.note !== true);
  return at >= 0 && hasMessage ? known.data : null;
}

/** Adds settings to those that count already. */
function joinSettings(
  before: TurnSettingsData | undefined,
  settings: TurnSettings,
  command: CommandSource,
  model: ReadyModel | null,
): TurnSettingsData {
  const effort = settings.effort ?? model?.effort ?? (model === null ? before?.effort : undefined);
  const used = model === null ? before?.model : modelData(model.ref);
  return {
    ...{ state: 'set', command },
    ...(used === undefined ? {} : { model: used }),
    ...(effort === undefined ? {} : { effort }),
    ...joinLimits(before, settings),
  };
}

function joinLimits(
  before: TurnSettingsData | undefined,
  settings: TurnSettings,
): Pick<TurnSettingsData, 'tools' | 'without_tools' | 'only_reads' | 'allow'> {
  if (before === undefined) return limitsOf(settings);
  const earlier = settingsOf(before, before.allow ?? []);
  return limitsOf({
    ...settings,
    tools: settings.tools ?? earlier.tools,
    withoutTools: [...earlier.withoutTools, ...settings.withoutTools],
    onlyReads: earlier.onlyReads || settings.onlyReads,
    allow: [...earlier.allow, ...settings.allow],
  });
}

function limitsOf({ tools, withoutTools, onlyReads, allow }: TurnSettings): ReturnType<typeof joinLimits> {
  return {
    ...(tools === null ? {} : { tools }),
    ...(withoutTools.length === 0 ? {} : { without_tools: withoutTools }),
    ...(onlyReads ? { only_reads: true } : {}),
    ...(allow.length === 0 ? {} : { allow }),
  };
}

function settingsOf(data: TurnSettingsData, allow: readonly string[]): TurnSettings {
  return {
    model: data.model === undefined ? null : `${data.model.provider}/${data.model.model}`,
    effort: null,
    tools: data.tools ?? null,
    withoutTools: data.without_tools ?? [],
    onlyReads: data.only_reads === true,
    allow,
  };
}

function modelData({ provider, model, api, baseUrl }: ModelRef): NonNullable<TurnSettingsData['model']> {
  return { provider, model, api, ...(baseUrl === undefined ? {} : { base_url: baseUrl }) };
}

/** Describes the settings: `uses anthropic/claude-opus-4-5 with effort high, has only the tools Read, Grep`. */
function describeSettings({ model, effort, tools, without_tools, only_reads, allow }: TurnSettingsData): string {
  const withEffort = effort === undefined ? '' : `effort ${effort}`;
  const used = model === undefined ? withEffort : [`${model.provider}/${model.model}`, withEffort].filter(Boolean);
  return [
    ...(used.length === 0 ? [] : [`uses ${typeof used === 'string' ? used : used.join(' with ')}`]),
    ...(tools === undefined ? [] : [tools.length === 0 ? 'has no tools' : `has only the tools ${tools.join(', ')}`]),
    ...(without_tools === undefined ? [] : [`does not have the tools ${without_tools.join(', ')}`]),
    ...(only_reads ? ['only reads'] : []),
    ...(allow === undefined ? [] : [`needs no approval for ${allow.join(', ')}`]),
  ].join(', ');
}

/** The catalogue of a request stays the same, because a provider caches it. */
function limitNote({ tools, without_tools, only_reads }: TurnSettingsData): string | null {
  const limits = [
    ...(tools === undefined ? [] : [`you may use only these tools: ${tools.length === 0 ? 'none' : tools.join(', ')}`]),
    ...(without_tools === undefined ? [] : [`you may not use these tools: ${without_tools.join(', ')}`]),
    ...(only_reads ? ['calls that do more than read are denied'] : []),
  ];
  return limits.length === 0 ? null : `[Note: until this request is answered, ${limits.join('; ')}.]`;
}

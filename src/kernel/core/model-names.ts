/** All levels of reasoning effort, lowest first. */
export const effortLevels = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export type EffortLevel = (typeof effortLevels)[number];

/** The kinds of work for which the settings may name another model (`models.roles`). */
export const modelRoles = ['compaction', 'title', 'subagent', 'plan'] as const;

export type ModelRole = (typeof modelRoles)[number];

/** The kinds of work by which requests are counted; `main`: turns of a session. */
export const usageRoles = ['main', ...modelRoles, 'hook', 'web_search', 'goal', 'side_question'] as const;

/** The name of a model as a user writes it, without the effort at its end. */
export interface ModelName {
  readonly name: string;
  readonly effort: EffortLevel | null;
}

/** Reads `name[:effort]` and replaces an alias of the user by its model, also where that is an alias. An
 * effort beside an alias wins over one inside it. Only the words of `effortLevels` are an effort: `qwen3:8b` is a name. */
export function parseModelName(text: string, aliases: Readonly<Record<string, string>> = {}): ModelName {
  let { name, effort } = splitEffort(text);
  for (const seen = new Set<string>(); Object.hasOwn(aliases, name) && !seen.has(name);) {
    seen.add(name);
    const meant = splitEffort(aliases[name] ?? '');
    name = meant.name;
    effort ??= meant.effort;
  }
  return { name, effort };
}

function splitEffort(text: string): ModelName {
  const colon = text.lastIndexOf(':');
  const effort = effortLevels.find((level) => level === text.slice(colon + 1));
  return colon < 1 || effort === undefined ? { name: text, effort: null } : { name: text.slice(0, colon), effort };
}

/** Splits a list of names: `a, b`. */
export function splitModelList(text: string | null): readonly string[] {
  return (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Describes how the ids of a family's models are written. `lead`: their first word; `word`: a further one that names the family;
 * `others`: words behind the version, of models that are smaller, or made for something else than conversations. */
interface FamilyForm {
  readonly lead: string;
  readonly word?: string;
  readonly others: RegExp;
}

const anyWord = /./;
const otherKinds =
  /\d|^(?:mini|nano|lite|luna|codex|chat|audio|realtime|image|search|transcribe|tts|instruct|turbo|vision|cyber|spark|oss|live|embedding|robotics|computer|customtools|thinking|exp|deep)$/;
const families: Readonly<Record<string, FamilyForm>> = {
  opus: { lead: 'claude', word: 'opus', others: anyWord },
  sonnet: { lead: 'claude', word: 'sonnet', others: anyWord },
  haiku: { lead: 'claude', word: 'haiku', others: anyWord },
  gpt: { lead: 'gpt', others: new RegExp(`${otherKinds.source}|^pro$`) },
  gemini: { lead: 'gemini', others: otherKinds },
};

/** The names that mean the newest model of a family. */
export const modelFamilies: readonly string[] = Object.keys(families);

/** The facts in a model's id by which models of one family are compared. */
interface Member {
  readonly id: string;
  readonly version: readonly number[];
  /** Words after the version, such as `pro` or `sol`. */
  readonly words: readonly string[];
  readonly isDated: boolean;
}

/** Returns the newest of those ids that belong to a family, or null. Among models of one version it prefers the one
 * without a further word, then `pro` for Gemini, then the dearest, then the id without a date. */
export function newestOf(family: string, ids: readonly string[], price: (id: string) => number | null): string | null {
  const members = ids.flatMap((id) => memberOf(family, id) ?? []);
  const order = (one: Member, other: Member): number =>
    compareVersions(other.version, one.version) ||
    rankOf(one) - rankOf(other) ||
    (price(other.id) ?? 0) - (price(one.id) ?? 0) ||
    Number(one.isDated) - Number(other.isDated) ||
    (one.isDated ? other.id.localeCompare(one.id) : one.id.localeCompare(other.id));
  return members.toSorted(order)[0]?.id ?? null;
}

function rankOf({ words }: Member): number {
  return words.length === 0 ? 0 : words.includes('pro') ? 1 : 2;
}

function compareVersions(one: readonly number[], other: readonly number[]): number {
  return (one[0] ?? 0) - (other[0] ?? 0) || (one[1] ?? 0) - (other[1] ?? 0);
}

/** Reads an id in the forms of the vendors and of gateways: `claude-opus-4-5-20251101`, `claude-3-opus-20240229`,
 * `anthropic/claude-opus-4.5`, `us.anthropic.claude-opus-4-5-20251101-v1:0`, `claude-opus-4-5@20251101`,
 * `google/gemini-3-pro-preview`. Returns null for a model of another family or kind. */
function memberOf(family: string, id: string): Member | null {
  const form = families[family];
  if (form === undefined) return null;
  const bare = id
    .toLowerCase()
    .replace(/^.*\//, '')
    .replace(/^(?:[a-z]+[.])*(?=claude-)/, '')
    .replace(/-v\d+(?::\d+)?$/, '');
  const undated = bare.replace(/[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/, '');
  const [first, ...rest] = undated.split(/[-.]/);
  const isNamed = first === form.lead && (form.word === undefined || rest.includes(form.word));
  const parts = rest.filter((part) => part !== form.word && part !== 'preview');
  const end = parts.slice(0, 2).findIndex((part) => !/^\d{1,2}$/.test(part));
  const version = (end < 0 ? parts.slice(0, 2) : parts.slice(0, end)).map(Number);
  const words = parts.slice(version.length);
  if (!isNamed || version.length === 0 || words.some((part) => form.others.test(part))) return null;
  return { id, version, words, isDated: undated !== bare };
}

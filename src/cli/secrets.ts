import type { ProviderEntry } from '../config/config.js';
import type { EventDraft } from '../core/event.js';
import { isRecord } from '../core/json.js';
import { createStreamMask, type HiddenText, type StreamMask } from '../core/stream-mask.js';

/** A value that must never be written anywhere, and the name of what holds it. */
export interface Secret { readonly name: string; readonly value: string }

type Environment = Readonly<Record<string, string | undefined>>;
type OwnProviders = Readonly<Record<string, ProviderEntry>>;

/** Shorter values would hit ordinary words. */
const minLength = 8;
const keyVariable = /^(OPENAI|ANTHROPIC|OPENROUTER|DEEPSEEK|MOONSHOT|GEMINI|GOOGLE|XAI|MISTRAL|GROQ|OLLAMA|LMSTUDIO)_API_KEY$/;
const keyHeader = /auth|key|token|secret|cookie|password/i;

/** The names of variables that hold provider keys: no tool's process gets them. */
export function secretVariables(env: Environment, providers: OwnProviders = {}): readonly string[] {
  const own = new Set(Object.values(providers).flatMap((provider) => provider.key_env ?? []));
  return Object.keys(env).filter((name) => keyVariable.test(name) || own.has(name));
}

/** Every secret this program has been given: keys in variables, headers that sign requests, passwords in addresses. Longest first, so that one that
 *  begins with another is replaced whole. */
export function knownSecrets(env: Environment, providers: OwnProviders = {}): readonly Secret[] {
  const keys = secretVariables(env, providers).map((name) => ({ name, value: (env[name] ?? '').trim() }));
  const headers = Object.values(providers).flatMap((provider) => Object.entries(provider.headers ?? {})).filter(([name]) => keyHeader.test(name))
    .map(([name, value]) => ({ name, value: value.replace(/^(?:bearer|basic|token)\s+/i, '').trim() }));
  const addresses = [...Object.entries(env).filter(([name]) => /_BASE_URL$|^(?:https?|all)_proxy$/i.test(name)), ...Object.entries(providers).map(([name, { base_url: url }]) => [name, url] as const)];
  const passwords = addresses.flatMap(([name, url]) => passwordsOf(url).map((value) => ({ name, value })));
  return [...keys, ...headers, ...passwords].filter(({ value }) => value.length >= minLength).toSorted((a, b) => b.value.length - a.value.length);
}

/** The password of an address, as it is written and as it is meant. */
function passwordsOf(url: string | undefined): readonly string[] {
  const written = /^[a-z][a-z\d+.-]*:\/\/[^/?#@]*:([^/?#]*)@/i.exec(url ?? '')?.[1];
  if (written === undefined) return [];
  try {
    return [...new Set([written, decodeURIComponent(written)])];
  } catch {
    return [written];
  }
}

/** Each secret as it is written and as it stands inside JSON, longest first. */
function hiddenTexts(secrets: readonly Secret[]): readonly HiddenText[] {
  return secrets.flatMap(({ name, value }) => [...new Set([value, JSON.stringify(value).slice(1, -1)])].map((form) => ({ form, mark: `«redacted:${name}»` })))
    .toSorted((a, b) => b.form.length - a.form.length);
}

/** Replaces each known secret by `«redacted:NAME»`, also where it stands inside JSON. */
export function createMask(secrets: readonly Secret[]): (text: string) => string {
  const hidden = hiddenTexts(secrets);
  return (text) => hidden.reduce((masked, { form, mark }) => (masked.includes(form) ? masked.replaceAll(form, mark) : masked), text);
}

/** The same for texts that come in pieces, each with a mask of its own. Undefined where there is nothing to hide. */
export function createStreamMasks(secrets: readonly Secret[]): (() => StreamMask) | undefined {
  const hidden = hiddenTexts(secrets);
  return hidden.length === 0 ? undefined : () => createStreamMask(hidden);
}

/** The same for everything an event says: what is recorded is what a model is sent. Undefined where there is nothing to hide. */
export function createDraftMask(secrets: readonly Secret[]): ((draft: EventDraft) => EventDraft) | undefined {
  if (secrets.length === 0) return undefined;
  const mask = createMask(secrets);
  const deep = (value: unknown): unknown => {
    if (typeof value === 'string') return mask(value);
    if (Array.isArray(value)) return value.map(deep);
    return isRecord(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [mask(key), deep(item)])) : value;
  };
  return (draft) => ({ ...draft, content: deep(draft.content), data: deep(draft.data) }) as EventDraft;
}

import type { JsonObject } from '../../core/json.js';

/** A tool call that a plain request asks for. */
export interface OfflineCall { readonly name: string; readonly args: JsonObject }

type Groups = Readonly<Record<string, string | undefined>>;
interface Rule { readonly form: RegExp; readonly calls: (groups: Groups) => readonly OfflineCall[] }

const polite = /^(?:(?:please|pls|now|ok|okay|then|and|can you|could you|would you|will you|i want you to|i'd like you to|let's|go ahead and)[,\s]+)+/i;

/** Tried in order; the first whose form fits the whole request decides. */
const rules: readonly Rule[] = [
  { form: /^(?:replace|change|swap)\s+(?<from>.+?)\s+(?:with|by|to|for|into)\s+(?<to>.+?)\s+in\s+(?:the\s+)?(?:file\s+)?(?<path>\S+)$/is,
    calls: (g) => [{ name: 'file_edit', args: { path: word(g.path), old_string: plain(g.from), new_string: plain(g.to) } }] },
  { form: /^(?:write|put|save)\s+(?<content>.+?)\s+(?:in)?to\s+(?:the\s+)?(?:a\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?<path>\S+)$/is,
    calls: (g) => [{ name: 'file_write', args: { path: word(g.path), content: withLineEnd(plain(g.content)) } }] },
  { form: /^(?:create|make|write)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?(?<path>\S+)\s+(?:with|containing|saying)\s+(?:the\s+)?(?:text\s+|content\s+|contents\s+)?(?<content>.+)$/is,
    calls: (g) => [{ name: 'file_write', args: { path: word(g.path), content: withLineEnd(plain(g.content)) } }] },
  { form: /^(?:run|execute|exec|bash|sh|shell)(?:\s+the\s+command)?:?\s+(?<command>.+)$/is, calls: (g) => [bash(g.command)] },
  { form: /^[$!]\s*(?<command>.+)$/s, calls: (g) => [bash(g.command)] },
  { form: /^(?:grep|rg)(?<flags>(?:\s+-[a-zA-Z]+)*)\s+(?<pattern>"[^"]+"|'[^']+'|`[^`]+`|.+?)(?:\s+(?:in|under|inside|within)\s+(?:the\s+)?(?<path>\S+?)(?:\s+(?:folder|directory|file))?)?$/i,
    calls: (g) => [grep(g, /i/.test(g.flags ?? ''))] },
  { form: /^(?:search|look|scan)\s+(?:for\s+)?(?:the\s+(?:word|text|string)\s+)?(?<pattern>"[^"]+"|'[^']+'|`[^`]+`|.+?)(?:\s+(?:in|under|inside|within)\s+(?:the\s+)?(?<path>\S+?)(?:\s+(?:folder|directory|file))?)?$/i,
    calls: (g) => [grep(g, false)] },
  { form: /^where\s+(?:is|are)\s+(?<pattern>"[^"]+"|'[^']+'|`[^`]+`|\S+)\s*(?:used|defined|mentioned)?(?:\s+in\s+(?<path>\S+))?\??$/i, calls: (g) => [grep(g, false)] },
  { form: /^find\s+(?<pattern>"[^"]+"|'[^']+'|`[^`]+`|.+?)\s+in\s+(?:the\s+)?(?<path>\S+?)(?:\s+(?:folder|directory|file))?$/i,
    calls: (g) => (isGlob(plain(g.pattern)) ? [glob(g)] : [grep(g, false)]) },
  { form: /^(?:list|find|ls|glob|show|what are)\s+(?:me\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+)?(?:files?\s+)?(?:matching\s+|named\s+|called\s+)?(?<pattern>\S*[*?{[]\S*)(?:\s+files?)?(?:\s+(?:in|under)\s+(?:the\s+)?(?<path>\S+))?$/i, calls: (g) => [glob(g)] },
  { form: /^(?:list|find|show|count)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?\.?(?!the\b|my\b|all\b|of\b|these\b|your\b)(?<extension>[a-z0-9]{1,10})\s+files(?:\s+(?:in|under)\s+(?:the\s+)?(?<path>\S+?))?$/i,
    calls: (g) => [glob({ pattern: `**/*.${extensionOf(g.extension)}`, path: g.path })] },
  { form: /^(?:list|ls)(?:\s+me)?(?:\s+(?:all|the|my|files|folder|directory|everything|here|in|of))*(?:\s+(?<path>\S*[/.]\S*))?(?:\s+(?:folder|directory))?\??$/i, calls: listing },
  { form: /^(?:show|what|which)(?:\s+me)?(?:\s+(?:all|the|my|files|folder|directory|everything|is|are|here|there|in))+(?:\s+(?<path>\S+\/))?\??$/i, calls: listing },
  { form: /^(?:read|show|open|cat|print|view|display|head)\s+(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:files?\s+)?(?<paths>\S+(?:(?:\s*,\s*(?:and\s+)?|\s+and\s+)\S+)*)(?:\s+file)?$/i,
    calls: (g) => (g.paths ?? '').split(/\s*,\s*(?:and\s+)?|\s+and\s+/i).map((path) => ({ name: 'file_read', args: { path: word(path) } })) },
  { form: /^what(?:'s| is)\s+in\s+(?:the\s+)?(?:file\s+)?(?<path>\S+?)\??$/i, calls: (g) => [{ name: 'file_read', args: { path: word(g.path) } }] },
];

function listing(groups: Groups): readonly OfflineCall[] {
  return [{ name: 'glob', args: { pattern: '*', ...pathArg(groups.path) } }];
}

/** What a user's text asks for: one step per request joined by `then`, each with the calls of one response. Null where it is not understood.
 *  Deterministic: the same text gives the same calls. */
export function readRequest(text: string): readonly (readonly OfflineCall[])[] | null {
  const whole = readStep(text);
  const parts = text.split(/\s*(?:,|;|\.)?\s+(?:and\s+)?then\s+|\s*\n+\s*/i).filter((part) => part.trim() !== '');
  if (parts.length < 2 || /^\s*(?:write|create|put|save|make|replace|run|execute|\$|!)/i.test(text) && /\n/.test(text)) return whole === null ? null : [whole];
  const steps = parts.map(readStep);
  const known = steps.filter((step) => step !== null);
  return known.length === steps.length ? known : whole === null ? null : [whole];
}

function readStep(text: string): readonly OfflineCall[] | null {
  const request = text.trim().replace(polite, '').replace(/(?<=\S)\s*(?:[!]|,?\s+please[.!]?|\.(?=$))$/i, '').trim();
  for (const rule of rules) {
    const match = rule.form.exec(request);
    if (match) return rule.calls(match.groups ?? {});
  }
  return null;
}

function bash(command: string | undefined): OfflineCall {
  const text = (command ?? '').trim();
  return { name: 'bash', args: { command: /^`[^`]+`$/.test(text) ? text.slice(1, -1) : text } };
}

function grep(groups: Groups, ignoreCase: boolean): OfflineCall {
  return { name: 'grep', args: { pattern: plain(groups.pattern), ...pathArg(groups.path), ...(ignoreCase ? { ignore_case: true } : {}) } };
}

function glob(groups: Groups): OfflineCall {
  return { name: 'glob', args: { pattern: plain(groups.pattern), ...pathArg(groups.path) } };
}

function isGlob(text: string): boolean {
  return /[*?{[]/.test(text) && !/\s/.test(text);
}

const languages: Readonly<Record<string, string>> = { typescript: '{ts,tsx}', javascript: '{js,jsx,mjs,cjs}', python: 'py', markdown: 'md', rust: 'rs', text: 'txt', ruby: 'rb' };

function extensionOf(text: string | undefined): string {
  const extension = (text ?? '').toLowerCase();
  return languages[extension] ?? extension;
}

function pathArg(path: string | undefined): { readonly path?: string } {
  const text = word(path);
  return text === '' || text === '.' || /^(?:here|this|it|all|everything|project|repo|repository)$/i.test(text) ? {} : { path: text };
}

/** A path as people write it: quotes and closing punctuation off. */
function word(text: string | undefined): string {
  return plain(text).replace(/(?<=[\w)])[?,;:!]+$/, '');
}

/** A text without the quotes around it. */
function plain(text: string | undefined): string {
  const trimmed = (text ?? '').trim();
  return /^(["'`])[\s\S]*\1$/.test(trimmed) && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

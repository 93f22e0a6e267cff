import { parseJson } from '../../kernel/core/json.js';
import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { MatchedFile, ToolOutcome } from '../../kernel/core/tool.js';
import { failed, succeeded } from '../../kernel/tools/define-tool.js';
import { visible } from './foreign-tools.js';

/** Makes an outcome of the answer of a server to `tools/call`. Images, sounds and other contents are named and kept,
 * and the model gets those that it can see. */
export function outcomeOf(server: string, result: unknown): ToolOutcome {
  const { content, structuredContent, isError } = isRecord(result) ? result : {};
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map((block) => blockText(server, block));
  const repeats = blocks.some(
    (block) => isRecord(block) && block['type'] === 'text' && isJsonOf(block['text'], structuredContent),
  );
  const structure =
    structuredContent === undefined || repeats ? [] : [visible(JSON.stringify(structuredContent) ?? '')];
  const output = [...texts, ...structure].join('\n');
  const attachments = blocks.flatMap((block, index) => contentOf(server, block, index + 1));
  if (isError === true)
    return failed('execution_failed', firstLine(output, 300) || `The server ${server} reports that the call failed.`, {
      output,
      untrusted: true,
    });
  return succeeded(firstLine(output, 120), { output, untrusted: true }, attachments.length > 0 ? { attachments } : {});
}

/** The bytes of a block, under a name of ours. */
function contentOf(server: string, block: unknown, number: number): readonly MatchedFile[] {
  if (!isRecord(block)) return [];
  const resource = isRecord(block['resource']) ? block['resource'] : {};
  const [kind, base64, mimeType] =
    block['type'] === 'image' || block['type'] === 'audio'
      ? [block['type'], block['data'], block['mimeType']]
      : ['blob', block['type'] === 'resource' ? resource['blob'] : undefined, resource['mimeType']];
  const text = stringOrEmpty(base64);
  if (text === '') return [];
  const mediaType = typeof mimeType === 'string' ? mimeType : '';
  return [{ name: `${server} ${kind} ${number}`, bytes: Buffer.from(text, 'base64'), mediaType }];
}

function isJsonOf(text: unknown, value: unknown): boolean {
  if (typeof text !== 'string' || value === undefined) return false;
  try {
    return isDeepStrictEqual(parseJson(text), value);
  } catch {
    return false;
  }
}

function blockText(server: string, block: unknown): string {
  if (!isRecord(block)) return '[content that is not an object]';
  switch (block['type']) {
    case 'text':
      return visible(stringOrEmpty(block['text']));
    case 'image':
    case 'audio':
      return describeContent(block['type'], block['mimeType'], block['data']);
    case 'resource_link':
      return `[resource ${server} ${word(block['uri'])} ${word(block['mimeType'])}]`;
    case 'resource': {
      const resource = isRecord(block['resource']) ? block['resource'] : {};
      const head = `[resource ${server} ${word(resource['uri'])} ${word(resource['mimeType'])}]`;
      return typeof resource['text'] === 'string'
        ? `${head}\n${visible(resource['text'])}`
        : `${head} ${describeContent('blob', resource['mimeType'], resource['blob'])}`;
    }
    default:
      return `[content of the type ${word(block['type'])}]`;
  }
}

function describeContent(kind: string, mimeType: unknown, base64: unknown): string {
  const bytes = Math.floor((stringOrEmpty(base64).replace(/=+$/, '').length * 3) / 4);
  return `[${kind} ${word(mimeType)}, ${bytes} bytes]`;
}

function stringOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** One line of a foreign text. */
function word(value: unknown): string {
  return typeof value === 'string' ? firstLine(visible(value), 2048) : '-';
}

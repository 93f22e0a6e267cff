import { fileURLToPath } from 'node:url';
import { type ContentBlock, RequestError } from '@agentclientprotocol/sdk';
import { largestOf } from '../../kernel/core/lists.js';

/** The bytes of an image or a document, in base64. */
export interface PromptFile {
  readonly name: string;
  readonly data: string;
}

/** Returns the text of a prompt. `attach` stores the bytes of a block and returns the text for them. */
export async function promptText(
  blocks: readonly ContentBlock[],
  attach: (file: PromptFile) => Promise<string>,
): Promise<string> {
  const parts: string[] = [];
  for (const block of blocks) {
    const file = bytesIn(block);
    parts.push(file ? await attach(file) : (blockText(block) ?? ''));
  }
  return parts.filter((text) => text !== '').join('\n');
}

/** Returns the text of one block of a prompt. Content that the editor has inserted from a file or a page is put into a
 * fence that the content cannot close. Null: the bytes of the block are to be attached. */
function blockText(block: ContentBlock): string | null {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `@${pathOf(block.uri)}`;
    case 'resource': {
      const { resource } = block;
      if (!('text' in resource)) return null;
      const longest = largestOf(
        [...resource.text.matchAll(/`+/g)].map(([ticks]) => ticks.length),
        2,
      );
      const fence = '`'.repeat(longest + 1);
      return `${pathOf(resource.uri)}:\n${fence}\n${resource.text}\n${fence}`;
    }
    case 'image':
      return null;
    default:
      throw unreadable(`a block of type ${block.type}`);
  }
}

/** Returns the bytes of an image or a document; null for a block of text. */
function bytesIn(block: ContentBlock): PromptFile | null {
  if (block.type === 'image') return { name: `picture.${block.mimeType.split('/').at(-1) ?? ''}`, data: block.data };
  if (block.type !== 'resource' || !('blob' in block.resource)) return null;
  return { name: pathOf(block.resource.uri).split('/').at(-1) ?? 'file', data: block.resource.blob };
}

export function unreadable(what: string): RequestError {
  return RequestError.invalidParams({}, `${what} is not supported; send text, links, embedded text or images`);
}

function pathOf(uri: string): string {
  try {
    return uri.startsWith('file:') ? fileURLToPath(uri) : uri;
  } catch {
    return uri;
  }
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const program = `
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const listed = () => JSON.parse(readFileSync(process.argv[2], 'utf8'));
let asked = null;
const send = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }));
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: { listChanged: true }, ...(process.argv[3] === 'texts' ? { resources: {}, prompts: {} } : {}) }, serverInfo: { name: 'tried', version: '1' } }),
  'tools/list': () => { const tools = listed(); if (tools === 'broken') throw new Error('broken'); return { tools }; },
  'resources/list': () => ({ resources: [{ uri: 'note://a', name: 'A', description: 'The first' }, { uri: 'has space', name: 'B' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, mimeType: 'text/plain', text: 'text of ' + uri + '\\n\`\`\`\\nend' }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet', description: 'Says hello', arguments: [{ name: 'who', required: true }, { name: 'how' }] }] }),
  'prompts/get': ({ name, arguments: args }) => ({ messages: [{ role: 'user', content: { type: 'text', text: name + ' ' + JSON.stringify(args) } }] }),
  'tools/call': ({ name, arguments: args }, id) => {
    if (name === 'die') { console.error('the disk is full'); process.exit(3); }
    if (name === 'wait') return null;
    if (name === 'ask' || name === 'roots') {
      asked = { id };
      const params = { message: 'Who?', requestedSchema: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] } };
      send({ id: 'asked', method: name === 'ask' ? 'elicitation/create' : 'roots/list', params: name === 'ask' ? params : {} });
      return null;
    }
    if (name === 'fail') return { isError: true, content: [{ type: 'text', text: 'no such issue' }] };
    if (name === 'complain') console.error('no key sk-proj-' + 'a'.repeat(48) + ' is valid');
    if (name === 'rename') send({ method: 'notifications/tools/list_changed' });
    return { content: [{ type: 'text', text: JSON.stringify({ name, args, key: process.env.TRIED_KEY ?? null, own: process.env.OPENAI_API_KEY ?? null }) }] };
  },
};
console.log('a banner, and then messages');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (id === 'asked') return send({ id: asked.id, result: { content: [{ type: 'text', text: JSON.stringify(result ?? error) }] } });
  if (id === undefined) return;
  const answer = answers[method];
  if (!answer) return send({ id, error: { code: -32601, message: 'unknown method' } });
  try {
    const given = answer(params, id);
    if (given) send({ id, result: given });
  } catch (error) {
    send({ id, error: { code: -32603, message: error.message } });
  }
});
`;

/** A tool as a server lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: object;
  readonly annotations?: object;
}

/** Writes a server over standard input to a folder. `list` says what it offers from then on. */
export function triedServer(
  folder: string,
  offers: 'tools' | 'texts' = 'tools',
): {
  readonly entry: { readonly command: string; readonly args: readonly string[] };
  readonly list: (tools: readonly ListedTool[]) => void;
  /** It fails to list its tools from then on. */
  readonly breakList: () => void;
} {
  const script = join(folder, 'tried-server.mjs');
  const tools = join(folder, 'tools.json');
  writeFileSync(script, program);
  return {
    entry: { command: process.execPath, args: [script, tools, offers] },
    breakList: () => {
      writeFileSync(tools, '"broken"');
    },
    list: (listed) => {
      writeFileSync(tools, JSON.stringify(listed.map((tool) => ({ inputSchema: { type: 'object' }, ...tool }))));
    },
  };
}

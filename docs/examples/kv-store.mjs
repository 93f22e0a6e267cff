// node docs/examples/kv-store.mjs [provider/model]      without a model, a scripted conversation
import { createAgent, defineTool, ToolError } from 'agent-shell';

const store = new Map();
const text = { type: 'string', maxLength: 8192 };

const kvSet = defineTool({
  name: 'kv_set',
  description: 'Set a small key/value',
  parameters: { type: 'object', properties: { k: text, v: text }, required: ['k', 'v'], additionalProperties: false },
  returns: 'json',
  effect: 'read', // it changes nothing outside of this program
  execute({ k, v }) {
    if (store.size >= 100 && !store.has(k)) throw new ToolError('limit_reached', 'There are 100 keys; use one of them.');
    store.set(k, v);
    return { ok: true };
  },
});

const kvGet = defineTool({
  name: 'kv_get',
  description: 'Get a small value by key',
  parameters: { type: 'object', properties: { k: text }, required: ['k'], additionalProperties: false },
  returns: 'string',
  effect: 'read',
  execute({ k }) {
    if (!store.has(k)) throw new ToolError('not_found', `There is no key ${k}; there are ${[...store.keys()].join(', ')}.`);
    return store.get(k);
  },
});

const agent = await createAgent({
  model: process.argv[2] ?? `offline/${import.meta.dirname}/kv-store.json`,
  tools: [kvSet, kvGet],
});
const result = await agent
  .createSession()
  .prompt('Remember my name is Erik; then tell me what I said my name is.', { max_tool_calls: 2 });
console.log(result.text);
console.log(Object.fromEntries(store));
await agent.close();

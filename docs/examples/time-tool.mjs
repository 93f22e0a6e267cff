// node docs/examples/time-tool.mjs [provider/model]      without a model, a scripted conversation
import { createAgent, defineTool } from 'agent-shell';

const getTime = defineTool({
  name: 'get_time',
  description: 'Returns the current local time.',
  parameters: {},
  returns: 'string',
  effect: 'read',
  limits: { timeout_ms: 800, rate_per_min: 20 },
  execute: () => new Date().toISOString(),
});

const agent = await createAgent({ model: process.argv[2] ?? `offline/${import.meta.dirname}/time-tool.json`, tools: [getTime] });
const session = agent.createSession();
for await (const event of session.run("What's the time? Use tools if needed.", { max_tool_calls: 3 })) {
  if (event.type === 'tool_call') console.log(`↪ ${event.content}`);
  if (event.type === 'tool_result') console.log(`✔ ${event.content}`);
  if (event.type === 'text_delta') process.stdout.write(event.text);
}
console.log();
await agent.close();

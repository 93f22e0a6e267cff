import { expect, onTestFinished, test } from 'vitest';
import { startBedrock } from './bedrock-server.js';
import { bedrockClient, hasShapes, shapeErrors } from './smithy-shapes.js';

interface Client {
  send(command: unknown): Promise<{ readonly stream: AsyncIterable<object> }>;
}
type Made = new (options: object) => Client;

test.skipIf(!hasShapes)(
  "AWS's own client reads what the double of Bedrock answers, and every event has its shape",
  async () => {
    const client = await bedrockClient();
    const credentials = { accessKeyId: 'AKIDEXAMPLE0001', secretAccessKey: 'secret-access-key-example-0001' };
    const server = await startBedrock({
      keys: () => [{ id: credentials.accessKeyId, secret: credentials.secretAccessKey }],
    });
    onTestFinished(() => server.close());
    const look = { name: 'file_read', arguments: '{"path":"a.txt"}' };
    server.script({ reasoning: 'I should look.', redacted: 'c2VjcmV0', text: 'I look.', calls: [look, look] });
    const [Runtime, Command, Http] = ['BedrockRuntimeClient', 'ConverseStreamCommand', 'NodeHttpHandler'].map(
      (name) => client?.[name] as Made | undefined,
    );
    if (!Runtime || !Command || !Http) throw new Error('the client has other names');
    const runtime = new Runtime({
      ...{ region: 'eu-central-1', endpoint: server.url, credentials },
      requestHandler: new Http({}),
    });
    const { stream } = await runtime.send(
      new Command({ modelId: 'amazon.nova-pro-v1:0', messages: [{ role: 'user', content: [{ text: 'hi' }] }] }),
    );
    const events: object[] = [];
    for await (const event of stream) events.push(event);
    expect(server.refusals).toEqual([]);
    expect(events.flatMap((event) => shapeErrors(event, client?.['ConverseStreamOutput$'] as never))).toEqual([]);
    expect(events.map((event) => Object.keys(event)[0])).toEqual(expect.arrayContaining(['messageStop', 'metadata']));
    const text = events.map((event) => JSON.stringify(event)).join('\n');
    for (const part of ['d look.', 'I look.', 'tooluse_1_1', 'signature', '"stopReason":"tool_use"'])
      expect(text).toContain(part);
  },
);

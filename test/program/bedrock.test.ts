import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type AwsKeys, type BedrockServer, startBedrock } from '../kernel/providers/bedrock-server.js';
import { modelServer } from '../e2e/model-server.js';
import { onePixel, writtenBelow } from './cloud-places.js';
import { agent, lines, place } from './inside.js';

const keys: AwsKeys = { id: 'AKIDEXAMPLE0001', secret: 'secret-access-key-example-0001' };
const passing: AwsKeys = {
  id: 'ASIAEXAMPLE0002',
  secret: 'secret-access-key-example-0002',
  session: 'session-token-example-0002',
};

async function bedrock(accepts: Parameters<typeof startBedrock>[0] = { keys: () => [keys] }): Promise<BedrockServer> {
  const server = await startBedrock(accepts);
  onTestFinished(() => server.close());
  return server;
}

const noMachine = { AWS_EC2_METADATA_DISABLED: 'true' };
const envOf = ({ url }: BedrockServer): Record<string, string> => ({
  ...noMachine,
  AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url,
  AWS_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: keys.id,
  AWS_SECRET_ACCESS_KEY: keys.secret,
});

const look = { name: 'file_read', arguments: '{"path":"a.txt"}' };
const model = 'bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0';

test('tools, reasoning and an image go through Converse, signed, and come back right', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  onePixel(at);
  const server = await bedrock();
  server.script(
    { reasoning: 'I should look.', redacted: 'c2VjcmV0', text: 'I look.', calls: [look, look] },
    { text: 'It says hello 😀.' },
  );
  const args = [
    '-p',
    '-m',
    model,
    '--effort',
    'low',
    '--output-format',
    'stream-json',
    '--image',
    'one.png',
    'read a.txt',
  ];
  const done = await agent(at, args, { env: envOf(server) });
  expect([server.refusals, done.code]).toEqual([[], 0]);
  const seen = lines(done.stdout);
  expect(seen.at(-1)).toMatchObject({ type: 'result', text: 'It says hello 😀.', tool_calls: 2 });
  expect(seen.find(({ type }) => type === 'usage')).toMatchObject({
    input_tokens: 10,
    cache_read_tokens: 20,
    output_tokens: 5,
  });
  expect(server.requests[0]?.url).toBe('/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream');
  const [first, second] = server.bodies;
  expect(first).toMatchObject({ additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 4096 } } });
  expect(JSON.stringify(first?.['system'])).toContain('"cachePoint"');
  expect(JSON.stringify(first)).toContain('"image":{"format":"png"');
  expect((second?.['messages'] as readonly unknown[] | undefined)?.slice(1)).toEqual([
    {
      role: 'assistant',
      content: [
        { reasoningContent: { reasoningText: { text: 'I should look.', signature: 'c2lnbmVk' } } },
        { reasoningContent: { redactedContent: 'c2VjcmV0' } },
        { text: 'I look.' },
        { toolUse: { toolUseId: 'tooluse_1_0', name: 'file_read', input: { path: 'a.txt' } } },
        { toolUse: { toolUseId: 'tooluse_1_1', name: 'file_read', input: { path: 'a.txt' } } },
      ],
    },
    {
      role: 'user',
      content: [
        {
          toolResult: {
            toolUseId: 'tooluse_1_0',
            content: [{ text: expect.stringContaining('hello') }],
            status: 'success',
          },
        },
        {
          toolResult: {
            toolUseId: 'tooluse_1_1',
            content: [{ text: expect.stringContaining('hello') }],
            status: 'success',
          },
        },
        { cachePoint: { type: 'default' } },
      ],
    },
  ]);
  expect([done.stdout, done.stderr, writtenBelow(at)].join('\n')).not.toContain(keys.secret);
});

test('a session moves between Bedrock and another provider, and each gets a conversation that it accepts', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const [server, other] = [await bedrock(), await modelServer([{ text: 'From elsewhere.' }])];
  server.script({ reasoning: 'Hm.', calls: [look] }, { text: 'Read.' }, { text: 'Back.' });
  const env = { ...envOf(server), OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${other.url}/v1` };
  await agent(at, ['-p', '-m', model, 'read a.txt'], { env });
  const away = await agent(at, ['-c', '-p', '-m', 'openai/m', 'and now?'], { env });
  const back = await agent(at, ['-c', '-p', '-m', model, 'and again?'], { env });
  expect([away.stdout, back.stdout, server.refusals]).toEqual(['From elsewhere.\n', 'Back.\n', []]);
  expect(JSON.stringify(other.requests[0]?.body)).not.toContain('c2lnbmVk');
  expect(JSON.stringify(server.bodies.at(-1))).toContain('"signature":"c2lnbmVk"');
});

test('a key of Bedrock is sent as it is', async () => {
  const server = await bedrock({ token: 'bedrock-api-key-0123456789' });
  server.script({ text: 'Hello.' });
  const env = { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url, AWS_BEARER_TOKEN_BEDROCK: 'bedrock-api-key-0123456789' };
  const done = await agent(place(), ['-p', '--provider', 'bedrock', 'hi'], { env });
  expect([done.stdout, server.requests[0]?.url]).toEqual([
    'Hello.\n',
    '/model/global.anthropic.claude-sonnet-5/converse-stream',
  ]);
});

test('the credentials of a profile are used, and its models are listed', async () => {
  const at = place();
  const server = await bedrock({ keys: () => [passing] });
  server.script({ text: 'Hello.' });
  mkdirSync(join(at.home, '.aws'));
  const file = `[work]\naws_access_key_id=${passing.id}\naws_secret_access_key=${passing.secret}\naws_session_token=${passing.session ?? ''}\n`;
  writeFileSync(join(at.home, '.aws', 'credentials'), file);
  const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _secret, ...others } = envOf(server);
  const env = { ...others, AWS_PROFILE: 'work' };
  const done = await agent(at, ['-p', '-m', model, 'hi'], { env });
  expect([done.stderr, done.stdout]).toEqual(['', 'Hello.\n']);
  const listed = await agent(at, ['models', '--provider', 'bedrock', '--json'], { env });
  expect(listed.stderr).toBe('');
  expect(JSON.parse(listed.stdout)).toMatchObject([
    { provider: 'bedrock', model: 'us.amazon.nova-pro-v1:0', source: 'server' },
  ]);
  expect(writtenBelow(at)).not.toContain(passing.session);
});

/** The region that a request was signed for. */
const signedFor = ({ requests }: BedrockServer): string | undefined =>
  /Credential=[^/]+\/\d+\/([^/]+)\//.exec(requests.at(-1)?.headers.authorization ?? '')?.[1];

const ownKeys = `aws_access_key_id=${keys.id}\naws_secret_access_key = ${keys.secret}\n`;
const configText = `
# My clouds
[default]
region = eu-west-1
${ownKeys}
[profile work]
; the region follows
region = ap-south-1 # of the team
${ownKeys}services = local

[services local]
sts =
  region = not-this-one
[profile "quoted-name"]
region=us-west-2
${ownKeys}
[profile none]
${ownKeys}`;

test.each([
  ['the default profile', {}, 'eu-west-1'],
  ['AWS_PROFILE', { AWS_PROFILE: 'work' }, 'ap-south-1'],
  ['a quoted name', { AWS_PROFILE: 'quoted-name' }, 'us-west-2'],
  ['AWS_DEFAULT_REGION before the file', { AWS_DEFAULT_REGION: 'sa-east-1', AWS_PROFILE: 'work' }, 'sa-east-1'],
  ['AWS_REGION before both', { AWS_REGION: 'ca-west-1', AWS_DEFAULT_REGION: 'sa-east-1' }, 'ca-west-1'],
])('the region is found: %s', async (_name, more, region) => {
  const at = place();
  const server = await bedrock();
  server.script({ text: 'Hello.' });
  mkdirSync(join(at.home, '.aws'));
  writeFileSync(join(at.home, '.aws', 'config'), configText);
  const env = { ...noMachine, AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url, ...more };
  const done = await agent(at, ['-p', '-m', model, 'hi'], { env });
  expect([done.stderr, done.stdout, signedFor(server)]).toEqual(['', 'Hello.\n', region]);
});

test('AWS_CONFIG_FILE names the file; a profile without a region, or that does not exist, is named with what to do', async () => {
  const at = place();
  const server = await bedrock();
  server.script({ text: 'Hello.' });
  const file = join(at.home, 'clouds.ini');
  writeFileSync(file, configText);
  const env = { ...noMachine, AWS_CONFIG_FILE: file, AWS_PROFILE: 'work' };
  const found = await agent(at, ['-p', '-m', model, 'hi'], {
    env: { ...env, AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url },
  });
  expect([found.stdout, signedFor(server)]).toEqual(['Hello.\n', 'ap-south-1']);
  for (const profile of ['none', 'missing']) {
    const done = await agent(at, ['-p', '-m', model, 'hi'], { env: { ...env, AWS_PROFILE: profile } });
    expect([done.code, done.stderr]).toEqual([
      2,
      expect.stringMatching(/no region for Amazon Bedrock.*AWS_REGION.*`aws configure set region/s),
    ]);
  }
});

test('a profile with a role takes it by its source profile; what cannot be had is said with the profile', async () => {
  const at = place();
  const roles: string[] = [];
  const sts = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      roles.push(new URLSearchParams(Buffer.concat(chunks).toString()).get('RoleArn') ?? '');
      const { id, secret, session = '' } = passing;
      const expires = new Date(Date.now() + 3_600_000).toISOString();
      response.setHeader('content-type', 'text/xml');
      response.end(
        `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>` +
          `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${session}` +
          `</SessionToken><Expiration>${expires}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
      );
    })();
  });
  sts.listen(0, '127.0.0.1');
  await once(sts, 'listening');
  onTestFinished(() => {
    sts.closeAllConnections();
    sts.close();
  });
  const server = await bedrock({ keys: () => [passing] });
  server.script({ text: 'Hello.' });
  mkdirSync(join(at.home, '.aws'));
  const role = 'arn:aws:iam::123456789012:role/models';
  writeFileSync(
    join(at.home, '.aws', 'config'),
    `[default]\nregion=eu-west-1\n${ownKeys}[profile role]\nregion=eu-west-1\nrole_arn=${role}\nsource_profile=default\n` +
      `[profile mfa]\nregion=eu-west-1\nrole_arn=${role}\nsource_profile=default\nmfa_serial=arn:aws:iam::1:mfa/me\n` +
      `[profile sso]\nregion=eu-west-1\nsso_session=corp\nsso_account_id=1\nsso_role_name=r\n` +
      `[sso-session corp]\nsso_region=eu-west-1\nsso_start_url=https://corp.example.com/start\n`,
  );
  const env = {
    ...noMachine,
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url,
    AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${(sts.address() as AddressInfo).port}`,
  };
  const done = await agent(at, ['-p', '-m', model, 'hi'], { env: { ...env, AWS_PROFILE: 'role' } });
  expect([done.stderr, done.stdout, roles]).toEqual(['', 'Hello.\n', [role]]);
  for (const [profile, says] of [
    ['mfa', /mfa.*multi-factor/is],
    ['sso', /sso.*aws sso login/is],
  ] as const) {
    const failed = await agent(at, ['-p', '-m', model, 'hi'], { env: { ...env, AWS_PROFILE: profile } });
    expect([failed.code, failed.stderr]).toEqual([4, expect.stringMatching(says)]);
  }
});

test('credentials that have expired are read again', async () => {
  let asked = 0;
  const container = createServer((_request, response) => {
    const { id, secret, session } = ++asked === 1 ? { id: 'ASIAOLD', secret: 'old', session: 'old-session' } : passing;
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    response.end(JSON.stringify({ AccessKeyId: id, SecretAccessKey: secret, Token: session, Expiration: expires }));
  });
  container.listen(0, '127.0.0.1');
  await once(container, 'listening');
  onTestFinished(() => {
    container.closeAllConnections();
    container.close();
  });
  const server = await bedrock({ keys: () => [passing] });
  server.script({ text: 'Hello.' });
  const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _secret, ...others } = envOf(server);
  const uri = `http://127.0.0.1:${(container.address() as AddressInfo).port}/credentials`;
  const done = await agent(place(), ['-p', '-m', model, 'hi'], {
    env: { ...others, AWS_CONTAINER_CREDENTIALS_FULL_URI: uri },
  });
  expect([done.stderr, done.stdout, asked, server.requests.length]).toEqual(['', 'Hello.\n', 2, 2]);
});

test.each([
  [
    'an exception of the stream',
    { text: 'Hal', exception: { type: 'throttlingException', message: 'Too many requests' } },
  ],
  ['a refusal', { refused: { status: 429, type: 'ThrottlingException', message: 'Too many requests, please wait.' } }],
  ['a frame with a wrong checksum', { text: 'Hello there', isDamaged: true }],
  ['a stream that is cut off', { text: 'Hello there', isCut: true }],
])('%s is retried, and nothing of it is kept', async (_name, turn) => {
  const server = await bedrock();
  server.script(turn, { text: 'Hello.' });
  const done = await agent(place(), ['-p', '-m', model, '--set', 'http.retry_base_ms=1', 'hi'], { env: envOf(server) });
  expect([done.code, done.stdout, server.bodies.length]).toEqual([0, 'Hello.\n', 2]);
});

const denied = {
  status: 403,
  type: 'AccessDeniedException',
  message: "You don't have access to the model with the specified model ID.",
};
const noDemand = {
  status: 400,
  type: 'ValidationException',
  message: 'Invocation of model ID anthropic.x with on-demand throughput isn’t supported.',
};

test.each([
  ['no region', { AWS_REGION: '' }, undefined, 2, 'set AWS_REGION'],
  ['no credentials', { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' }, undefined, 4, 'aws sso login'],
  [
    'wrong credentials',
    { AWS_SECRET_ACCESS_KEY: 'another-secret-0123456789' },
    undefined,
    4,
    'aws sts get-caller-identity',
  ],
  ['no access to a model', {}, denied, 4, 'request access to the model'],
  ['a model without an inference profile', {}, noDemand, 1, 'use an inference profile'],
])('what is wrong is said, and what to do: %s', async (_name, more, refused, code, says) => {
  const server = await bedrock();
  if (refused !== undefined) server.script({ refused });
  const { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url, ...env } = envOf(server);
  const address = 'AWS_REGION' in more ? {} : { AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url ?? '' };
  const done = await agent(place(), ['-p', '-m', model, 'hi'], { env: { ...env, ...address, ...more } });
  expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(says)]);
});

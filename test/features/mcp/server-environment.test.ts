import { expect, test } from 'vitest';
import { passedOn } from '../../../src/features/mcp/server-link.js';

const passed = [
  ['HOME', 'PATH', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR', 'XDG_RUNTIME_DIR', 'DISPLAY', 'SSH_AUTH_SOCK'],
  ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'ALL_PROXY', 'NO_PROXY', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'],
  ['npm_config_registry', 'NPM_CONFIG_CACHE', 'NVM_DIR', 'PNPM_HOME', 'VOLTA_HOME'],
].flat();
const kept = [
  'OPENAI_API_KEY',
  'AWS_SECRET_ACCESS_KEY',
  'GITHUB_TOKEN',
  'npm_config__authToken',
  'NPM_CONFIG__AUTH',
  'HOMEBREW_X',
];

test('a server gets what programs need to run and to reach the network, and no keys', () => {
  const env = Object.fromEntries([...passed, ...kept].map((name) => [name, 'value']));
  expect(Object.keys(passedOn(env)).toSorted()).toEqual(passed.toSorted());
});

import { expect, test } from 'vitest';
import { createSecretGuard } from '../../../../src/kernel/core/secrets/guard.js';
import {
  createSecretScanner,
  environmentKind,
  secretForms,
  secretKinds,
} from '../../../../src/kernel/core/secrets/scanner.js';

/** A repeatable source of chance (mulberry32). */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below);
  };
}

const random = chance(20_261_126);
const lower = 'abcdefghijklmnopqrstuvwxyz';
const digits = '0123456789';
const hex = `${digits}abcdef`;
const capitals = lower.toUpperCase();
const letters = lower + capitals;
const base62 = letters + digits;
const base64url = `${base62}_-`;
const base64 = `${base62}+/`;

function some(alphabet: string, length: number): string {
  return Array.from({ length }, () => alphabet[random(alphabet.length)]).join('');
}

function oneOf(...texts: readonly string[]): string {
  return texts[random(texts.length)] ?? '';
}

interface Sample {
  readonly before?: string;
  readonly secret: string;
  readonly after?: string;
}

/** Where the text around a secret tells that it is one. */
const inUrl = (scheme: string, password: string): Sample => ({
  before: `${scheme}://svc:`,
  secret: password,
  after: '@db.internal:5432/app',
});
const uuid = (): string => [8, 4, 4, 4, 12].map((length) => some(hex, length)).join('-');
const named = (value: string): Sample =>
  [
    { before: '{"apiKey": "', secret: value, after: '"}' },
    { before: 'access_token: ', secret: value },
    { before: 'password = "', secret: value, after: '"' },
    { before: 'X-Api-Key: ', secret: value },
    { before: 'run --api-key ', secret: value },
    { before: 'run --token=', secret: value },
    { before: '["--password", "', secret: value, after: '"]' },
    { before: "clientSecret: '", secret: value, after: "'" },
    { before: '{\\"secret\\": \\"', secret: value, after: '\\"}' },
  ][random(9)] ?? { secret: value };

/** A grammar of each kind, after what its provider published or what its tokens look like. */
const grammars: Readonly<Record<string, () => string | Sample>> = {
  github_token: () => oneOf('ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_') + some(base62, 36),
  github_fine_grained: () => `github_pat_${some(base62, 22)}_${some(base62, 59)}`,
  gitlab_token: () => oneOf('glpat-', 'gldt-', 'glptt-', 'glrt-', 'glsoat-', 'glft-') + some(base64url, 20),
  aws_access_key: () => oneOf('AKIA', 'ASIA') + some(`${capitals}234567`, 16),
  aws_secret_key: () => ({
    before: oneOf('aws_secret_access_key = ', '"SecretAccessKey": "'),
    secret: some(base64, 40),
  }),
  google_api_key: () => `AIza${some(base64url, 35)}`,
  google_oauth: () => oneOf(`ya29.${some(base64url, 120)}`, `GOCSPX-${some(base64url, 28)}`),
  azure_storage_key: () => ({ before: 'AccountKey=', secret: `${some(base64, 86)}==` }),
  azure_client_secret: () => ({ before: some(base62, 3), secret: `8Q~${some(`${base62}_~.-`, 34)}` }),
  digitalocean_token: () => oneOf('dop_v1_', 'doo_v1_', 'dor_v1_') + some(hex, 64),
  heroku_key: () => `HRKU-${uuid()}`,
  fly_token: () => oneOf('fm2_', 'fo1_') + some(base64url, 60),
  netlify_token: () => `nfp_${some(base62, 36)}`,
  cloudflare_key: () => `v1.0-${some(hex, 24)}-${some(hex, 146)}`,
  planetscale_token: () => oneOf('pscale_tkn_', 'pscale_pw_', 'pscale_oauth_') + some(base64url, 43),
  supabase_key: () => oneOf(`sbp_${some(hex, 40)}`, `sb_secret_${some(base64url, 31)}`),
  databricks_token: () => `dapi${some(hex, 32)}`,
  tailscale_key: () => oneOf('tskey-auth-', 'tskey-api-') + `${some(base62, 12)}CNTRL-${some(base62, 32)}`,
  vault_token: () => oneOf('hvs.', 'hvb.') + some(base64url, 90),
  terraform_token: () => ({ before: some(base62, 14), secret: `.atlasv1.${some(base64url, 67)}` }),
  pulumi_token: () => `pul-${some(hex, 40)}`,
  doppler_token: () => oneOf('dp.pt.', 'dp.st.', 'dp.ct.', 'dp.sa.') + some(base62, 43),
  openai_key: () =>
    oneOf(
      `sk-${some(base62, 48)}`,
      `sk-${some(lower, 48)}`,
      `sk-${some(letters, 48)}`,
      `sk-${some(hex, 32)}`,
      `sk-proj-${some(base64url, 156)}`,
      `sk-svcacct-${some(base64url, 74)}T3BlbkFJ${some(base64url, 74)}`,
    ),
  anthropic_key: () => oneOf('sk-ant-api03-', 'sk-ant-oat01-', 'sk-ant-admin01-') + `${some(base64url, 93)}AA`,
  openrouter_key: () => `sk-or-v1-${some(hex, 64)}`,
  langfuse_key: () => `sk-lf-${uuid()}`,
  langsmith_key: () => oneOf('lsv2_pt_', 'lsv2_sk_') + `${some(hex, 32)}_${some(hex, 10)}`,
  groq_key: () => `gsk_${some(base62, 52)}`,
  xai_key: () => `xai-${some(base62, 80)}`,
  perplexity_key: () => `pplx-${some(base62, 48)}`,
  replicate_token: () => `r8_${some(base62, 37)}`,
  nvidia_key: () => `nvapi-${some(base64url, 64)}`,
  huggingface_token: () => oneOf('hf_', 'api_org_') + some(letters, 34),
  inference_key: () =>
    oneOf(`fw_${some(base62, 24)}`, `csk-${some(lower + digits, 48)}`, `tgp_v1_${some(base64url, 43)}`),
  elevenlabs_key: () => `sk_${some(hex, 48)}`,
  slack_token: () =>
    oneOf(
      `xoxb-${some(digits, 12)}-${some(digits, 13)}-${some(base62, 24)}`,
      `xoxp-${some(digits, 11)}-${some(digits, 11)}-${some(digits, 12)}-${some(hex, 32)}`,
      `xapp-1-A${some(capitals + digits, 10)}-${some(digits, 13)}-${some(hex, 64)}`,
    ),
  slack_webhook: () => ({
    before: 'https://hooks.slack.com/services/',
    secret: `T${some(capitals + digits, 8)}/B${some(capitals + digits, 8)}/${some(base62, 24)}`,
  }),
  discord_token: () => `MT${oneOf('A', 'E', 'I', 'M')}${some(base62, 23)}.${some(base64url, 6)}.${some(base64url, 38)}`,
  discord_webhook: () => ({
    before: `https://discord.com/api/webhooks/${some(digits, 18)}/`,
    secret: some(base64url, 68),
  }),
  telegram_token: () => ({ before: `bot ${some('123456789', 10)}:`, secret: `AA${some(base64url, 33)}` }),
  teams_webhook: () => ({
    before: 'https://acme.webhook.office.com/webhookb2/',
    secret: `${uuid()}@${uuid()}/IncomingWebhook/${some(hex, 32)}/${uuid()}`,
  }),
  stripe_key: () =>
    oneOf('sk_live_', 'rk_live_', 'sk_test_', 'rk_test_') + some(base62, oneOf('a', 'b') === 'a' ? 24 : 99),
  square_token: () => oneOf('sq0atp-', 'sq0csp-') + some(base64url, 43),
  shopify_token: () => oneOf('shpat_', 'shpss_', 'shpca_', 'shppa_') + some(hex, 32),
  twilio_key: () => `SK${some(hex, 32)}`,
  sendgrid_key: () => `SG.${some(base64url, 22)}.${some(base64url, 43)}`,
  mailgun_key: () => `key-${some(hex, 32)}`,
  brevo_key: () => `xkeysib-${some(hex, 64)}-${some(base62, 16)}`,
  npm_token: () => `npm_${some(base62, 36)}`,
  pypi_token: () => `pypi-AgEIcHlwaS5vcmc${some(base64url, 150)}`,
  rubygems_key: () => `rubygems_${some(hex, 48)}`,
  crates_token: () => `cio${some(base62, 32)}`,
  docker_token: () => oneOf('dckr_pat_', 'dckr_oat_') + some(base64url, 27),
  atlassian_token: () =>
    oneOf(`ATATT3xFfGF0${some(base64url, 172)}=${some('0123456789ABCDEF', 8)}`, `ATBB${some(base62, 32)}`),
  linear_key: () => oneOf('lin_api_', 'lin_oauth_') + some(base62, 40),
  notion_token: () => oneOf(`ntn_${some(base62, 46)}`, `secret_${some(base62, 43)}`),
  figma_token: () => oneOf('figd_', 'figu_') + some(base64url, 40),
  airtable_token: () => `pat${some(base62, 14)}.${some(hex, 64)}`,
  typeform_token: () => `tfp_${some(base64url, 44)}_${some(base62, 14)}`,
  postman_key: () => `PMAK-${some(hex, 24)}-${some(hex, 34)}`,
  sentry_token: () => oneOf(`sntrys_eyJ${some(base64url, 100)}`, `sntryu_${some(hex, 64)}`),
  grafana_token: () => oneOf(`glsa_${some(base62, 32)}_${some(hex, 8)}`, `glc_eyJ${some(base64, 80)}`),
  newrelic_key: () => `NRAK-${some(capitals + digits, 27)}`,
  dynatrace_token: () => `dt0c01.${some(`${capitals}234567`, 24)}.${some(`${capitals}234567`, 64)}`,
  posthog_key: () => `phx_${some(base62, 43)}`,
  sonar_token: () => oneOf('squ_', 'sqp_', 'sqa_') + some(hex, 40),
  buildkite_token: () => `bkua_${some(hex, 40)}`,
  circleci_token: () => `${oneOf('CCIPAT_', 'CCIPRJ_')}${some(base62, 22)}_${some(hex, 40)}`,
  contentful_token: () => `CFPAT-${some(base64url, 43)}`,
  adafruit_key: () => `aio_${some(base62, 28)}`,
  onepassword_token: () => `ops_eyJ${some(base64url, 600)}`,
  age_key: () => `AGE-SECRET-KEY-1${some('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}`,
  private_key: () => {
    const kind = oneOf('RSA ', 'EC ', 'OPENSSH ', '');
    const body = Array.from({ length: 6 }, () => some(base64, 64)).join('\n');
    return `-----BEGIN ${kind}PRIVATE KEY-----\n${body}\n-----END ${kind}PRIVATE KEY-----`;
  },
  jwt: () => `eyJ${some(base64url, 33)}.eyJ${some(base64url, 80)}.${some(base64url, 43)}`,
  database_password: () => inUrl(oneOf('postgres', 'mysql', 'mongodb+srv', 'redis'), some(base62, 16)),
  sql_password: () => ({
    before: 'Server=tcp:db;User ID=app;Password=',
    secret: some(base62, 16),
    after: ';Encrypt=true',
  }),
  url_password: () => inUrl('https', `${some(letters, 10)}${some(digits, 2)}`),
  option_password: () => ({
    before: oneOf(
      'curl -u deploy:',
      "curl --user 'deploy:",
      'http -a deploy:',
      'http --auth=deploy:',
      'wget --user=x --password=',
      "tool --http-password '",
    ),
    secret: `${some(letters, 8)}${some(digits, 3)}`,
  }),
  registry_auth: () => ({
    before: oneOf('{"auths":{"ghcr.io":{"auth": "', '//registry.npmjs.org/:_authToken=', '_auth="'),
    secret: `${some(base62, 20)}${some(digits, 2)}${some(letters, 8)}`,
    after: '"',
  }),
  kubernetes_secret: () => ({
    before: oneOf('data:\n  password: ', '"db-password": "', '  tls.key: '),
    secret: `${some(base62, 14)}==`,
  }),
  session_cookie: () => ({
    before: oneOf('Set-Cookie: app=', 'cookie: id=', 'connect.sid=', 'PHPSESSID=', '__Secure-next-auth.session-token='),
    secret: `${some(base62, 28)}${some(digits, 4)}`,
  }),
  authorization: () => ({
    before: oneOf('Authorization: Bearer ', 'authorization: Basic '),
    secret: oneOf(some(base62, 40), some(lower, 48), some(letters, 32)),
  }),
  assigned_secret: () => ({
    before: oneOf('SESSION_SECRET=', 'export DATADOG_API_KEY="', 'DB_PASSWORD: ', '"SILICONFLOW_API_KEY": "'),
    secret: oneOf(
      some(base62, 32),
      some(lower, 48),
      some(letters, 40),
      some(lower, 32),
      some(capitals, 32),
      some(hex, 32),
    ),
  }),
  named_secret: () =>
    named(
      oneOf(some(base62, 32), some(lower, 48), some(letters, 40), some(lower, 32), some(capitals, 32), some(hex, 40)),
    ),
};

/** Where a secret may be. A key in PEM has lines, which JSON escapes. */
const contexts: readonly (readonly [name: string, around: (text: string) => string])[] = [
  ['JSON', (text) => JSON.stringify({ value: text, next: 1 })],
  ['JSON in JSON', (text) => JSON.stringify({ body: JSON.stringify({ value: text }) })],
  ['env', (text) => `A=1\nVALUE=${text}\nB=2`],
  ['header', (text) => `GET / HTTP/1.1\r\nX-Value: ${text}\r\n\r\n`],
  ['prose', (text) => `Use ${text}, then go on.`],
  ['diff', (text) => `@@ -1 +1 @@\n-${text}\n+${text}`],
  ['code', (text) => `const value = \`${text}\`;`],
];

function sampleOf(kind: string): Sample {
  const made = grammars[kind]?.() ?? '';
  return typeof made === 'string' ? { secret: made } : made;
}

/** The parts of secrets by which one would be recognised. */
function leftOf(secret: string): string {
  return (secret.startsWith('-----') ? (secret.split('\n')[2] ?? '') : secret).slice(-24);
}

test('each form has a grammar', () => {
  expect(Object.keys(grammars).sort()).toEqual(secretKinds.filter((kind) => kind !== environmentKind).sort());
});

const samples = 1000;

test.each(Object.keys(grammars))(`of ${samples} secrets of the kind %s none is in clear`, (kind) => {
  const scanner = createSecretScanner(secretForms());
  const missed: unknown[] = [];
  for (let count = 0; count < samples; count++) {
    const { before = '', secret, after = '' } = sampleOf(kind);
    const [name, around] = contexts[count % contexts.length] ?? ['alone', (text: string) => text];
    const text = around(`${before}${secret}${after}`);
    const { found } = scanner.scan(text);
    const masked = found.toReversed().reduce((rest, { start, end }) => rest.slice(0, start) + rest.slice(end), text);
    if (masked.includes(leftOf(secret))) missed.push([name, before, secret]);
  }
  expect(missed).toEqual([]);
});

test('a token behind an underscore is found, as in the names that programs make from it', () => {
  const tokens = secretForms().filter(({ isToken, behind }) => isToken && behind === null);
  const scanner = createSecretScanner(secretForms());
  const missed = tokens.flatMap(({ kind }) => {
    const { before = '', secret } = sampleOf(kind);
    const text = `call_${before}${secret} `;
    const { found } = scanner.scan(text);
    return found.some(({ start, end }) => text.slice(start, end) === secret) ? [] : [[kind, text]];
  });
  expect(missed).toEqual([]);
});

test('secrets that come in pieces are found in each kind', () => {
  for (const kind of Object.keys(grammars)) {
    for (let count = 0; count < 40; count++) {
      const { before = '', secret, after = '' } = sampleOf(kind);
      const text = `value ${before}${secret}${after} end`;
      const stream = createSecretGuard({ forms: secretForms(), keys: [], environment: [] }).stream();
      let shown = '';
      for (let at = 0; at < text.length;) {
        const size = 1 + random(12);
        shown += stream.add(text.slice(at, at + size));
        at += size;
      }
      expect([kind, `${shown}${stream.end()}`.includes(leftOf(secret)), secret]).toEqual([kind, false, secret]);
    }
  }
});

test('texts that look like secrets stay as they are', () => {
  const sha = some(hex, 40);
  const texts = [
    'sk-learn sk-spinner-double-bounce sk-cube-grid-container-wrapper task-runner-configuration ask-me-anything',
    `id ${uuid()} commit ${sha} tree ${sha}`,
    `"integrity": "sha512-${some(base64, 86)}=="`,
    `<img src="data:image/png;base64,${some(base64, 400)}">`,
    `!function(e,t){var n=e.${some(lower, 8)}("${some(hex, 20)}");t.exports=n}(window);`,
    '.btn-primary--disabled { key-frame: fade-in-out-animation } .hf_container_fluid_wide .npm_config_registry_url',
    'const token = this.tokenizer.nextTokenOfTheStream(); password = await promptForThePasswordOfTheUser();',
    'token: string; apiKey: config.provider.apiKeyFromEnvironment; secret = process.env.SECRET_NAME_HERE',
    'password: "change-me-before-you-deploy" api_key: your_api_key_goes_here token=<your-token>',
    'sk_test_internationalization fw_update_the_firmware_of_the_device secret_name_of_the_environment',
    'Basic authentication-and-authorization, Bearer authentication_with_tokens_explained',
    `cache_key: ${sha.slice(0, 12)} sort-key primary_key foreign_key`,
    'p->zToken = sqlite3DbSpanDup(db, a); nToken = sqlite3Strlen30NN(z); token = scanTemplateAndSetTokenValue(false)',
    'return pos += 3, token = SyntaxKind.LessThanLessThanEqualsToken; secret = secretTable16By24Entries[at]',
    'docker run -u 1000:1000 -u node:node; ps -u root:wheel; "auth": "authenticated"; _auth=undefined; session=createSession()',
    'password: ab== token: x= secret: aes256gcm; cookie: consent=yes; cookie: theme=dark-mode-enabled-always',
    '--token-limit 4000 --password-file /etc/app/password.txt --api-key-helper ./bin/helper',
    'AKIAIOSFODNN7EXAMPLE ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-ant-your-key-goes-here-please',
  ];
  const guard = createSecretGuard({ forms: secretForms(), keys: [], environment: [] });
  for (const text of texts) expect(guard.text(text)).toBe(text);
});

import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { plainGuard, type Secret } from '../../../src/kernel/secrets/known-secrets.js';
import { openInBrowser, openKeyring } from '../../../src/kernel/secrets/keyring.js';
import { keptNames, openStoredKeys, type StoredKeys } from '../../../src/kernel/secrets/stored-keys.js';
import { builtInPresets, findKey, resolveProvider } from '../../../src/kernel/providers/catalog.js';
import { storedKeys } from './stored.js';

const noCommand = (): Promise<{ failure: string }> => Promise.resolve({ failure: 'there are no commands' });
const key = 'sk-kept-0123456789abcdef';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'agent-keys-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true });
  });
  return path;
}

test('a key is kept for the owner alone and comes back; forgotten, it is gone from the disk', async () => {
  const file = join(folder(), 'deep', 'keys.json');
  const keys = await storedKeys(file);
  keys.enter('openai', key);
  expect(await keys.keep('openai', key, 'file')).toEqual({
    done: true,
    said: `Saved to ${file}, readable only by you.`,
  });
  expect([statSync(file).mode & 0o777, (await storedKeys(file)).all()]).toEqual([0o600, { openai: { key } }]);
  const later = await storedKeys(file);
  expect([await later.forget('openai'), await later.forget('openai'), later.all()]).toEqual([true, false, {}]);
  expect(readFileSync(file, 'utf8')).not.toContain(key);
});

test('a variable wins over a kept key, and what is entered in this run wins over both', async () => {
  const keys = await storedKeys();
  const preset = builtInPresets['openai'];
  if (!preset) throw new Error('there is no OpenAI');
  const found = (): unknown => findKey('openai', preset, { env: { OPENAI_API_KEY: 'from-env' }, keys: keys.all() });
  expect(found()).toEqual({ key: 'from-env', variable: 'OPENAI_API_KEY' });
  expect(findKey('openai', preset, { env: {}, keys: { openai: { key } } })).toEqual({ key, variable: null });
  keys.enter('openai', key);
  expect(found()).toEqual({ key, variable: null });
});

test('a kept key goes to its own provider, whichever variables others share with it', () => {
  const shared = { base_url: 'https://elsewhere.example/v1', key_env: ['OPENAI_API_KEY'] };
  const choice = { env: {}, keys: { openai: { key } }, presets: builtInPresets, userProviders: { mine: shared } };
  expect(resolveProvider({ ...choice, name: 'mine', model: 'm' })).toMatchObject({
    ok: false,
    problem: { kind: 'key_missing' },
  });
  expect(resolveProvider({ ...choice, name: 'openai', model: 'm' })).toMatchObject({
    endpoint: { key, keyIsKept: true },
  });
});

test('a file that is not JSON is named, not used and not written over', async () => {
  const file = join(folder(), 'keys.json');
  writeFileSync(file, '{ "keys": oops');
  const problems: string[] = [];
  const keys = await openStoredKeys({
    file,
    ephemeral: false,
    keyring: () => Promise.reject(new Error('there is no keyring')),
    onKey: () => undefined,
    onProblem: (problem) => problems.push(problem),
    runCommand: noCommand,
  });
  expect([problems, keys.all(), (await keys.keep('openai', key, 'file')).done]).toEqual([
    [`${file} is not a JSON object: its keys are not used.`],
    {},
    false,
  ]);
  expect(readFileSync(file, 'utf8')).toBe('{ "keys": oops');
});

/** A keyring over a double of libsecret's program, which keeps its secrets in a folder. */
async function withKeyring(at: string, file: string): Promise<StoredKeys> {
  return await openStoredKeys({
    file,
    ephemeral: false,
    keyring: () => Promise.resolve(openKeyring({ PATH: `${at}:${process.env['PATH'] ?? ''}`, HOME: at }, 'linux')),
    onKey: () => undefined,
    onProblem: (problem) => {
      throw new Error(problem);
    },
    runCommand: noCommand,
  });
}

test('the keyring of the system keeps a key instead of the file; the program sees it on its standard input', async () => {
  const at = folder();
  const file = join(at, 'keys.json');
  const program = join(at, 'secret-tool');
  writeFileSync(
    program,
    `#!/bin/sh\necho "$@" >>${at}/args\ncase $1 in store) cat >${at}/kept;; clear) rm ${at}/kept;; *) [ -e ${at}/kept ] && cat ${at}/kept;; esac\n`,
  );
  chmodSync(program, 0o755);
  const keys = await withKeyring(at, file);
  expect(existsSync(join(at, 'args'))).toBe(false);
  expect((await keys.keep('xai', key, 'keyring')).said).toBe('Saved to the keyring of the system.');
  expect([readFileSync(file, 'utf8').includes(key), keptNames(file)]).toEqual([false, ['xai']]);
  const later = await withKeyring(at, file);
  expect(later.all()).toEqual({ xai: { key } });
  expect(readFileSync(join(at, 'args'), 'utf8')).not.toContain(key);
  expect([await later.forget('xai'), existsSync(join(at, 'kept')), keptNames(file)]).toEqual([true, false, []]);
});

test('a system without a keyring says so, and the key is not kept', async () => {
  const at = folder();
  const keys = await openStoredKeys({
    file: join(at, 'keys.json'),
    ephemeral: false,
    keyring: () => Promise.resolve(openKeyring({ PATH: at, HOME: at }, 'linux')),
    onKey: () => undefined,
    onProblem: () => undefined,
    runCommand: noCommand,
  });
  expect(await keys.keep('xai', key, 'keyring')).toEqual({
    done: false,
    said: 'Not saved: there is no secret-tool here.',
  });
  expect(existsSync(join(at, 'keys.json'))).toBe(false);
});

test('a guard that was made before hides a key that is entered later, also in the middle of a stream', () => {
  const secrets: Secret[] = [];
  const guard = plainGuard({}, secrets, { mask: false, unmasked: [] });
  const stream = guard.stream();
  expect(guard.text(`x ${key} y`)).toContain(key);
  secrets.push({ name: 'keys.json:openai', value: key });
  const masked = '«redacted:keys.json:openai»';
  expect([guard.text(`x ${key} y`), guard.json(JSON.stringify({ a: key }))]).toEqual([
    `x ${masked} y`,
    JSON.stringify({ a: masked }),
  ]);
  expect(stream.add(key.slice(0, 9)) + stream.add(`${key.slice(9)} `) + stream.end()).toBe(`${masked} `);
});

/** A double of security(1) of macOS, which keeps one password in a folder and prints what the real one prints. */
function securityDouble(at: string): string {
  const missing = 'security: SecKeychainSearchCopyNext: The specified item could not be found in the keychain.';
  return `#!/bin/sh
echo "$@" >>${at}/args
case $1 in
  -i)
    while read -r command rest; do
      echo "$command $rest" >>${at}/commands
      case $command in
        add-generic-password) eval "set -- $rest"; while [ $# -gt 0 ]; do [ "$1" = -w ] && printf %s "$2" >${at}/kept; shift; done ;;
        *) echo "security: unknown command" >&2 ;;
      esac
    done ;;
  find-generic-password) if [ -e ${at}/kept ]; then cat ${at}/kept; echo; else echo "${missing}" >&2; exit 44; fi ;;
  delete-generic-password) if [ -e ${at}/kept ]; then rm ${at}/kept; echo "password has been deleted." >&2; else echo "${missing}" >&2; exit 44; fi ;;
esac
`;
}

test('the keychain of macOS keeps a key, which is in no argument', async () => {
  const at = folder();
  writeFileSync(join(at, 'security'), securityDouble(at), { mode: 0o755 });
  const keyring = openKeyring({ PATH: `${at}:${process.env['PATH'] ?? ''}`, HOME: at }, 'darwin');
  const odd = 'a "quoted" key\\ $HOME';
  expect(await keyring.read('xai')).toEqual({ key: null });
  expect(await keyring.remove('xai')).toBeNull();
  expect(await keyring.write('xai', odd)).toBeNull();
  expect(readFileSync(join(at, 'args'), 'utf8')).not.toContain('quoted');
  expect(readFileSync(join(at, 'commands'), 'utf8')).toMatch(/^add-generic-password -U -s agent-shell -a "xai" -w "a /);
  expect([await keyring.remove('xai'), await keyring.read('xai')]).toEqual([null, { key: null }]);
});

test.each([
  ['darwin', {}, 'open', 'https://a.example/?b=1&c=2'],
  ['linux', { DISPLAY: ':0' }, 'xdg-open', 'https://a.example/?b=1&c=2'],
  ['linux', { WSL_DISTRO_NAME: 'Ubuntu' }, 'wslview', 'https://a.example/?b=1&c=2'],
  ['linux', { WSL_DISTRO_NAME: 'Ubuntu' }, 'rundll32.exe', 'url.dll,FileProtocolHandler https://a.example/?b=1&c=2'],
  ['linux', {}, 'xdg-open', null],
] as const)('on %s with %j a page is opened by %s', async (platform, env, name, args) => {
  const at = folder();
  writeFileSync(join(at, name), `#!/bin/sh\necho "$@" >${at}/new\nmv ${at}/new ${at}/args\n`, { mode: 0o755 });
  expect(
    await openInBrowser('https://a.example/?b=1&c=2', { PATH: `${at}:/usr/bin:/bin`, HOME: at, ...env }, platform),
  ).toBe(args !== null);
  if (args !== null) await expect.poll(() => existsSync(join(at, 'args'))).toBe(true);
  expect(existsSync(join(at, 'args')) ? readFileSync(join(at, 'args'), 'utf8') : null).toBe(args && `${args}\n`);
});

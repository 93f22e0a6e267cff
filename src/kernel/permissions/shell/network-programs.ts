import { addAll, entriesOf } from '../../core/lists.js';
import networkTables from '../../../../config/commands/network.json' with { type: 'json' };
import { lastName } from '../guarded-paths.js';
import {
  type Arg,
  type Code,
  danger,
  type Finding,
  type Invocation,
  type Options,
  pathsOf,
  type Program,
  type Test,
  writeTo,
} from './invocation.js';
import { has, literalArg, parseOptions, valuesOf } from './words.js';

export const networkCodes: Readonly<Record<string, Code>> = {
  curl,
  fetcher,
  httpie,
  openssl,
  resolver,
  rsync,
  wget,
};
export const networkTests: Readonly<Record<string, Test>> = { isFed };

/** Words from a command in an address carry data away; an address may be one that only this machine can reach. */
function addressFindings(call: Invocation, addresses: readonly Arg[]): readonly Finding[] {
  if (call.args.some((arg) => arg.substitution !== 'none'))
    return danger(call, 'sends the output of a command to the network');
  for (const arg of addresses) {
    if (arg.dynamic) return danger(call, 'uses an address that is known only when it runs');
    const why = fetchedAddress(arg.text);
    if (why !== null) return danger(call, why);
  }
  return [];
}

/** Ports of data stores on this machine, which obey requests of this kind. */
const dataPorts = /:(?:9200|5984|8086|6333|7474|8983|15672|9090|8529|3100|8123|5601)(?:\/|$)/;

const curlUploads = entriesOf(networkTables.lists.curlUploads);

function curl(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const addresses = [...options.operands, ...valuesOf(options, '--url')];
  const local = addresses.length > 0 && addresses.every(({ text }) => isLocal(text));
  if (!local && (curlUploads.some((name) => has(options, name)) || sendsMethod(options)))
    return danger(call, 'sends data to the network');
  if (local && destroysLocally(options, addresses)) return danger(call, 'deletes data');
  if (curlUploads.flatMap((name) => valuesOf(options, name)).some(({ text }) => text.includes('@')))
    return danger(call, 'sends a file');
  return [...addressFindings(call, addresses), ...saved(call, options, addresses)];
}

/** Returns true if a request deletes, closes or stops a data store of this machine. */
function destroysLocally(options: Options, addresses: readonly Arg[]): boolean {
  if (!addresses.some(({ text }) => dataPorts.test(text))) return false;
  const methods = valuesOf(options, '-X', '--request').map(({ text }) => text.toUpperCase());
  return (
    methods.includes('DELETE') ||
    (methods.some((method) => method !== 'GET' && method !== 'HEAD') &&
      addresses.some(({ text }) => /_shutdown|_delete|_close|_forcemerge|flush|purge|drop|truncate|wipe/i.test(text)))
  );
}

function sendsMethod(options: Options): boolean {
  return valuesOf(options, '-X', '--request').some(({ text }) => !/^(?:GET|HEAD|OPTIONS)$/i.test(text));
}

function isLocal(address: string): boolean {
  return /^(?:https?:\/\/)?(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:[/?#]|$)/.test(address);
}

/** Judges the files to which the answer is saved, and remembers them, so that running one later in the same script is
 * noticed. */
function saved(call: Invocation, options: Options, addresses: readonly Arg[]): readonly Finding[] {
  const files = [
    ...valuesOf(
      options,
      '-o',
      '--output',
      '-D',
      '--dump-header',
      '-c',
      '--cookie-jar',
      '--trace',
      '--trace-ascii',
      '--stderr',
      '--output-dir',
      '--etag-save',
      '--hsts',
      '--alt-svc',
    ),
  ];
  if (has(options, '-O', '--remote-name', '--remote-name-all', '-J'))
    addAll(
      files,
      addresses.map((arg) => remoteName(arg)),
    );
  return files.flatMap((arg) => {
    remember(arg, call);
    return arg.text === '-' ? [] : writeTo(arg, call);
  });
}

function remoteName(address: Arg): Arg {
  return literalArg(lastName(address.text.replace(/[?#].*$/, '')) || 'index.html');
}

function remember(file: Arg, call: Invocation): void {
  for (const value of file.values) for (const path of pathsOf(value, call.scan)) call.scan.files.fetched.add(path);
}

function wget(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const named = valuesOf(options, '-O', '--output-document');
  const logs = valuesOf(
    options,
    '-o',
    '-a',
    '--output-file',
    '--append-output',
    '-P',
    '--directory-prefix',
    '--save-cookies',
    '--warc-file',
  );
  const prefix = valuesOf(options, '-P', '--directory-prefix')[0]?.text;
  const files =
    named.length > 0
      ? named
      : options.operands.map((arg) => {
          const name = remoteName(arg);
          return prefix === undefined ? name : literalArg(`${prefix}/${name.text}`);
        });
  for (const file of files) remember(file, call);
  const written = [...named, ...logs].filter(({ text }) => text !== '-').flatMap((arg) => writeTo(arg, call));
  return [...addressFindings(call, options.operands), ...written];
}

function httpie(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text);
  const body =
    words.some((text) => /^(?:POST|PUT|PATCH|DELETE)$/.test(text) || /^[\w-]+(?:=|:=|@|=@|:=@)/.test(text)) ||
    call.place.piped;
  const local = words.some((text) => isLocal(text) || /^:\d+/.test(text));
  return body && !local
    ? danger(call, 'sends data to the network')
    : addressFindings(call, parseOptions(call.args).operands);
}

function fetcher(call: Invocation): readonly Finding[] {
  return [
    ...addressFindings(call, parseOptions(call.args).operands),
    ...(call.args.some(({ text }) => /^(?:--on-|--exec|-cfg|--conf-path|-cmd_script|--input-file|-i$)/.test(text))
      ? danger(call, 'runs commands')
      : []),
  ];
}

/** A question for a name sends the name away. A name that a command made may carry data. */
function resolver(call: Invocation): readonly Finding[] {
  if (call.args.some((arg) => arg.dynamic || arg.substitution !== 'none') || call.place.piped)
    return danger(call, 'carries the output of a command away in a name');
  if (call.args.some(({ text }) => /^-f$|^--file/.test(text) && /^dig|^host|^kdig/.test(call.name)))
    return danger(call, 'sends the contents of a file');
  if (call.args.some(({ text }) => text.length > 100 || /[\w-]{40,}\./.test(text)))
    return danger(call, 'asks for a name that looks like data');
  return call.args.length === 0 && call.place.piped ? danger(call, 'sends its input') : [];
}

/** Its input, or a word known only when it runs, becomes a command on the other machine. */
function isFed(call: Invocation): boolean {
  return call.place.piped || call.args.some((arg) => arg.dynamic);
}

function rsync(call: Invocation, _program: Program, options: Options): readonly Finding[] {
  const to = options.operands.at(-1);
  if (to && /^[^/]*:|^rsync:/.test(to.text)) return danger(call, 'sends files to another machine');
  const { home } = call.scan.context;
  if (options.operands.slice(0, -1).some(({ text }) => text.replace(/\/+$/, '') === home || text === '/'))
    return danger(call, 'copies everything, secrets among it');
  return to && options.operands.length > 1 ? writeTo(to, call) : [];
}

function openssl(call: Invocation): readonly Finding[] {
  const verb = call.args[0]?.text ?? '';
  const given = (names: RegExp): boolean => call.args.some(({ text }) => names.test(text));
  if (given(/^--?(?:engine\w*|provider(?:-path)?|config)$/)) return danger(call, 'loads other code or settings');
  if (/^(?:version|help|ciphers|errstr|prime|rand|list)$/.test(verb) && !given(/^--?(?:out|writerand)/)) return [];
  const usesKeys =
    /^(?:s_client|s_server|s_time|ocsp|ts|cmp|engine|storeutl|pkcs12|rsa|ec|pkey|pkcs8|genrsa|genpkey)$/.test(verb);
  if (usesKeys || (verb !== 'dgst' && given(/^--?(?:inkey|key|passin|pass)$/)))
    return danger(call, 'uses keys or the network');
  const { flags } = parseOptions(call.args.map(doubleDashed), '--out --CAkey --CAserial');
  const written = flags.flatMap(({ name, value }) => (name === '--out' && value ? writeTo(value, call) : []));
  if (written.length > 0) return written;
  return [];
}

/** openssl takes `-out` and `--out` alike. */
function doubleDashed(arg: Arg): Arg {
  return /^-\w{2,}/.test(arg.text) ? { ...arg, text: `-${arg.text}` } : arg;
}

const metadata = new RegExp(
  '^(?:169\\.254\\.\\d+\\.\\d+|metadata(?:\\.google\\.internal|\\.goog)?|instance-data(?:\\..*)?' +
    '|100\\.100\\.100\\.200|192\\.0\\.0\\.192|fd00:ec2::254|::ffff:\\S+)$',
  'i',
);
const privateRange = new RegExp(
  '^(?:10\\.|192\\.168\\.|172\\.(?:1[6-9]|2\\d|3[01])\\.' +
    '|100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7])\\.|0\\.|fe80:|f[cd][\\da-f]{2}:)',
  'i',
);
/** Ports on this machine that give control of it. */
const controlPorts = new Set([
  '2375',
  '2376',
  '6443',
  '10250',
  '10255',
  '8500',
  '8200',
  '2379',
  '4243',
  '9229',
  '9222',
]);

/** Returns why fetching an address needs approval, or null. The address may lack its scheme, as curl allows. */
function fetchedAddress(address: string): string | null {
  const scheme =
    /^([a-z][a-z\d+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase() ??
    (/^(?:file|data|gopher|dict|telnet|ldap):/i.test(address) ? 'file' : 'http');
  if (!/^https?$/.test(scheme)) return `uses ${scheme}:, which reaches more than the web`;
  const host = (address.replace(/^[a-z]+:\/\//i, '').split(/[/?#\\]/)[0] ?? '').replace(/^.*@/, '');
  const name = (host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:\d*$/, '')).replace(/\.$/, '');
  return (
    hostProblem(name) ??
    (controlPorts.has(/:(\d+)$/.exec(host)?.[1] ?? '') ? 'reaches a port that controls a machine' : null)
  );
}

const local = 'reaches a machine of the local network';
/** An address as a whole number, in hexadecimal, in octal or with parts missing. It hides which machine is
 * meant. */
const oddNumber = /^(?:0x[\da-f]+|\d+)(?:\.(?:0x[\da-f]+|\d+)){0,3}$/i;
const plainNumber = /^(?:[1-9]\d*|0)(?:\.(?:[1-9]\d*|0)){3}$/;

function hostProblem(name: string): string | null {
  if (metadata.test(name)) return 'asks the metadata service of the machine';
  if (privateRange.test(name) || /\.(?:nip|sslip|xip)\.io$|\.(?:internal|local|lan|home|corp|intranet)$/i.test(name))
    return local;
  return oddNumber.test(name) && !plainNumber.test(name) ? 'hides an address in a number' : null;
}

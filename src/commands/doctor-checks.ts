import { fail, ok, warn } from '../kernel/console/doctor-check.js';
import { certificateAuthorities } from '../kernel/network/authorities.js';
import { namedProxies, NetworkSettingError, proxyName } from '../kernel/network/proxies.js';
import type { ConfigProblem, Environment } from '../kernel/config/settings-file.js';
import type { StoreFacts } from '../kernel/store/inspect.js';
import type { DoctorCheck } from '../kernel/console/command.js';

export interface TerminalReport {
  readonly isTerminal: boolean;
  readonly term: string;
  /** 1, 4, 8 or 24 bits. */
  readonly colorBits: number;
  readonly noColor: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly unicode: boolean;
}

export interface KeyFact {
  readonly provider: string;
  readonly variable: string;
  readonly set: boolean;
}
/** The keys that the program keeps, and the mode of their file; null: there is none. */
export interface KeptFacts {
  readonly file: string;
  readonly names: readonly string[];
  readonly mode: number | null;
}

export interface RipgrepFact {
  readonly source: 'bundled' | 'system';
  readonly path: string;
}

const megabyte = 1_048_576;

export function checkRipgrep(found: RipgrepFact | null): DoctorCheck {
  if (found) return ok('ripgrep', `${found.source}, ${found.path}`);
  return warn(
    'ripgrep',
    'not found; a slower search of our own takes its place',
    'Install ripgrep, or run npm install with optional packages.',
  );
}

export function checkTerminal(facts: TerminalReport): DoctorCheck {
  if (!facts.isTerminal) return ok('terminal', 'output is not a terminal');
  const colors = facts.noColor
    ? 'no colours (NO_COLOR)'
    : ({ 1: 'no colours', 4: '16 colours', 8: '256 colours', 24: 'true colour' }[facts.colorBits] ??
      `${facts.colorBits}-bit colour`);
  const size = `${facts.columns}×${facts.rows}`;
  const detail = [facts.term || 'TERM is not set', colors, size, facts.unicode ? 'Unicode' : 'no Unicode'].join(', ');
  if (facts.columns < 40) return warn('terminal', detail, 'Widen the terminal to at least 40 columns.');
  return facts.unicode
    ? ok('terminal', detail)
    : warn('terminal', detail, 'Set LANG to a UTF-8 locale, for example C.UTF-8.');
}

/** Never says what a key is, only whether there is one. */
export function checkKeys(keys: readonly KeyFact[], kept: KeptFacts): DoctorCheck {
  if (kept.mode !== null && (kept.mode & 0o077) !== 0)
    return warn(
      'keys',
      `${kept.file}, mode ${kept.mode.toString(8).padStart(4, '0')}: others may read it`,
      `Run: chmod 600 '${kept.file}'`,
    );
  const set = keys.filter((key) => key.set);
  const missing = keys.filter((key) => !key.set).map((key) => key.variable);
  const found = set.map((key) => `${key.variable} (${key.provider})`).join(', ');
  const stored = kept.names.length === 0 ? '' : `kept: ${kept.names.join(', ')}; `;
  if (set.length > 0 || kept.names.length > 0)
    return ok('keys', `${stored}set: ${found || 'none'}; not set: ${missing.join(', ') || 'none'}`);
  return warn(
    'keys',
    `no key is set (looked for ${missing.join(', ')})`,
    'Run agent login, set one of them, or start Ollama or LM Studio; until then the offline provider answers.',
  );
}

export function checkConfig(file: string, problems: readonly ConfigProblem[]): DoctorCheck {
  const [first] = problems;
  if (!first) return ok('config', file);
  return fail(
    'config',
    `${first.message}${problems.length > 1 ? `, and ${problems.length - 1} more` : ''}`,
    first.hint,
  );
}

export function checkStore(facts: StoreFacts): DoctorCheck {
  if (!facts.writable)
    return fail(
      'store',
      `${facts.file} cannot be written: ${facts.reason}`,
      'Make it writable, or set AGENT_HOME to a directory that is.',
    );
  if (facts.refused !== null) return fail('store', facts.refused.message, facts.refused.hint);
  if (facts.mode === null) return ok('store', `${facts.file}, not made yet`);
  const detail = `${facts.file}, mode ${facts.mode.toString(8).padStart(4, '0')}`;
  return (facts.mode & 0o077) === 0
    ? ok('store', detail)
    : warn('store', `${detail}: others may read it`, `Run: chmod 600 '${facts.file}'`);
}

export function checkDisk(freeBytes: number): DoctorCheck {
  const detail = `${Math.floor(freeBytes / megabyte)} MB free`;
  if (freeBytes < 10 * megabyte) return fail('disk', detail, 'Free some space: sessions cannot be saved.');
  return freeBytes < 200 * megabyte ? warn('disk', detail, 'Free some space.') : ok('disk', detail);
}

/** Checks that the proxies and certificate authorities of the environment can be used. Returns no check if it names
 * none. */
export function checkNetwork(env: Environment): readonly DoctorCheck[] {
  try {
    const proxies = namedProxies(env).map((proxy) => `${proxyName(proxy)} (${proxy.variable})`);
    const added = (env['SSL_CERT_FILE'] ?? '') !== '' && certificateAuthorities(env) !== null;
    const parts = [...proxies, ...(added ? ['authorities of SSL_CERT_FILE'] : [])];
    return parts.length === 0 ? [] : [ok('network', parts.join(', '))];
  } catch (error) {
    if (error instanceof NetworkSettingError) return [fail('network', error.message, error.hint)];
    throw error;
  }
}

import { parseJson } from '../../../kernel/core/json.js';
import { statSync } from 'node:fs';
import type { StoredOAuthClientInformation, StoredOAuthTokens } from '@modelcontextprotocol/client';
import { isRecord } from '../../../kernel/core/json.js';
import { readBoundedText } from '../../../kernel/disk/bounded-file.js';
import { replaceFile } from '../remembered-tools.js';

/** The registration and the tokens that one authorization server issued for one server. */
interface KeptSignIn {
  /** The registration of this program as a client. */
  readonly client?: StoredOAuthClientInformation;
  /** The registered address that the browser ends at. */
  readonly redirect?: string;
  readonly tokens?: StoredOAuthTokens;
  /** The resource that the tokens are for, in the server's own words. */
  readonly resource?: string;
}

/** The sign-ins of the user, by the address of the server and by who issued them. A change by another process counts at
 * once. */
export interface SignIns {
  /** The one with the newest tokens; null where there is none. */
  current(url: string): (KeptSignIn & { readonly issuer: string }) | null;
  /** Returns the sign-in from this issuer. */
  from(url: string, issuer: string): KeptSignIn;
  keep(url: string, issuer: string, part: KeptSignIn): void;
  /** Drops these tokens, unless others have taken their place. */
  drop(url: string, issuer: string, tokens: StoredOAuthTokens): void;
  /** The scope that the next sign-in is to ask for besides; '' for none. */
  wanted(url: string): string;
  want(url: string, scope: string): void;
  /** Returns false where nothing was kept. */
  forget(url: string): boolean;
}

interface Entry {
  readonly current?: string;
  readonly wanted?: string;
  readonly issuers: Readonly<Record<string, KeptSignIn>>;
}

type Entries = Readonly<Record<string, Entry>>;

const maxFileBytes = 1024 * 1024;
/** Shorter values occur in ordinary words. */
const minSecretChars = 8;
const secretFields = /^(?:access_token|refresh_token|id_token|client_secret|registration_access_token)$/;

/** A value that must be masked wherever it turns up. */
interface SignInSecret {
  readonly name: string;
  readonly value: string;
}

/** Opens the file, which need not exist. `onSecret` is called for each new secret that is written to it. */
export function openSignIns(file: string, onSecret: (secret: SignInSecret) => void): SignIns {
  const told = new Set(signInSecrets(file).map(({ value }) => value));
  let read = { stamp: '', entries: {} as Entries };
  const entries = (): Entries => {
    const stamp = stampOf(file);
    if (stamp !== read.stamp) read = { stamp, entries: entriesOf(file) };
    return read.entries;
  };
  const entryOf = (url: string): Entry => {
    const all = entries();
    return (Object.hasOwn(all, url) ? all[url] : undefined) ?? { issuers: {} };
  };
  const save = (url: string, entry: Entry | null): void => {
    const { [url]: _old, ...others } = entries();
    const all = entry === null ? others : { ...others, [url]: entry };
    for (const secret of secretsIn(all))
      if (!told.has(secret.value)) {
        told.add(secret.value);
        onSecret(secret);
      }
    replaceFile(file, `${JSON.stringify(all, null, 2)}\n`);
  };
  const from = (url: string, issuer: string): KeptSignIn => {
    const { issuers } = entryOf(url);
    return (Object.hasOwn(issuers, issuer) ? issuers[issuer] : undefined) ?? {};
  };
  return {
    from,
    current: (url) => {
      const { current } = entryOf(url);
      return current === undefined ? null : { ...from(url, current), issuer: current };
    },
    keep: (url, issuer, part) => {
      const entry = entryOf(url);
      save(url, {
        ...entry,
        ...(part.tokens ? { current: issuer } : {}),
        issuers: { ...entry.issuers, [issuer]: { ...from(url, issuer), ...part } },
      });
    },
    drop: (url, issuer, tokens) => {
      const { tokens: kept, ...others } = from(url, issuer);
      if (kept?.access_token !== tokens.access_token) return;
      const entry = entryOf(url);
      save(url, { ...entry, issuers: { ...entry.issuers, [issuer]: others } });
    },
    wanted: (url) => entryOf(url).wanted ?? '',
    want: (url, scope) => {
      const entry = entryOf(url);
      if ((entry.wanted ?? '') !== scope) save(url, { ...entry, wanted: scope });
    },
    forget: (url) => {
      if (!Object.hasOwn(entries(), url)) return false;
      save(url, null);
      return true;
    },
  };
}

/** Returns what must be masked of the file. */
export function signInSecrets(file: string): readonly SignInSecret[] {
  return secretsIn(entriesOf(file));
}

function secretsIn(value: unknown): readonly SignInSecret[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    if (typeof item !== 'string') return secretsIn(item);
    return secretFields.test(name) && item.length >= minSecretChars ? [{ name: 'mcp-auth.json', value: item }] : [];
  });
}

/** Changes with each change of the file. */
function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? '' : `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

function entriesOf(file: string): Entries {
  try {
    const text = readBoundedText(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    const value: unknown = parseJson(text ?? '{}');
    const entries = Object.entries(isRecord(value) ? value : {}).filter(
      (entry): entry is [string, Entry] => isRecord(entry[1]) && isRecord(entry[1]['issuers']),
    );
    return Object.fromEntries(entries);
  } catch {
    return {}; // A sign-in that cannot be read is done again.
  }
}

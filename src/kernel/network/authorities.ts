import type { SecureContext } from 'node:tls';
import type * as tlsModule from 'node:tls';
import { readBounded } from '../disk/bounded-file.js';
import { type NetworkEnvironment, NetworkSettingError } from './proxies.js';

const maxFileBytes = 8 * 1024 * 1024;
const certificate = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----/g;

/** Returns the authorities of the file in `SSL_CERT_FILE` together with those that Node knows; null where the file adds
 * none. Node itself reads `NODE_EXTRA_CA_CERTS` alone. Throws a `NetworkSettingError` for a file without certificates.
 * Source: OpenSSL, SSL_CTX_set_default_verify_paths(3); Node.js, "Command-line API" (read November 2026). */
export function certificateAuthorities(env: NetworkEnvironment): readonly string[] | null {
  const file = env['SSL_CERT_FILE']?.trim() ?? '';
  if (file === '') return null;
  const { rootCertificates } = tls();
  const known = new Set(rootCertificates.map(bare));
  const added = certificatesIn(file, 'SSL_CERT_FILE').filter((text) => !known.has(bare(text)));
  if (added.length === 0) return null;
  const extra = env['NODE_EXTRA_CA_CERTS']?.trim() ?? '';
  return [...rootCertificates, ...(extra === '' ? [] : certificatesIn(extra, 'NODE_EXTRA_CA_CERTS')), ...added];
}

/** Makes what TLS connections are opened with: nothing where Node's own authorities are enough. */
export function secureOptions(env: NetworkEnvironment): { readonly secureContext?: SecureContext } {
  const authorities = certificateAuthorities(env);
  return authorities === null ? {} : { secureContext: tls().createSecureContext({ ca: [...authorities] }) };
}

function certificatesIn(file: string, variable: string): readonly string[] {
  const found = readBounded(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
  const texts = found.kind === 'read' ? (found.bytes.toString('latin1').match(certificate) ?? []) : [];
  if (texts.length > 0) return texts;
  const why =
    found.kind === 'missing'
      ? 'does not exist'
      : found.kind === 'refused'
        ? `: ${found.reason}`
        : 'contains no certificate';
  throw new NetworkSettingError(
    `${variable}=${file} ${why}`.replace(' : ', ': '),
    'Use a PEM file with the CA certificates, or unset the variable.',
  );
}

function bare(text: string): string {
  return text.replaceAll(/-----[^-]+-----|\s/g, '');
}

/** TLS takes 4 ms to load, and a server on this machine needs none. */
function tls(): typeof tlsModule {
  return process.getBuiltinModule('node:tls');
}

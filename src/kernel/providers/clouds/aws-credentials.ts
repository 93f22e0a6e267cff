import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { defaultProvider } from '@aws-sdk/credential-provider-node';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Endpoint } from '../catalog.js';
import { HttpFailure } from '../http/exchange.js';
import type { CloudCredentials, Unauthorized } from './credentials.js';

/** Opens the credentials of AWS: environment, profile (AWS_PROFILE), sign-in of the CLI, web identity, container and
 * machine. Requests are signed with Signature Version 4. Source: AWS, "SDKs and Tools Reference Guide", "Standardized
 * credential providers"; "Signature Version 4 for API requests" (read 2026-11). */
export function openAws(
  { audience: service, region }: NonNullable<Endpoint['cloud']>,
  onSecret: (value: string) => void,
): CloudCredentials {
  const find = defaultProvider({ ignoreCache: true });
  if (region === null) throw new HttpFailure(noRegion, false);
  const signer = new SignatureV4({
    region,
    service,
    sha256: Sha256,
    credentials: async () => {
      const found = await withoutVersionWarning(find);
      for (const secret of [found.secretAccessKey, found.sessionToken]) if (secret !== undefined) onSecret(secret);
      return found;
    },
  });
  return {
    async headers(request) {
      const signed = await signer.sign(signable(request));
      return Object.fromEntries(Object.entries(signed.headers).filter(([name]) => added.has(name.toLowerCase())));
    },
  };
}

const noWarning = 'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED';

/** The library warns on the user's screen about versions of Node that its later releases will not support. */
async function withoutVersionWarning<T>(find: () => Promise<T>): Promise<T> {
  if (process.env[noWarning] !== undefined) return await find();
  process.env[noWarning] = 'true';
  try {
    return await find();
  } finally {
    delete process.env[noWarning];
  }
}

const noRegion = {
  code: 'bad_request',
  message: 'no AWS region',
  hint: 'set AWS_REGION or `region` of this provider in your settings, or give your AWS profile one: `aws configure set region us-east-1`',
} as const;

/** The headers that a signature adds. */
const added = new Set(['authorization', 'x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256']);

/** Returns the form of a request that the library signs. Only headers that no proxy changes are signed. */
function signable({ method, url, headers, body }: Unauthorized) {
  const { protocol, hostname, host, pathname, searchParams } = new URL(url);
  const type = headers['content-type'];
  return {
    method,
    protocol,
    hostname,
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: { host, ...(type === undefined ? {} : { 'content-type': type }) },
    body,
  };
}

/** SHA-256 and its keyed form, as the library asks for them. */
class Sha256 {
  #hash: Hash | Hmac;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {
    this.#hash = createHash('sha256');
  }
}

function bytesOf(secret: string | ArrayBuffer | ArrayBufferView): string | Uint8Array {
  if (typeof secret === 'string') return secret;
  return secret instanceof ArrayBuffer
    ? new Uint8Array(secret)
    : new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength);
}

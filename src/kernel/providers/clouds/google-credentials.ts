import { GoogleAuth } from 'google-auth-library';
import type { Cloud } from '../preset-parts.js';
import type { CloudCredentials } from './credentials.js';

/** Opens Google's application default credentials: GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default
 * login`, and the metadata server of a machine in the cloud. The library keeps a token until shortly before its end.
 * Source: Google Cloud, "How Application Default Credentials works" (read 2026-11). */
export function openGoogle({ audience }: Cloud, onSecret: (value: string) => void): CloudCredentials {
  const auth = new GoogleAuth({ scopes: [audience] });
  return {
    async headers({ url }) {
      const headers = Object.fromEntries(await auth.getRequestHeaders(url));
      const token = headers['authorization']?.replace(/^Bearer /i, '') ?? '';
      if (token !== '') onSecret(token);
      return headers;
    },
  };
}

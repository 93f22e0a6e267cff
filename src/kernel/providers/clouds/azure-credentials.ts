import { DefaultAzureCredential } from '@azure/identity';
import type { Cloud } from '../preset-parts.js';
import type { CloudCredentials } from './credentials.js';

/** A token is fetched again so long before its end. */
const marginMs = 300_000;

/** Opens the credentials of Microsoft Entra: environment, workload identity, managed identity, `az login` and the others
 * of `DefaultAzureCredential`. Keeps the token, because the library starts `az` for each. Source: Microsoft Learn,
 * "DefaultAzureCredential overview" (read 2026-11). */
export function openAzure({ audience }: Cloud, onSecret: (value: string) => void): CloudCredentials {
  const credential = new DefaultAzureCredential();
  let token: Awaited<ReturnType<typeof credential.getToken>> | null = null;
  return {
    async headers() {
      if (token === null || token.expiresOnTimestamp - Date.now() < marginMs) {
        token = await credential.getToken(audience);
        onSecret(token.token);
      }
      return { authorization: `Bearer ${token.token}` };
    },
  };
}

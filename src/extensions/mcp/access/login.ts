import type { ConfiguredServer } from '../configured-servers.js';
import { type Connection, type Sdk, unheard } from '../open-connection.js';
import { type HttpHost, httpLink, type HttpWay } from '../server-link.js';
import { type Callback, signIn, SignInNeeded, withSignIn } from './sign-in.js';

/** Has the person sign in to a server, also where an earlier sign-in still holds, and connects to it. Returns how many
 * tools it offers; null where it asks nobody for a sign-in. Rejects with a sentence for a person. */
export async function logIn(
  server: ConfiguredServer,
  way: HttpWay,
  host: HttpHost,
  callback: Callback,
): Promise<number | null> {
  const sdk = await import('@modelcontextprotocol/client');
  const { url, signIn: settings } = way;
  const { signIns } = host;
  const link = httpLink(server, way, host);
  let asked = false;
  const person = async (needed: SignInNeeded): Promise<void> => {
    asked = true;
    await signIn(sdk, { url, settings, signIns, callback, needed });
  };
  const connect = async (): Promise<Connection> => {
    await link.close();
    return await link.connect(unheard);
  };
  try {
    let connection = await withSignIn(sdk, connect, person);
    if (!asked) {
      const takesSignIns = signIns.current(url) !== null || (await namesIssuer(sdk, url));
      if (!takesSignIns) return null;
      await person(new SignInNeeded());
      connection = await withSignIn(sdk, connect, person);
    }
    return connection.tools.length;
  } finally {
    await link.close();
  }
}

/** Returns whether the server says who issues sign-ins for it, though it lets us in without one. */
async function namesIssuer(sdk: Sdk, url: string): Promise<boolean> {
  return await sdk.discoverOAuthProtectedResourceMetadata(url).then(
    ({ authorization_servers: issuers }) => (issuers ?? []).length > 0,
    () => false,
  );
}

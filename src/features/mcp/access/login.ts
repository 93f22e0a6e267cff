import { createFetch } from '../../../kernel/network/proxied.js';
import type { ConfiguredServer } from '../configured-servers.js';
import { type McpConnection, type Sdk, unheard } from '../open-connection.js';
import { type HttpHost, httpLink, type HttpWay } from '../server-link.js';
import { listenForBrowser } from './browser-return.js';
import type { SignIns } from './kept-sign-ins.js';
import { readableAnswers } from './sign-in-answers.js';
import { type Callback, signIn, SignInNeeded, withSignIn } from './sign-in.js';
import * as sdk from '@modelcontextprotocol/client';

/** Shows the user the page of a sign-in. Resolves with the address that the browser ended at if they paste it, with
 * null if they give up. `signal`: it is no longer needed. */
export type ShowPage = (page: URL, signal: AbortSignal) => Promise<URL | null>;

const longestVisitMs = 10 * 60 * 1000;

/** Signs in as `logIn` does, with a browser on this machine that comes back to a port of ours, or with a pasted
 * address. */
export async function logInHere(
  server: ConfiguredServer,
  way: HttpWay,
  host: HttpHost,
  show: ShowPage,
): Promise<number | null> {
  const tooLate = AbortSignal.timeout(longestVisitMs);
  const listener = await listenForBrowser(portsOf(host.signIns, way), () => undefined, tooLate);
  const visit = async (page: URL): Promise<URL> => {
    const over = new AbortController();
    const pasted = show(page, AbortSignal.any([over.signal, tooLate])).then((address) => {
      if (address === null) throw new Error('nobody signed in');
      return address;
    });
    try {
      return await Promise.race([listener.visit(page), pasted]);
    } finally {
      over.abort();
    }
  };
  try {
    return await logIn(server, way, host, { redirectUrl: listener.redirectUrl, visit });
  } finally {
    listener.close();
  }
}

/** The port that was registered before comes first: elsewhere the server would refuse to send the browser. */
export function portsOf(signIns: SignIns, { url, signIn: { callbackPort } }: HttpWay): readonly number[] {
  if (callbackPort !== undefined) return [callbackPort];
  const before = Number(URL.parse(signIns.current(url)?.redirect ?? '')?.port ?? 0);
  return before === 0 ? [0] : [before, 0];
}

/** Has the user sign in to a server, even if an earlier sign-in is still valid, and connects to it. Returns the number
 * of tools that it offers; null if the server needs no sign-in. Rejects with a sentence for the user. */
export async function logIn(
  server: ConfiguredServer,
  way: HttpWay,
  host: HttpHost,
  callback: Callback,
): Promise<number | null> {
  const { url, signIn: settings } = way;
  const { signIns } = host;
  const send = createFetch(host.env);
  const link = httpLink(server, way, host);
  let asked = false;
  const person = async (needed: SignInNeeded): Promise<void> => {
    asked = true;
    await signIn(sdk, { url, settings, signIns, callback, needed, send });
  };
  const connect = async (): Promise<McpConnection> => {
    await link.close();
    return await link.connect(unheard);
  };
  try {
    let connection = await withSignIn(sdk, connect, person);
    if (!asked) {
      const takesSignIns = signIns.current(url) !== null || (await namesIssuer(sdk, url, readableAnswers(send)));
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
async function namesIssuer(sdk: Sdk, url: string, send: typeof fetch): Promise<boolean> {
  return await sdk.discoverOAuthProtectedResourceMetadata(url, {}, send).then(
    ({ authorization_servers: issuers }) => (issuers ?? []).length > 0,
    () => false,
  );
}

import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server that asks for a sign-in, and who issues it, at one address each. */
export interface SigningServer {
  readonly url: string;
  /** What was asked of both, in order: `POST /token refresh_token`. */
  readonly asked: string[];
  /** The tokens that it lets in. */
  readonly valid: Set<string>;
  /** The registration that an issuer accepts tokens for. */
  issuer: string;
  /** A tool's call needs this besides. */
  wider: string;
  /** The page to sign in at, where it is not the issuer's own. */
  page: string;
  /** The sign-in that it answers to, where it is not the one that was begun. */
  answersTo: string;
  /** Whether the old token that makes a new one still counts. */
  canRenew: boolean;
  /** What the server asks for a sign-in with, where it is not the usual challenge. */
  challenge: string;
  /** Changes the metadata of the server and of the issuer. */
  resource: (metadata: object) => object;
  metadata: (metadata: object) => object;
  /** Where the metadata of the issuer is. */
  metadataPath: string;
}

interface Served {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Starts both on loopback; they end with the test. */
export async function signingServer(): Promise<SigningServer> {
  let count = 0;
  const scopes = new Map<string, string>();
  const redirects = new Map<string, string>();
  const state: SigningServer = {
    url: '',
    asked: [],
    valid: new Set(),
    issuer: '',
    wider: '',
    page: '',
    answersTo: '',
    canRenew: true,
    challenge: '',
    resource: (metadata) => metadata,
    metadata: (metadata) => metadata,
    metadataPath: '/.well-known/oauth-authorization-server',
  };
  const origin = await listening((request, body) => {
    const address = new URL(request.url ?? '', 'http://server');
    state.asked.push(`${request.method ?? ''} ${address.pathname}`);
    if (address.pathname !== '/mcp')
      return address.pathname.startsWith('/.well-known/oauth-protected-resource')
        ? { status: 200, body: state.resource({ resource: state.url, authorization_servers: [state.issuer] }) }
        : { status: 404 };
    return spoken(request, body);
  });
  const issuer = await listening((request, body, own) => {
    const address = new URL(request.url ?? '', own);
    const form = new URLSearchParams(body);
    const grant = form.get('grant_type');
    state.asked.push(`${request.method ?? ''} ${address.pathname}${grant === null ? '' : ` ${grant}`}`);
    switch (address.pathname) {
      case state.metadataPath:
        return { status: 200, body: state.metadata(metadata(own)) };
      case '/register': {
        const client = { client_id: `client-${++count}`, client_secret: `secret-of-client-${count}` };
        const asked = JSON.parse(body) as { readonly redirect_uris: readonly string[] };
        redirects.set(client.client_id, asked.redirect_uris[0] ?? '');
        return { status: 201, body: { ...asked, ...client } };
      }
      case '/authorize': {
        const back = new URL(address.searchParams.get('redirect_uri') ?? '');
        if (redirects.get(address.searchParams.get('client_id') ?? '') !== back.href) return { status: 400 };
        const code = `code-${++count}`;
        scopes.set(code, address.searchParams.get('scope') ?? '');
        back.search = new URLSearchParams({
          code,
          state: state.answersTo || (address.searchParams.get('state') ?? ''),
        }).toString();
        return { status: 302, headers: { location: back.href } };
      }
      case '/token': {
        if (grant === 'refresh_token' && !state.canRenew) return { status: 400, body: { error: 'invalid_grant' } };
        const token = `access-token-${++count}`;
        state.valid.add(token);
        const scope = scopes.get(form.get('code') ?? '') ?? '';
        if (scope !== '') scopes.set(token, scope);
        const tokens = { access_token: token, refresh_token: `refresh-token-${count}`, token_type: 'Bearer' };
        return { status: 200, body: { ...tokens, expires_in: 3600, ...(scope === '' ? {} : { scope }) } };
      }
      default:
        return { status: 404 };
    }
  });
  const metadata = (own: string): object => ({
    issuer: own,
    authorization_endpoint: state.page || `${own}/authorize`,
    token_endpoint: `${own}/token`,
    registration_endpoint: `${own}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  });
  const spoken = (request: IncomingMessage, body: string): Served => {
    if (request.method !== 'POST') return { status: 405 };
    const challenge = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    const asks = state.challenge || `Bearer ${challenge}`;
    if (!state.valid.has(token)) return { status: 401, headers: { 'www-authenticate': asks } };
    const { id, method, params } = JSON.parse(body) as {
      readonly id?: number;
      readonly method: string;
      readonly params?: { readonly protocolVersion?: string };
    };
    state.asked.push(method);
    const held = (scopes.get(token) ?? '').split(' ');
    if (method === 'tools/call' && state.wider !== '' && !held.includes(state.wider)) {
      const wider = `Bearer error="insufficient_scope", scope="${state.wider}", ${challenge}`;
      return { status: 403, headers: { 'www-authenticate': wider } };
    }
    if (id === undefined) return { status: 202 };
    const answers: Readonly<Record<string, unknown>> = {
      initialize: {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'signing', version: '1' },
      },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'let in' }] },
    };
    const result = answers[method];
    const error = { code: -32601, message: 'unknown method' };
    return { status: 200, body: { jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) } };
  };
  return Object.assign(state, { url: `${origin}/mcp`, issuer });
}

async function listening(serve: (request: IncomingMessage, body: string, own: string) => Served): Promise<string> {
  let own = '';
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { status, headers, body } = serve(request, Buffer.concat(chunks).toString(), own);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(body === undefined ? '' : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  own = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  return own;
}

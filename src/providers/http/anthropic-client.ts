import { BaseAnthropic } from '@anthropic-ai/sdk/client';
import { answerOf, clientOptions, type Connect } from './client.js';

/** Posts through `@anthropic-ai/sdk`. `BaseAnthropic` is the client without the resource classes, which are most of the
 * package. It reads no key and no address from the environment. The SDK's default is the API version 2026-10-21, which
 * sends the key as a bearer token; the preset asks for 2023-06-01, which every gateway and every model knows and which
 * sends it as `x-api-key`. Source: platform.claude.com, API overview, "Authentication" and "Versions". */
export const connectAnthropic: Connect = (endpoint, path, send) => {
  const options = clientOptions(endpoint, path, send);
  const client = new BaseAnthropic({
    ...options,
    webhookKey: null,
    openTelemetry: false,
    defaultHeaders: { ...options.defaultHeaders, 'X-Api-Key': endpoint.key, Authorization: null },
  });
  return (body, signal) => answerOf(client.post(path, { body, signal, stream: true }).asResponse());
};

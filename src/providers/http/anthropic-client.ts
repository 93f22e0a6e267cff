import { BaseAnthropic } from '@anthropic-ai/sdk/client';
import { answerOf, clientOptions, type Connect } from './client.js';

/** Posts through `@anthropic-ai/sdk`. `BaseAnthropic` is the client without the resource classes, which are most of the
 * package. Nothing is read from the environment but what `endpoint` holds. The SDK's default is the API version
 * 2026-10-21, whose key goes as a bearer token; the preset asks for 2023-06-01, which every gateway and every model
 * knows, and there the key is `x-api-key`.
 * Source: platform.claude.com, API overview, "Authentication" and "Versions". */
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

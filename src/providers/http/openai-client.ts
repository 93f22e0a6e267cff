import { OpenAI } from 'openai';
import { answerOf, clientOptions, type Connect } from './client.js';

/** Posts through the `openai` package: it makes the URL, the authorization and the protocol's headers. Everything
 * OpenAI-compatible goes this way. Nothing is read from the environment but what `endpoint` holds. */
export const connectOpenAi: Connect = (endpoint, path, send) => {
  const options = clientOptions(endpoint, path, send);
  const client = new OpenAI({
    ...options,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    defaultHeaders: { ...options.defaultHeaders, ...(endpoint.key === null ? { Authorization: null } : {}) },
  });
  return (body, signal) => answerOf(client.post(path, { body, signal, stream: true }).asResponse());
};

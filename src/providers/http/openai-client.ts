import { OpenAI } from 'openai';
import { answerOf, clientOptions, type Connect } from './client.js';

/** Posts through the `openai` package, which makes the URL, the authorization and the protocol's headers. It serves
 * every OpenAI-compatible server. It reads no key and no address from the environment. */
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

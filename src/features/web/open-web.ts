import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { type ApiRule, apiCallTool } from './api-call.js';
import { fetchTool } from './fetch-tool.js';
import { withoutProxies } from '../../kernel/network/proxies.js';
import { createRequester, type RequesterOptions } from './guarded-request.js';

export interface WebOptions extends Pick<RequesterOptions, 'resolve' | 'exchange'> {
  /** `web.allow_domains` and `web.allow_local`. */
  readonly allowDomains: readonly string[];
  readonly allowLocal: readonly string[];
  /** `web.api.allow`. */
  readonly api: readonly ApiRule[];
  /** `web.proxy`: whether the proxies of the environment are used. */
  readonly proxy: 'env' | 'none';
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `model_output_size`. */
  readonly modelOutputBytes: number;
  /** The program that converts large pages and PDFs: the built one unless given. */
  readonly worker?: URL;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Makes `web_fetch` and `api_call`. Both reach public addresses alone, unless somebody says yes to another. */
export function webTools(options: WebOptions): readonly DefinedTool[] {
  const { proxy, env, api } = options;
  const request = createRequester({ ...options, env: proxy === 'env' ? env : withoutProxies(env) });
  return [fetchTool({ ...options, request }), apiCallTool({ ...options, request, rules: api })];
}

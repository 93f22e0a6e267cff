import { basename } from 'node:path';
import type { RunHost } from '../../kernel/console/feature.js';
import type { ExpansionCall } from '../../kernel/core/session-port.js';
import { mostFileBytes } from '../../kernel/core/files/attached-formats.js';
import type { Tool, ToolOutcome } from '../../kernel/core/tool.js';
import { withoutProxies } from '../../kernel/network/proxies.js';
import { inTestMode, inToolset } from '../../kernel/tools/builtin.js';
import { type DefinedTool, defineTool, succeeded } from '../../kernel/tools/define-tool.js';
import { WebRefusal } from '../../kernel/tools/web-refusal.js';
import { hostOf } from './addresses.js';
import { fetchAnswer } from './fetch-page.js';
import { addressProblem, defaultTimeoutMs, inTime, refused } from './fetch-tool.js';
import { createRequester, type Requester } from './guarded-request.js';
import { judgeImage, type JudgeOptions } from './known-hosts.js';

const schema = {
  type: 'object',
  properties: { url: { type: 'string' } },
  required: ['url'],
  additionalProperties: false,
} as const;

interface ImageToolOptions extends JudgeOptions {
  readonly request: Requester;
}

/** Makes the tool that loads an image for a message. It has the name of the tool that reads pages, so that the rules for
 * hosts apply to both; no model is offered it. */
function imageTool(options: ImageToolOptions): DefinedTool {
  return defineTool({
    name: 'web_fetch',
    effect: 'network',
    limits: { timeout_ms: defaultTimeoutMs },
    description: 'Loads an image for a message.',
    schema,
    check: ({ url }) => addressProblem(url),
    judge: ({ url }, { session }) => judgeImage(new URL(url), session.events(), options),
    run: async (args, ctx) => {
      const url = new URL(args.url);
      try {
        return await inTime(ctx, url, async (signal) => await loadImage(url, { ...options, signal }));
      } catch (error) {
        return await refused(error, ctx, url);
      }
    },
  });
}

const wanted = { accept: 'image/png, image/jpeg, image/webp, image/gif, application/pdf', maxBytes: mostFileBytes };

async function loadImage(
  start: URL,
  options: ImageToolOptions & { readonly signal: AbortSignal },
): Promise<ToolOutcome> {
  const { url, answer } = await fetchAnswer(start, wanted, options);
  const { body, cut, headers, status } = answer;
  const name = basename(url.pathname) || hostOf(url);
  if (status >= 400) throw new WebRefusal('execution_failed', `${url.host} answered ${status}.`, { status });
  if (cut) throw new WebRefusal('execution_failed', `${name} has over ${mostFileBytes} bytes, which is not attached.`);
  const type = (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  const outcome = succeeded(`${name}, ${body.length} bytes`, { output: '', url: url.href, bytes: body.length });
  // Its bytes decide what it is; another kind of file is refused as an image.
  const mediaType = type.startsWith('image/') ? type : 'image/unknown';
  return { ...outcome, attachments: [{ name, bytes: body, mediaType }] };
}

/** Returns the calls that load these images. */
export function imageCalls(
  urls: readonly string[],
  { config, env, testMode }: Pick<RunHost['settings'], 'config' | 'env' | 'testMode'>,
  toolset: Tool['toolset'],
): readonly ExpansionCall[] {
  const { allowDomains, allowLocal, proxy } = config.web;
  const request = createRequester({ env: proxy === 'env' ? env : withoutProxies(env) });
  const tools = inToolset(toolset, [imageTool({ allowDomains, allowLocal, request })]);
  return (testMode ? inTestMode(tools) : tools).flatMap((tool) =>
    urls.map((url) => ({ name: tool.name, arguments: JSON.stringify({ url }), tool })),
  );
}

import { JsonMetricsSerializer, JsonTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Log } from '../../kernel/core/runtime.js';
import { secureOptions } from '../../kernel/network/authorities.js';
import { createFetch } from '../../kernel/network/proxied.js';
import { type NetworkEnvironment, proxyFor } from '../../kernel/network/proxies.js';
import type { ObservedSession } from '../../kernel/console/feature.js';
import { createFollower } from './followed-session.js';
import http from 'node:http';
import https from 'node:https';

/** The destination of spans and figures. */
export interface CollectorOptions {
  /** The base of OTLP over HTTP: `http://localhost:4318`. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly contents: boolean;
  readonly version: string;
  /** Gets one message if nothing reaches the collector. */
  readonly log: Log;
  /** Names the proxies and authorities. */
  readonly env: NetworkEnvironment;
}

/** Spans and figures of the sessions of a run, on their way to a collector. */
export interface Telemetry {
  /** Follows a session until the function that it returns is called. */
  follow(followed: ObservedSession): () => void;
  /** Sends what is left, for a second at most. Never rejects. */
  close(): Promise<void>;
}

const longestExportMs = 10_000;
const betweenSpansMs = 5000;
const betweenFiguresMs = 60_000;
const longestCloseMs = 1000;

/** Opens the way to a collector. Connects with the first spans; nothing waits for them to arrive, and what does not is
 * given up. Source: OTLP 1.7.0, "OTLP/HTTP", in JSON. */
export function openCollector(options: CollectorOptions): Telemetry {
  const resource = resourceFromAttributes({ 'service.name': 'agent', 'service.version': options.version });
  const send = createSender(options);
  const exporting = { exportTimeoutMillis: longestExportMs };
  const tracing = new TracerProvider({
    resource,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: exporterOf((spans) => send('/v1/traces', JsonTraceSerializer.serializeRequest(spans))),
        scheduledDelayMillis: betweenSpansMs,
        ...exporting,
      }),
    ],
  });
  const metering = new MeterProvider({
    resource,
    readers: [
      new PeriodicExportingMetricReader({
        exporter: exporterOf((metrics) => send('/v1/metrics', JsonMetricsSerializer.serializeRequest(metrics))),
        exportIntervalMillis: betweenFiguresMs,
        ...exporting,
      }),
    ],
  });
  const { contents, version } = options;
  const follow = createFollower({
    tracer: tracing.getTracer('agent', version),
    meter: metering.getMeter('agent', version),
    now: () => performance.now(),
    contents,
  });
  return {
    follow,
    close: async () => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, longestCloseMs);
      });
      await Promise.race([Promise.allSettled([tracing.shutdown(), metering.shutdown()]), late]);
      clearTimeout(timer);
    },
  };
}

type Send = (path: string, body: Uint8Array | undefined) => Promise<Error | null>;

/** Posts what it is given. A collector that is gone is written down once. */
function createSender({ endpoint, headers, log, env }: CollectorOptions): Send {
  const throughProxies = createFetch(env);
  const base = endpoint.replace(/\/+$/, '');
  let isSaid = false;
  const failed = (message: string): Error => {
    if (!isSaid) log({ at: 'telemetry', message: 'the collector accepted nothing', endpoint: base, error: message });
    isSaid = true;
    return new Error(message);
  };
  return async (path, body) => {
    try {
      const posted: Posted = {
        url: new URL(base + path),
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(longestExportMs),
      };
      const status = proxyFor(posted.url, env) ? await postThrough(posted, throughProxies) : await post(posted, env);
      return status < 300 ? null : failed(`it answered ${status}`);
    } catch (error) {
      return failed(error instanceof Error ? error.message : String(error));
    }
  };
}

async function postThrough({ url, headers, body, signal }: Posted, send: typeof fetch): Promise<number> {
  const answer = await send(url, {
    method: 'POST',
    headers,
    signal,
    body: body === undefined ? null : Buffer.from(body),
  });
  await answer.body?.cancel();
  return answer.status;
}

interface Posted {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly signal: AbortSignal;
}

/** Returns the status of the answer. Rejects with the system's error. `fetch` would take four times as long to load. */
async function post({ url, headers, body, signal }: Posted, env: NetworkEnvironment): Promise<number> {
  const isSecure = url.protocol === 'https:';
  const { request } = isSecure ? https : http;
  return await new Promise((resolve, reject) => {
    const options = { method: 'POST', headers, signal, ...(isSecure ? secureOptions(env) : {}) };
    const sent = request(url, options, (response) => {
      response.on('error', reject).resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject).end(body);
  });
}

/** The port through which the packages send. Code 0 means done, 1 failed. */
function exporterOf<Items>(send: (items: Items) => Promise<Error | null>) {
  return {
    export: (items: Items, done: (result: { code: 0 | 1; error?: Error }) => void) => {
      void send(items).then((error) => {
        done(error ? { code: 1, error } : { code: 0 });
      });
    },
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
}

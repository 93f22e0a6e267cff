import type { CollectorOptions, Telemetry } from './collector.js';
import { openCollector } from './collector.js';

export interface TelemetryOptions extends Pick<CollectorOptions, 'version' | 'log'> {
  readonly telemetry: {
    /** `env`: the one of `OTEL_EXPORTER_OTLP_ENDPOINT`; null: none. */
    readonly otlpEndpoint: string | null;
    /** The variable with the headers. */
    readonly headersEnv: string;
    readonly contents: boolean;
  };
  readonly env: NodeJS.ProcessEnv;
}

/** Opens telemetry of the sessions of a run, if the user has named a collector. Otherwise its code is not loaded. */
export async function openTelemetry(
  { telemetry, env, log, version }: TelemetryOptions,
  notify: (message: string, code: string) => void,
): Promise<Telemetry | null> {
  const refuse = (why: string): null => {
    notify(`telemetry.${why}: nothing is sent.`, 'telemetry');
    return null;
  };
  const { otlpEndpoint: named, headersEnv, contents } = telemetry;
  // The variable alone is meant for other programs: the user says once that it counts here.
  const endpoint = named === 'env' ? (env['OTEL_EXPORTER_OTLP_ENDPOINT'] ?? '') : (named ?? '');
  if (endpoint === '') return null;
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    return refuse(`otlp_endpoint: ${JSON.stringify(endpoint)} is not an http(s) address`);
  const headers = headersIn(env[headersEnv] ?? '');
  if (headers === null) return refuse(`headers_env: ${headersEnv} is not name=value,name=value`);
  return openCollector({ endpoint: new URL(endpoint).href, headers, contents, version, log, env });
}

/** Reads headers as OpenTelemetry writes them; null where they are not. Source: W3C Baggage, without properties. */
function headersIn(text: string): Readonly<Record<string, string>> | null {
  const headers: Record<string, string> = {};
  for (const pair of text.split(',').filter((part) => part.trim() !== '')) {
    const [, name, value = ''] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*([\x20-\x7e]*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || /%(?![\dA-Fa-f]{2})/.test(value)) return null;
    headers[name] = value.replaceAll(/%[\dA-Fa-f]{2}/g, (code) => String.fromCharCode(parseInt(code.slice(1), 16)));
  }
  return headers;
}

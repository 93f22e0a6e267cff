import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { isRecord } from '../../../src/kernel/core/json.js';

type Fields = Readonly<Record<string, unknown>>;

export interface SeenSpan {
  readonly name: string;
  readonly id: string;
  readonly parent: string | null;
  readonly trace: string;
  readonly attributes: Fields;
  readonly failed: boolean;
}

export interface SeenFigure {
  readonly name: string;
  readonly attributes: Fields;
  /** Of a counter its value, of a histogram its sum. */
  readonly value: number;
}

/** A collector that speaks OTLP over HTTP, in JSON, as its document has it. `answers`: false: it takes requests and
 * never answers. */
export async function triedCollector(answers = true) {
  const bodies: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: unknown }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
      bodies.push({ path: request.url ?? '', headers: request.headers, body });
      if (answers) response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  const below = (path: string, ...names: readonly string[]): readonly Fields[] =>
    names.reduce<readonly Fields[]>(
      (all, name) => all.flatMap((one) => [one[name]].flat().filter(isRecord)),
      bodies.filter((one) => one.path === path).map(({ body }) => body as Fields),
    );
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close,
    bodies,
    resources: () => below('/v1/traces', 'resourceSpans', 'resource').map(attributesOf),
    spans: (): readonly SeenSpan[] =>
      below('/v1/traces', 'resourceSpans', 'scopeSpans', 'spans').map((span) => ({
        name: String(span['name']),
        id: String(span['spanId']),
        parent: typeof span['parentSpanId'] === 'string' ? span['parentSpanId'] : null,
        trace: String(span['traceId']),
        attributes: attributesOf(span),
        failed: isRecord(span['status']) && span['status']['code'] === 2,
      })),
    figures: (): readonly SeenFigure[] =>
      below('/v1/metrics', 'resourceMetrics', 'scopeMetrics', 'metrics').flatMap((metric) =>
        [metric['sum'], metric['histogram']]
          .filter(isRecord)
          .flatMap((data) => data['dataPoints'])
          .filter(isRecord)
          .map((point) => ({
            name: String(metric['name']),
            attributes: attributesOf(point),
            value: Number(point['asDouble'] ?? point['asInt'] ?? point['sum']),
          })),
      ),
  };
}

function attributesOf({ attributes }: Fields): Fields {
  const pairs = [attributes].flat().filter(isRecord);
  return Object.fromEntries(pairs.map(({ key, value }) => [String(key), valueOf(value)]));
}

function valueOf(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const [kind, held] = Object.entries(value)[0] ?? [];
  if (kind === 'arrayValue' && isRecord(held)) return [held['values']].flat().map(valueOf);
  return kind === 'intValue' ? Number(held) : held;
}

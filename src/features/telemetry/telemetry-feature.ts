import type { Feature } from '../../kernel/console/feature.js';
import { version } from '../../kernel/console/version.js';

/** Spans and figures of sessions for a collector (OpenTelemetry). */
export const telemetry: Feature = {
  name: 'telemetry',
  openRun: async ({ settings, notify }) => {
    const { config, env, log } = settings;
    if (config.telemetry.otlpEndpoint === null) return null;
    const { openTelemetry } = await import('./open-telemetry.js');
    return await openTelemetry({ telemetry: config.telemetry, env, log, version }, notify);
  },
};

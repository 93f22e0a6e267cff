import { type UsageSum, noUsage, addUsage } from '../core/usage-totals.js';
import type { AgentEvent } from '../core/session-port.js';

/** Sums up the usage in the events. `see` returns true for an answer whose usage was not reported: the cost is then
 * unknown. */
export function createUsageMeter(): { readonly see: (event: AgentEvent) => boolean; readonly sum: () => UsageSum } {
  let sum = noUsage;
  let owed = false;
  return {
    see(event) {
      if (event.type === 'request_started') owed = true;
      if (event.type !== 'event') return false;
      const { kind } = event.event;
      const unreported = owed && (kind === 'assistant' || kind === 'tool_call');
      if (kind === 'usage' || unreported) owed = false;
      sum = unreported ? { ...sum, cost_usd: null } : addUsage(sum, event.event);
      return unreported;
    },
    sum: () => sum,
  };
}

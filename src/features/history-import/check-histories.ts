import type { DoctorCheck } from '../../kernel/console/command.js';
import { ok } from '../../kernel/console/doctor-check.js';
import type { CheckHost } from '../../kernel/console/feature.js';
import { offeredHistories } from './offered-histories.js';

const maxCountMs = 200;

/** Returns how many conversations of other programs could be imported. */
export async function checkHistories(host: CheckHost): Promise<readonly DoctorCheck[]> {
  const offer = await offeredHistories(host, maxCountMs);
  if (offer === null) return [];
  return [{ ...ok('histories', offer.counts), fix: `${offer.command} makes them searchable here.` }];
}

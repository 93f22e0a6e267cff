import { countingPlaces, type TrustedHere } from '../../kernel/config/project.js';

/** Offers agents where the user or a trusted project has files of some, unless `--tools` (`chosen`) speaks against
 * it. */
export async function offerAgents(
  settings: TrustedHere,
  chosen: string | boolean | undefined,
  offer: (names: readonly string[]) => Promise<void>,
): Promise<void> {
  if (chosen === false || (typeof chosen === 'string' && !/^\s*[+-]/.test(chosen))) return;
  if (typeof chosen === 'string' && /-\s*agents?\s*(?:,|$)/.test(chosen)) return;
  const places = await countingPlaces(settings, 'agents');
  if (places.length === 0) return;
  const { hasAgents } = await import('./roles.js');
  if (hasAgents(places)) await offer(['agent']);
}

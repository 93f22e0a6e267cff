import {
  type ImportHost,
  type ImportKind,
  importKinds,
  type ImportPlan,
  importPrograms,
  programTitles,
} from '../kernel/console/importer.js';
import type { Settings } from '../kernel/console/run-settings.js';
import { features } from './features.js';
import { instructionImporter } from './settings-import/plan-instruction-import.js';
import { statusLineImporter } from './settings-import/plan-status-line-import.js';
import { styleImporter } from './settings-import/plan-style-import.js';
import { permissionImporter } from './settings-import/plan-permission-import.js';

/** Reads what can be imported, in the order of the kinds. Writes nothing. */
export async function planImport(host: ImportHost, kinds: readonly ImportKind[]): Promise<readonly ImportPlan[]> {
  const ofFeatures = await Promise.all(features.map(async (feature) => (await feature.importers?.()) ?? []));
  const ofProgram = [permissionImporter, instructionImporter, statusLineImporter, styleImporter];
  const importers = [...ofFeatures.flat(), ...ofProgram];
  const plans: ImportPlan[] = [];
  for (const kind of importKinds.filter((one) => kinds.includes(one)))
    for (const importer of importers.filter((one) => one.kind === kind))
      for (const plan of await importer.plan(host)) plans.push(plan);
  return plans;
}

/** The words for one and for several things of a kind. */
export const kindWords: Readonly<Record<ImportKind, readonly [one: string, several: string]>> = {
  mcp: ['MCP server', 'MCP servers'],
  skills: ['skill', 'skills'],
  commands: ['command', 'commands'],
  agents: ['sub-agent', 'sub-agents'],
  hooks: ['hook', 'hooks'],
  permissions: ['permission rule', 'permission rules'],
  instructions: ['file of instructions', 'files of instructions'],
  status_line: ['status line', 'status lines'],
  output_styles: ['output style', 'output styles'],
  sessions: ['conversation', 'conversations'],
};

/** Counts what can be imported, and passes on what the user is offered. Never rejects. */
export async function countFiles(settings: Settings, onOffer: (offer: string) => void): Promise<void> {
  try {
    const offer = offerText(await planImport({ settings, programs: importPrograms, line: null }, importKinds));
    if (offer !== null) onOffer(offer);
  } catch (error) {
    settings.log({ at: 'import', message: 'files of other programs could not be counted', error: String(error) });
  }
}

/** Returns `Found 2 skills and 412 conversations of Claude Code. To copy them, run agent import.`; null for nothing. */
function offerText(plans: readonly ImportPlan[]): string | null {
  const open = plans.map(({ source }) => source).filter(({ take }) => take > 0);
  const counts = importKinds.flatMap((kind) => {
    const count = open.filter((source) => source.kind === kind).reduce((sum, { take }) => sum + take, 0);
    return count === 0 ? [] : [`${count} ${kindWords[kind][count === 1 ? 0 : 1]}`];
  });
  if (counts.length === 0) return null;
  const titles = [...new Set(open.map(({ program }) => programTitles[program]))];
  const total = open.reduce((sum, { take }) => sum + take, 0);
  return `Found ${joinWords(counts)} of ${joinWords(titles)}. To copy ${total === 1 ? 'it' : 'them'}, run agent import.`;
}

/** `a, b and c`. */
function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}

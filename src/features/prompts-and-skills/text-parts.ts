import { type Here, type ProjectPart, projectPlaces } from '../../kernel/config/project.js';
import { loadTexts } from './load-texts.js';

/** Returns the commands and skills of a project. */
export async function textParts(here: Here): Promise<readonly ProjectPart[]> {
  const [commands, skills] = [projectPlaces(here, 'commands'), projectPlaces(here, 'skills')];
  if (commands.length + skills.length === 0) return [];
  const { partsOf } = await loadTexts();
  return partsOf({ commands, skills });
}

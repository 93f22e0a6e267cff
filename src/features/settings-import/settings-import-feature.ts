import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./settings-import-code.js');

/** Imports what other programs have in their settings and instructions. */
export const settingsImport: Feature = {
  name: 'settings-import',
  importers: async () => {
    const { instructionImporter, statusLineImporter, styleImporter } = await load();
    return [instructionImporter, statusLineImporter, styleImporter];
  },
};

import { dirname, join } from 'node:path';
import { filesIn } from '../../kernel/config/found-files.js';
import { markdownText } from '../../kernel/config/front-matter.js';
import { createFileImport } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  planSource,
  skipItem,
} from '../../kernel/console/importer.js';
import { foldersOfProgram, isReadInPlace } from '../../kernel/console/program-folders.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';

/** Imports output styles of Claude Code into `output-styles` of the user. */
export const styleImporter: Importer = { kind: 'output_styles', plan: (host) => Promise.resolve(planStyles(host)) };

const maxBytes = 256 * 1024;

function planStyles({ settings, programs }: ImportHost): readonly ImportPlan[] {
  if (!programs.includes('claude-code')) return [];
  const files = createFileImport(settings, 'output-styles');
  return foldersOfProgram('claude-code', settings).flatMap(({ folder: above, scope }): readonly ImportPlan[] => {
    const folder = join(above, 'output-styles');
    const found = filesIn({ folder, origin: 'user', root: null }, ({ path, isFolder }) =>
      !isFolder && path.endsWith('.md') ? path : null,
    );
    const inPlace = scope === 'project' || isReadInPlace(dirname(folder), settings);
    const items = found.map(({ path, name }): ImportItem => {
      if (inPlace) return { name, state: 'exists' };
      const style = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
      if (style.kind !== 'read') return skipItem(name, style.kind === 'missing' ? 'it is gone' : style.reason);
      return files.item({ name, file: name, text: markdownText(style.bytes) });
    });
    return items.length === 0
      ? []
      : [planSource({ program: 'claude-code', kind: 'output_styles', path: folder, scope }, items)];
  });
}

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensurePrivateDirectory } from '../../config/locations.js';
import { runInteractive } from '../../tools/process/start-child.js';
import type { Setup } from '../setup.js';

/** Edits `text` in `$VISUAL` or `$EDITOR` (else vi), in a private file; null where the editor failed or left the text
 * as it was. */
export async function editExternally(setup: Setup, text: string): Promise<string | null> {
  const [file = 'vi', ...args] = (setup.env.VISUAL || setup.env.EDITOR || 'vi')
    .split(/\s+/)
    .filter((word) => word !== '');
  ensurePrivateDirectory(setup.config.files.data);
  const folder = await mkdtemp(join(setup.config.files.data, 'edit-'));
  try {
    const path = join(folder, 'message.md');
    await writeFile(path, text, { mode: 0o600 });
    if ((await runInteractive(file, [...args, path], setup.cwd)) !== 0) return null;
    const edited = (await readFile(path, 'utf8')).replace(/\n$/, '');
    return edited === text ? null : edited;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tree } from '../kernel/tools/workbench.js';
import { lineRig } from './line-rig.js';

const fixtures = fileURLToPath(new URL('../../fixtures/brought/import/codex', import.meta.url));

/** Answers the questions of an import from Codex. Returns what was made. */
async function answered(
  ...answers: readonly string[]
): Promise<{ readonly out: string; readonly made: readonly string[] }> {
  const root = tree({ 'work/x': '' });
  cpSync(fixtures, root, { recursive: true });
  mkdirSync(join(root, 'work/.git'));
  const at = { home: join(root, 'home'), cwd: join(root, 'work'), own: join(root, 'own') };
  const { code, out, err } = await (await lineRig(answers, at)).run('import', '--from', 'codex');
  expect([code, err]).toEqual([0, '']);
  return { out, made: existsSync(at.own) ? readdirSync(at.own).toSorted() : [] };
}

test('one answer takes everything that was listed', async () => {
  const { out, made } = await answered('y');
  expect(made).toEqual(['agents', 'commands', 'config.json', 'hooks.json', 'mcp.json', 'skills']);
  const [found, copied] = [out.indexOf('to copy'), out.indexOf('copied')];
  expect([found >= 0, copied > found]).toEqual([true, true]);
  expect(out.match(/skipped: creator/g)).toHaveLength(1);
});

test('kind by kind takes what is answered with yes', async () => {
  expect((await answered('k', 'n', 'y', 'yes', 'n', '', 'n')).made).toEqual(['commands', 'skills']);
});

test.each(['n', '', 'maybe'])('the answer "%s" takes nothing', async (answer) => {
  expect((await answered(answer)).made).toEqual([]);
});

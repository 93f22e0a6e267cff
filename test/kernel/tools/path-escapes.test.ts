import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { context, envelopeOf, tree } from './workbench.js';

interface Step {
  readonly op: string;
  readonly path: string;
  readonly content?: string;
  readonly target?: string;
  readonly mode?: string;
}
interface Case {
  readonly id: string;
  readonly tool: string;
  readonly requested: string;
  readonly verdict: string;
  readonly setup: readonly Step[];
  readonly outside_unchanged?: boolean;
  readonly skip_if_root?: boolean;
  readonly must_not_match?: readonly string[];
}

/** Rows that a tool decides by itself; where a path may lead is policy's to say. */
const own = /^(?:plain-(?!08|19)|hard-|spec-|grep-0[24]|sym-12|race-)/;

function prepare(root: string, steps: readonly Step[]): void {
  const places: Readonly<Record<string, string>> = {
    '{ws}': join(root, 'work'),
    '{out}': join(root, 'outside'),
    '{home}': join(root, 'home'),
  };
  const filled = (text = ''): string => text.replace(/\{\w+\}/g, (name) => places[name] ?? name);
  for (const step of steps) {
    const path = filled(step.path);
    mkdirSync(step.op === 'mkdir' ? path : dirname(path), { recursive: true });
    if (step.op === 'file') writeFileSync(path, step.content ?? '');
    if (step.op === 'symlink') symlinkSync(filled(step.target), path);
    if (step.op === 'hardlink') linkSync(filled(step.target), path);
    if (step.op === 'chmod') chmodSync(path, Number.parseInt(step.mode ?? '', 8));
  }
}

function snapshot(folder: string): unknown {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const stats = statSync(join(folder, name));
      return [
        name,
        stats.isFile() ? readFileSync(join(folder, name), 'utf8') : '',
        stats.ino,
        stats.isFile() ? stats.mtimeMs : 0,
      ];
    });
}

function argumentsOf(one: Case, requested: string): [string, Record<string, string>] {
  if (one.tool === 'grep')
    return [
      'grep',
      Object.fromEntries(
        requested.split(' ').map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
      ),
    ];
  if (one.tool === 'edit') return ['file_edit', { path: requested, old_string: 'OUTSIDE', new_string: 'inside' }];
  return one.tool === 'file_write'
    ? ['file_write', { path: requested, content: 'new' }]
    : ['file_read', { path: requested }];
}

test('paths made to escape or to hang get the verdict of the fixtures, and nothing outside changes', async () => {
  const url = new URL('../../../fixtures/security/path-escapes.json', import.meta.url);
  const fixtures = JSON.parse(readFileSync(url, 'utf8')) as {
    readonly _meta: { readonly base_setup: readonly Step[] };
    readonly cases: readonly Case[];
  };
  const wrong: string[] = [];
  let run = 0;
  for (const one of fixtures.cases) {
    if (!own.test(one.id) || (one.skip_if_root && process.getuid?.() === 0)) continue;
    run++;
    const root = tree();
    prepare(root, [...fixtures._meta.base_setup, ...one.setup]);
    const before = snapshot(join(root, 'outside'));
    const [name, args] = argumentsOf(
      one,
      one.requested.replaceAll('{ws}', join(root, 'work')).replaceAll('{out}', join(root, 'outside')),
    );
    const envelope = await envelopeOf(name, args, context(join(root, 'work')));
    const allowed = !('error' in envelope);
    if (one.verdict !== 'deny-or-inside' && allowed !== (one.verdict === 'allow'))
      wrong.push(`${one.id}: ${JSON.stringify(envelope).slice(0, 200)}`);
    for (const text of one.must_not_match ?? [])
      if (JSON.stringify(envelope).includes(text)) wrong.push(`${one.id}: found ${text}`);
    if (one.outside_unchanged) expect(snapshot(join(root, 'outside'))).toEqual(before);
  }
  console.log(`path-escapes: ${run} run, ${fixtures.cases.length - run} skipped`);
  expect(wrong).toEqual([]);
});

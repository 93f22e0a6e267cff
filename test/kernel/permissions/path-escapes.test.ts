import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createPathFacts } from '../../../src/app/open-policy.js';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import { toolCall } from './calls.js';
import { defaultDeny, readFixture } from './judging.js';

interface Step {
  readonly op: string;
  readonly path: string;
  readonly content?: string;
  readonly target?: string;
}
interface Case {
  readonly id: string;
  readonly tool: string;
  readonly requested: string;
  readonly verdict: string;
  readonly setup: readonly Step[];
  readonly why: string;
}
interface Fixture {
  readonly _meta: { readonly base_setup: readonly Step[] };
  readonly cases: readonly Case[];
}

const fixture = readFixture('path-escapes.json') as Fixture;
const mine = fixture.cases.filter(({ id }) => /^(?:sym|prot|secret|prefix)-/.test(id));
function build(steps: readonly Step[], fill: (text: string) => string): void {
  for (const { op, path, content, target } of steps) {
    const place = fill(path);
    mkdirSync(dirname(place), { recursive: true });
    if (op === 'mkdir') mkdirSync(place, { recursive: true });
    else if (op === 'file') writeFileSync(place, content ?? '');
    else if (op === 'symlink') symlinkSync(fill(target ?? ''), place);
    else throw new Error(`a step that this test does not know: ${op}`);
  }
}

describe('path escapes in safe mode', () => {
  test.each(mine)('$id $tool $requested: $verdict', async ({ tool, requested, verdict, setup }) => {
    const root = realpathSync(mkdtempSync(join(tmpdir(), 'escape-')));
    try {
      const places: Readonly<Record<string, string>> = {
        root,
        ws: join(root, 'work'),
        out: join(root, 'outside'),
        home: join(root, 'home'),
        WS_UPPER: join(root, 'WORK'),
      };
      const fill = (text: string): string => text.replace(/\{(\w+)\}/g, (whole, name: string) => places[name] ?? whole);
      build([...(fixture._meta.base_setup ?? []), ...setup], fill);
      const home = join(root, 'home');
      const workspace = join(root, 'work');
      const facts = createPathFacts({ home, workspace, ownPaths: [join(home, '.config', 'agent')] });
      const policy = createPolicy({ approval: 'mutating', sandbox: 'workspace', facts, fsDeny: defaultDeny });
      const effect = /write|edit/.test(tool) ? 'write' : 'read';
      const { decision } = await policy.assess(toolCall(tool, effect, { path: fill(requested) }), workspace);
      expect(decision).toBe(verdict === 'allow' ? 'allow' : 'ask');
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});

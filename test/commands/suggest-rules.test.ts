import { expect, test } from 'vitest';
import { type AskedCall, type Suggestions, suggestRules } from '../../src/commands/audit.js';
import { classifyShell } from '../../src/kernel/permissions/shell/verdict.js';
import { context } from '../kernel/permissions/judging.js';

let time = 1_800_000_000_000;

/** Command lines the person was asked about, each so many times. */
function asked(lines: Readonly<Record<string, number>>, allowed = true): readonly AskedCall[] {
  return Object.entries(lines).flatMap(([command, times]) =>
    Array.from({ length: times }, (_, index) => ({
      tool: 'bash',
      command,
      cwd: context.workspace,
      sessionId: `s${index % 2}`,
      createdAt: time++,
      allowed,
    })),
  );
}

function suggest(...calls: readonly (readonly AskedCall[])[]): Suggestions {
  return suggestRules(calls.flat(), (command, cwd) => classifyShell(command, { ...context, cwd }), 3);
}

function argvs(suggestions: Suggestions): readonly string[] {
  return suggestions.proposed.map(({ rule }) => (rule.argv ?? []).join(' '));
}

test('what was allowed three times is proposed, by the longest leading words that hold for it', () => {
  const first = time;
  expect(suggest(asked({ 'git push origin main': 4 })).proposed).toEqual([
    {
      rule: { tool: 'bash', argv: ['git', 'push', 'origin', 'main'] },
      allowed: 4,
      sessions: 2,
      firstAt: first,
      lastAt: first + 3,
      example: 'git push origin main',
    },
  ]);
  expect(
    argvs(suggest(asked({ 'git push origin one': 1, 'git push origin two': 1, 'git push origin three': 1 }))),
  ).toEqual(['git push origin']);
  expect(
    argvs(suggest(asked({ 'git push origin one': 3, 'git push origin two': 1, 'git push origin three': 1 }))),
  ).toEqual(['git push origin one']);
  expect(argvs(suggest(asked({ 'npm publish': 2 })))).toEqual([]);
});

test('one denial is enough to propose nothing that would allow it', () => {
  const pushes = asked({ 'git push origin one': 2, 'git push origin two': 3 });
  expect(argvs(suggest(pushes))).toEqual(['git push origin two']);
  expect(argvs(suggest(pushes, asked({ 'git push origin two --force': 1 }, false)))).toEqual([]);
  expect(argvs(suggest(pushes, asked({ 'git fetch && git push origin "$BRANCH"': 1 }, false)))).toEqual([
    'git push origin two',
  ]);
  expect(
    argvs(
      suggest(
        asked({ 'git push origin one': 2, 'git push origin two': 2 }),
        asked({ 'git push origin three': 1 }, false),
      ),
    ),
  ).toEqual([]);
});

test('interpreters and wrappers are never proposed, and it is said why', () => {
  const found = suggest(
    asked({
      'sudo systemctl restart nginx': 3,
      'python3 -c "import shutil; shutil.rmtree(\'x\')"': 3,
      'npx publish-it': 3,
      'bash deploy.sh': 3,
    }),
  );
  expect(argvs(found)).toEqual([]);
  expect(found.left.map(({ reason }) => reason)).toEqual(
    expect.arrayContaining([expect.stringContaining('sudo runs whatever follows it')]),
  );
});

test('a rule after which any file could be named to be destroyed or disclosed is not proposed', () => {
  const found = suggest(asked({ 'rm -rf build': 3, 'shred -u notes.txt': 3 }));
  expect([argvs(found), found.left.map(({ reason }) => reason)]).toEqual([
    [],
    expect.arrayContaining([expect.stringContaining('rm acts on whatever file is named')]),
  ]);
});

test('lines that no rule would have allowed count for nothing', () => {
  expect(
    suggest(asked({ 'git push origin main > ~/.bashrc': 3, 'git push origin "$BRANCH"': 3, 'cat ~/.ssh/id_rsa': 3 }))
      .proposed,
  ).toEqual([]);
});

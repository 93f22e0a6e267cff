import { expect, test } from 'vitest';
import { classifyShell } from '../../../src/kernel/permissions/shell/verdict.js';
import { context, riskOf } from './judging.js';

const writesOf = (command: string): readonly string[] => classifyShell(command, context).writes;

/** Rules of the user and checks of links look at these paths. */
test.each([
  ['rm a.txt b/c.txt', ['/home/user/project/a.txt', '/home/user/project/b/c.txt']],
  ['unlink a.txt', ['/home/user/project/a.txt']],
  ['mv a.txt b.txt', ['/home/user/project/a.txt', '/home/user/project/b.txt', '/home/user/project/b.txt/a.txt']],
  ['rmdir build', ['/home/user/project/build']],
  ['cp a.txt b.txt', ['/home/user/project/b.txt', '/home/user/project/b.txt/a.txt']],
])('%s writes every path that it removes, moves or makes', (command, paths) => {
  expect([...writesOf(command)].toSorted()).toEqual([...paths].toSorted());
});

test.each([
  ['cp -r ~ backup', 'dangerous'],
  ['cp -r /home/user/ backup', 'dangerous'],
  ['cp -a / backup', 'dangerous'],
  ['cp -R /etc backup', 'dangerous'],
  ['cp -r src backup', 'mutating'],
  ['cp ~/notes.txt .', 'mutating'],
])('%s is %s: a copy of a home or system folder holds its secrets', (command, risk) => {
  expect(riskOf(command)).toBe(risk);
});

test.each([
  ['go tool', 'mutating'],
  ['go tool pprof', 'mutating'],
  ['go tool -x', 'mutating'],
  ['go list ./...', 'mutating'],
  ['go list -export ./...', 'mutating'],
  ['go env', 'mutating'],
  ['go env -w GOFLAGS=x', 'dangerous'],
])('%s is %s', (command, risk) => {
  expect(riskOf(command)).toBe(risk);
});

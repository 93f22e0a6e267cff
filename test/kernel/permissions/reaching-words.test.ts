import { expect, test } from 'vitest';
import { reachingWord } from '../../../src/kernel/permissions/reaching-words.js';

const place = { cwd: '/home/u/work', home: '/home/u', workspace: '/home/u/work' };

test.each([
  'run x --script-shell=./e',
  'run x --script-sh ./e',
  'run x --node-op=--require=./e',
  'install --userconfig ./rc',
  'run x --prefix=../other',
  '-C ../other build',
  '-C../other build',
  'build -o ../out',
  'build -toolexec ./e ./...',
  'build --manifest-path ../Cargo.toml',
  'build --manifest sub/Cargo.toml',
  'test --target-dir=/tmp/x',
  'run /etc/hosts',
  'run ~/x',
  'run a/../../b',
  'log --output=/tmp/x',
])('an allow rule does not cover %s', (words) => {
  expect(reachingWord(words.split(' '), place)).not.toBeNull();
});

test.each([
  'run build -- --watch',
  'test ./src/a.test.ts',
  'test /home/u/work/a.test.ts --reporter=dot',
  'build -o dist/a ./...',
  'run x > /dev/null',
  'test --shard=1/2 --ex',
  'log a..b HEAD~1...HEAD',
])('an allow rule covers %s', (words) => {
  expect(reachingWord(words.split(' '), place)).toBeNull();
});

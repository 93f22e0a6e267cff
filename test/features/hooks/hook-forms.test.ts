import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import type { Hook } from '../../../src/features/hooks/listed-hooks.js';
import { readSettings } from '../../../src/features/hooks/project-hooks.js';
import { expectReadings, formsFolder, type Reading, useOf } from '../../brought-forms.js';

/** Describes a hook in one line. */
function lineOf({ event, matcher, type, command, args, timeoutMs, condition, background }: Hook): string {
  const when = [event, ...(matcher === '' ? [] : [matcher]), ...(condition === undefined ? [] : [`if ${condition}`])];
  const how = [`${timeoutMs / 1000} s`, ...(background === undefined ? [] : [`background ${background}`])];
  return `${when.join(' ')}: ${type} ${JSON.stringify(args ? [command, ...args] : command)} (${how.join(', ')})`;
}

test('hooks in the forms of other programs are read', () => {
  const folder = formsFolder('hooks');
  const forms = readdirSync(folder).filter((name) => name !== 'expected.json');
  const readings = forms.map((form): readonly [string, Reading] => {
    const path = join(folder, form);
    const found = readSettings(path, { path, origin: 'project', directory: '/work', home: '/home/ann' });
    const problems = found.problems.map((problem) => problem.slice(path.length).replace(/^:? /, ''));
    const hooks = found.hooks.map(lineOf);
    return [form, { use: useOf(hooks.length > 0, problems), hooks, problems }];
  });
  expectReadings('hooks', Object.fromEntries(readings));
});

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { terminalCommand } from '../../../../src/kernel/tools/process/terminal-command.js';
import { tree } from '../workbench.js';

test('without the optional package the problem is a sentence that names it and says what to do', () => {
  const command = { file: 'bash', args: [], cwd: '/', env: {} };
  const from = pathToFileURL(join(tree(), 'chunk.js')).href;
  expect(terminalCommand(command, { columns: 80, rows: 24 }, from)).toBe(
    'Terminals need the optional package @lydell/node-pty, which is not installed here. Run the command without terminal; ' +
      'the user can add the package by installing agent again without --omit=optional.',
  );
});

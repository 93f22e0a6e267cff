import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { place, script, type Place } from './program.js';
import { openScreen } from './terminal.js';

/** An agent whose model does these turns. */
function define(at: Place, name: string, turns: readonly unknown[]): void {
  const folder = join(at.home, '.agent/agents');
  mkdirSync(folder, { recursive: true });
  const text = `---\nname: ${name}\ndescription: Works.\nmodel: ${script(at, turns)}\n---\nYou work.\n`;
  writeFileSync(join(folder, `${name}.md`), text);
}

const waitFor = (file: string): object => ({
  calls: [{ name: 'bash', arguments: { command: `until [ -e ${file} ]; do sleep 0.05; done; echo ${file} is there` } }],
});

test('/agents show follows an agent in the background until Esc, also past its end', async () => {
  const at = place({});
  define(at, 'worker', [waitFor('first'), waitFor('second'), { text: 'All is there.' }]);
  const call = { agent: 'worker', prompt: 'wait for both', description: 'it waits', background: true };
  const screen = openScreen(at, [
    '-m',
    script(at, [{ calls: [{ name: 'agent', arguments: call }] }, { text: 'Begun.' }]),
  ]);
  await screen.until(/❯ Ask anything/);
  screen.type('go\r');
  await screen.until(/Begun\./);
  screen.type('/agents show 1\r');
  await screen.until(/1: worker: it waits \(running[^]*❯ wait for both[^]*● bash\(command="until \[ -e first/);
  at.file('first', '');
  await screen.until(/first is there[^]*● bash\(command="until \[ -e second/);
  screen.type('\x1b');
  await screen.until(/work\n❯$/);
  screen.type('/agents show 1\r');
  await screen.until(/● bash\(command="until \[ -e second[^]*q closes/);
  at.file('second', '');
  await screen.until(/1: worker: it waits \((?!running)[^]*second is there[^]*All is there\./);
  screen.type('\x1b');
  await screen.until(/work\n❯$/);
});

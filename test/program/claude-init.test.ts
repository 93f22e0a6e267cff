import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, lines, place, script } from './inside.js';

/** A home with a command, a skill, a sub-agent and a server that cannot be started. */
function furnished(): Place {
  const at = place();
  const files = {
    '.agent/commands/deploy.md': '---\ndescription: Deploys\n---\nDeploy it.\n',
    '.agent/skills/pdf/SKILL.md': '---\nname: pdf\ndescription: Reads PDF files\n---\nRead.\n',
    '.agent/agents/reviewer.md': '---\nname: reviewer\ndescription: Reviews changes\n---\nReview.\n',
    '.agent/mcp.json': JSON.stringify({ mcpServers: { docs: { command: join(at.home, 'missing') } } }),
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at.home, path)), { recursive: true });
    writeFileSync(join(at.home, path), text);
  }
  return at;
}

const stream = ['--dialect', 'claude', '--output-format', 'stream-json'];

test("the first line in Claude Code's dialect lists the commands, agents, skills and servers that work in the run", async () => {
  const at = furnished();
  const model = script(at, [{ text: 'Hello.' }]);
  const { stdout, stderr } = await agent(at, ['-p', '-m', model, '--tools', '+agents', ...stream, 'hi']);
  const [init] = lines(stdout);
  expect([stderr, init]).toEqual([
    '',
    expect.objectContaining({
      subtype: 'init',
      slash_commands: expect.arrayContaining(['compact', 'context', 'model', 'deploy', 'skill:pdf']) as unknown,
      agents: expect.arrayContaining(['reviewer']) as unknown,
      skills: ['pdf'],
      mcp_servers: [{ name: 'docs', status: 'pending' }],
    }),
  ]);
  const { slash_commands: commands } = init as { readonly slash_commands: readonly string[] };
  // They need the screen, or leave the program.
  for (const name of ['exit', 'theme', 'vim']) expect(commands).not.toContain(name);
  for (const name of ['context', 'deploy', 'skill:pdf']) {
    const done = await agent(at, ['-p', '-m', model, `/${name}`]);
    expect([name, done.code]).toEqual([name, 0]);
  }
});

test('from standard input, commands that may change settings or files are not listed, because they do not run', async () => {
  const at = furnished();
  const message = JSON.stringify({ type: 'user', message: { role: 'user', content: 'hi' } });
  const args = ['-p', '-m', script(at, [{ text: 'Hello.' }]), '--input-format', 'stream-json', ...stream];
  const [init] = lines((await agent(at, args, { stdin: `${message}\n` })).stdout);
  const { slash_commands: commands } = init as { readonly slash_commands: readonly string[] };
  expect(commands).toEqual(expect.arrayContaining(['context', 'deploy', 'skill:pdf']));
  expect(commands).not.toContain('config');
});

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

const root = '${CLAUDE_PLUGIN_ROOT}';
const run = (command: string): unknown => ({ hooks: [{ type: 'command', command }] });

/** The files of a plugin with a part of each kind. */
const parts: Readonly<Record<string, string>> = {
  '.claude-plugin/plugin.json': JSON.stringify({ name: 'demo', version: '1.0.0', lspServers: {} }),
  'skills/ship/SKILL.md': `---\nname: ship\ndescription: ships\n---\nShip with ${root}/tool.\n`,
  'commands/greet.md': `---\ndescription: greets\n---\nGreet $1 as ${root} says. !\`echo quickly\`\n`,
  'agents/helper.md': '---\nname: helper\ndescription: helps\ntools: Read\n---\nYou help.\n',
  'output-styles/pirate.md': '---\nname: pirate\ndescription: arr\n---\nTalk like a pirate.\n',
  'hooks/hooks.json': JSON.stringify({ hooks: { UserPromptSubmit: [run(`${root}/hooks/note.sh`)] } }),
  'hooks/note.sh': '#!/bin/sh\ntouch "$CLAUDE_PROJECT_DIR/noted" "$CLAUDE_PLUGIN_DATA/kept"\n',
  '.mcp.json': JSON.stringify({ far: { url: 'https://mcp.example/mcp' } }),
};

function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
    if (name.endsWith('.sh')) chmodSync(join(folder, name), 0o755);
  }
}

function git(folder: string, ...args: readonly string[]): string {
  const who = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com', '-c', 'init.defaultBranch=main'];
  return execFileSync('git', [...who, ...args], { cwd: folder, encoding: 'utf8' }).trim();
}

function commit(folder: string, files: Readonly<Record<string, string>>): string {
  write(folder, files);
  if (!existsSync(join(folder, '.git'))) git(folder, 'init', '-q');
  git(folder, 'add', '-A');
  git(folder, 'commit', '-qm', 'change');
  return git(folder, 'rev-parse', 'HEAD');
}

/** A place with a plugin in the repository `plug` beside the working directory. */
function withPlugin(files: Readonly<Record<string, string>> = parts): {
  readonly at: At;
  readonly plug: string;
  readonly head: string;
} {
  const at = place();
  const plug = join(at.home, 'plug');
  mkdirSync(plug);
  return { at, plug, head: commit(plug, files) };
}

async function json(at: At, ...args: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  return JSON.parse((await agent(at, [...args, '--json'])).stdout) as readonly Record<string, unknown>[];
}

const go = (at: At): readonly string[] => ['-p', '-m', script(at, [{ text: 'Hi.' }]), 'go'];

test('a plugin of a git repository is shown, added with --yes, used, and removed', async () => {
  const { at, plug, head } = withPlugin();
  const asked = await agent(at, ['plugin', 'add', plug]);
  expect(asked).toMatchObject({ code: 4 });
  expect(asked.stdout).toContain(`hook UserPromptSubmit runs: ${root}/hooks/note.sh`);
  expect(asked.stdout).toContain('server far connects to https://mcp.example/mcp');
  expect(asked.stdout).toContain('commands/greet.md runs: echo quickly');
  expect(asked.stdout).toContain('not used here: lspServers');
  expect(await json(at, 'plugin', 'list')).toEqual([]);
  expect(await agent(at, ['plugin', 'add', plug, '--yes'])).toMatchObject({ code: 0 });
  expect(await json(at, 'plugin', 'list')).toMatchObject([
    {
      ...{ name: 'demo', version: '1.0.0', source: plug, commit: head, enabled: true, trusted: true },
      parts: { skills: 1, commands: 1, agents: 1, hooks: 1, mcp: 1, output_styles: 1 },
    },
  ]);
  const origin = 'plugin:demo';
  expect(await json(at, 'skills', 'list')).toMatchObject([{ name: 'demo:ship', origin, active: true }]);
  expect(await json(at, 'commands', 'list')).toMatchObject([{ name: 'demo:greet', origin, active: true }]);
  expect((await json(at, 'agents', 'list'))[0]).toMatchObject({ name: 'demo:helper', origin });
  expect(await json(at, 'hooks', 'list')).toMatchObject([{ name: 'UserPromptSubmit', origin, missing: [] }]);
  expect((await agent(at, ['mcp', 'list'])).stdout).toContain('far');
  await agent(at, go(at));
  expect(existsSync(join(at.work, 'noted'))).toBe(true);
  expect(await agent(at, ['plugin', 'remove', 'demo'])).toMatchObject({ code: 0 });
  expect(await json(at, 'skills', 'list')).toEqual([]);
  expect(await json(at, 'plugin', 'list')).toEqual([]);
});

test('its skills and commands name its folder, and a command is typed with the name of the plugin', async () => {
  const { at, plug } = withPlugin();
  await agent(at, ['plugin', 'add', plug, '--yes']);
  const { stdout } = await repl(at, ['-m', script(at, [{ text: 'Greeted.' }])], [['/demo:greet Ada', 'Greeted.']]);
  expect(stdout).toContain('Greeted.');
  const shown = await agent(at, ['skills', 'show', 'demo:ship']);
  expect(shown.stdout).toMatch(/Ship with \/.*\/installed\/demo\/tool\./);
});

test('a plugin that the REPL adds is used at once', async () => {
  const { at, plug } = withPlugin();
  await agent(at, ['plugin', 'add', plug, '--yes']);
  await agent(at, ['plugin', 'disable', 'demo']);
  const steps = [
    ['/plugin enable demo', 'demo is enabled'],
    ['/demo:greet Ada', 'Greeted.'],
    ['/plugin remove demo', 'Removed demo'],
    ['/demo:greet Ada', 'There is no command /demo:greet'],
  ] as const;
  const { stdout } = await repl(at, ['-m', script(at, [{ text: 'Greeted.' }])], steps);
  expect(stdout).toContain('Greeted.');
});

test('a changed byte ends the trust; what changed is shown before it is trusted again', async () => {
  const { at, plug } = withPlugin();
  await agent(at, ['plugin', 'add', plug, '--yes']);
  const [skill] = await json(at, 'skills', 'list');
  const file = join(dirname(String(skill?.['path'])), '..', '..', 'hooks', 'note.sh');
  writeFileSync(file, '#!/bin/sh\ntouch "$CLAUDE_PROJECT_DIR/evil"\n');
  const ran = await agent(at, go(at));
  expect(ran.stderr).toContain('The plugin demo is not used: its files have changed since you trusted them.');
  expect([existsSync(join(at.work, 'evil')), existsSync(join(at.work, 'noted'))]).toEqual([false, false]);
  expect(await json(at, 'plugin', 'list')).toMatchObject([{ trusted: false }]);
  expect(await json(at, 'skills', 'list')).toEqual([]);
  expect(await agent(at, ['plugin', 'trust', 'demo'])).toMatchObject({ code: 4 });
  expect(await agent(at, ['plugin', 'trust', 'demo', '--yes'])).toMatchObject({ code: 0 });
  await agent(at, go(at));
  expect(existsSync(join(at.work, 'evil'))).toBe(true);
});

test('update shows what is new and asks again; the same commit changes nothing', async () => {
  const { at, plug, head } = withPlugin();
  await agent(at, ['plugin', 'add', plug, '--yes']);
  expect((await agent(at, ['plugin', 'update'])).stdout).toContain('demo is installed and up to date');
  const next = commit(plug, { 'hooks/hooks.json': JSON.stringify({ hooks: { Stop: [run('echo new')] } }) });
  const asked = await agent(at, ['plugin', 'update', 'demo']);
  expect(asked.stdout).toContain('hook Stop runs: echo new');
  expect(asked.code).toBe(4);
  expect(await json(at, 'plugin', 'list')).toMatchObject([{ commit: head }]);
  expect(await agent(at, ['plugin', 'update', 'demo', '--yes'])).toMatchObject({ code: 0 });
  expect(await json(at, 'plugin', 'list')).toMatchObject([{ commit: next, trusted: true }]);
  await agent(at, ['plugin', 'disable', 'demo']);
  expect(await json(at, 'hooks', 'list')).toEqual([]);
  await agent(at, ['plugin', 'enable', 'demo']);
  expect(await json(at, 'hooks', 'list')).toMatchObject([{ event: 'Stop' }]);
});

test('a marketplace offers plugins by relative path, git address and folder of a repository', async () => {
  const { at, plug, head } = withPlugin();
  const market = join(at.home, 'market');
  const mono = join(at.home, 'mono');
  mkdirSync(market);
  mkdirSync(mono);
  commit(mono, { 'sub/skills/deep/SKILL.md': '---\nname: deep\ndescription: deep\n---\nDeep.\n' });
  const url = `file://${plug}`;
  commit(market, {
    'plugins/near/commands/hello.md': 'Hello.\n',
    '.claude-plugin/marketplace.json': JSON.stringify({
      name: 'shop',
      owner: { name: 'Ann' },
      plugins: [
        { name: 'near', source: './plugins/near', description: 'Near', version: '2.0.0', strict: false },
        { name: 'demo', source: { source: 'url', url, sha: head } },
        { name: 'deep', source: { source: 'git-subdir', url: `file://${mono}`, path: 'sub' } },
        { name: 'far', source: { source: 'npm', package: 'x' } },
        { name: 'out', source: '../plug' },
      ],
    }),
  });
  expect((await agent(at, ['plugin', 'add', market])).stdout).toContain('Added the marketplace shop.');
  expect((await json(at, 'plugin', 'available')).map(({ name }) => name)).toContain('near@shop');
  for (const name of ['near', 'demo', 'deep'])
    expect(await agent(at, ['plugin', 'add', `${name}@shop`, '--yes'])).toMatchObject({ code: 0 });
  expect(await json(at, 'plugin', 'list')).toMatchObject([
    { name: 'near', version: '2.0.0', source: 'near@shop', parts: { commands: 1 } },
    { name: 'demo', commit: head },
    { name: 'deep', parts: { skills: 1 } },
  ]);
  expect((await agent(at, ['plugin', 'add', 'far@shop', '--yes'])).stderr).toContain('is not supported');
  expect((await agent(at, ['plugin', 'add', 'out@shop', '--yes'])).stderr).toContain('which is outside of it');
  const unknown = await agent(at, ['plugin', 'add', 'neer@shop', '--yes']);
  expect(unknown).toMatchObject({ code: 2 });
  expect(unknown.stderr).toContain('near');
  expect(await agent(at, ['plugin', 'remove', 'shop'])).toMatchObject({ code: 0 });
  expect(await agent(at, ['plugin', 'add', `near@${market}`, '--yes'])).toMatchObject({ code: 0 });
});

const skill = { 'skills/a/SKILL.md': '---\nname: a\ndescription: a\n---\nA.\n' };
const manifest = (fields: object): Readonly<Record<string, string>> => ({
  ...skill,
  '.claude-plugin/plugin.json': JSON.stringify({ name: 'evil', ...fields }),
});

test.each<readonly [string, Readonly<Record<string, string>>, (plug: string) => void, string]>([
  ['a path out of it', manifest({ commands: ['../../secret'] }), () => {}, 'outside the plugin'],
  ['an absolute path', manifest({ agents: '/etc' }), () => {}, 'outside the plugin'],
  ['a name with a path', manifest({ name: '../../x' }), () => {}, 'is not valid'],
  [
    'an install script',
    { ...skill, 'package.json': '{"scripts":{"postinstall":"touch owned"}}' },
    () => {},
    'postinstall',
  ],
  ['a link out of it', skill, (plug) => symlinkSync('/etc', join(plug, 'skills', 'b')), 'is a link out of the plugin'],
  [
    'a link to a file outside',
    skill,
    (plug) => symlinkSync('../../.ssh/id', join(plug, 'skills', 'key')),
    'leads nowhere',
  ],
  [
    'a huge file',
    skill,
    (plug) => writeFileSync(join(plug, 'big'), Buffer.alloc(17 * 1024 * 1024)),
    'larger than 16 MiB',
  ],
  ['a pipe', skill, (plug) => execFileSync('mkfifo', [join(plug, 'pipe')]), 'neither a file nor a folder'],
  ['a broken manifest', { ...skill, '.claude-plugin/plugin.json': '{"name":' }, () => {}, 'is not valid JSON'],
  ['nothing in it', { 'readme.txt': 'x' }, () => {}, 'is not a plugin'],
])('a plugin with %s is refused, and nothing is left of it', async (_what, files, prepare, message) => {
  const at = place();
  const plug = join(at.home, 'evil');
  write(plug, files);
  prepare(plug);
  const ran = await agent(at, ['plugin', 'add', plug, '--yes']);
  expect(ran.code).toBe(1);
  expect(ran.stderr).toContain(message);
  expect(await json(at, 'plugin', 'list')).toEqual([]);
  expect(existsSync(join(at.work, 'owned')) || existsSync(join(plug, 'owned'))).toBe(false);
  const left = readdirSync(at.home, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.staging-'));
  expect(left).toEqual([]);
});

test('a hook of git in the repository does not run when the plugin is fetched', async () => {
  const { at, plug } = withPlugin();
  const bare = join(at.home, 'bare.git');
  git(at.home, 'clone', '-q', '--bare', plug, bare);
  write(bare, { 'hooks/post-checkout': `#!/bin/sh\ntouch ${at.work}/owned\n` });
  chmodSync(join(bare, 'hooks/post-checkout'), 0o755);
  expect(await agent(at, ['plugin', 'add', bare, '--yes'])).toMatchObject({ code: 0 });
  expect(existsSync(join(at.work, 'owned'))).toBe(false);
  expect(readFileSync(join(plug, '.claude-plugin/plugin.json'), 'utf8')).toContain('demo');
});

test('what is no source is named with what may be given', async () => {
  const at = place();
  const ran = await agent(at, ['plugin', 'add', 'no such thing', '--yes']);
  expect(ran.stderr).toContain('neither a folder, nor an address of git, owner/repo or name@marketplace');
  const gone = await agent(at, ['plugin', 'add', `file://${at.home}/none`, '--yes']);
  expect(gone.stderr).toContain('could not be fetched');
  expect(await agent(at, ['plugin', 'enable', 'x'])).toMatchObject({ code: 2 });
});

import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agentPaths, ensurePrivateDirectory } from '../../../src/kernel/config/settings-file.js';

test('AGENT_HOME holds everything; else the XDG directories, of which relative ones do not count', () => {
  expect([
    agentPaths({ AGENT_HOME: '/a' }, '/h'),
    agentPaths({ XDG_CONFIG_HOME: '/c', XDG_DATA_HOME: 'relative', XDG_STATE_HOME: '', AGENT_HOME: '' }, '/h'),
  ]).toEqual([
    {
      config: '/a/config.json',
      signIns: '/a/mcp-auth.json',
      trust: '/a/trust.json',
      keys: '/a/keys.json',
      database: '/a/agent.db',
      log: '/a/agent.log',
      history: '/a/history',
      data: '/a',
      cache: '/a',
    },
    {
      config: '/c/agent/config.json',
      signIns: '/c/agent/mcp-auth.json',
      trust: '/c/agent/trust.json',
      keys: '/c/agent/keys.json',
      database: '/h/.local/share/agent/agent.db',
      log: '/h/.local/state/agent/agent.log',
      history: '/h/.local/state/agent/history',
      data: '/h/.local/share/agent',
      cache: '/h/.cache/agent',
    },
  ]);
});

test('directories are made for the owner alone', () => {
  const root = mkdtempSync(join(tmpdir(), 'agent-paths-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true });
  });
  const before = process.umask(0);
  ensurePrivateDirectory(join(root, 'a', 'b'));
  process.umask(before);
  expect([statSync(join(root, 'a')).mode & 0o777, statSync(join(root, 'a', 'b')).mode & 0o777]).toEqual([0o700, 0o700]);
});

import { expect, test } from 'vitest';
import { listPage } from '../../../src/frontends/viewers/session-page.js';

test('sessions of one name, as a session and its forks, can be told apart in the list of the page', () => {
  const row = {
    parentId: null,
    cwd: '/work',
    title: null,
    prompt: 'fix the total',
    provider: null,
    model: null,
    createdAt: 0,
    updatedAt: 0,
    events: 3,
    costUsd: null,
  };
  const rows = ['01M8AAAAAAAAA1', '01M8AAAAAAAAB2', '01M8AAAAAAAAC3'].map((id) => ({ ...row, id }));
  const page = listPage({
    rows: [...rows, { ...row, id: 'other', prompt: 'another' }],
    running: [],
    total: 4,
    cwd: '/work',
  });
  const names = [...page.matchAll(/<a href="s\/[^"]+">([^<]*)<\/a>/g)].map(([, name]) => name);
  expect(new Set(names).size).toBe(4);
  expect(names.every((name, index) => index === 3 || name?.startsWith('fix the total · started '))).toBe(true);
  expect(names[3]).toBe('another');
});

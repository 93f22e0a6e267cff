import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { isRecord } from '../../../src/kernel/core/json.js';
import type { HistoryReader } from '../../../src/features/history-import/neutral-turns.js';
import { programs } from '../../../src/features/history-import/program-tables.js';
import { opencodeOpener } from '../../../src/features/history-import/opencode-rows.js';
import { bringHome, homeWith, readAll, told } from './recorded-home.js';

const folders = ['claude-code', 'codex', 'pi', 'gemini', 'qwen', 'aider'];

async function readerOf(folder: string): Promise<HistoryReader> {
  const load = programs[folder];
  if (!load) throw new Error(`no reader for ${folder}`);
  return await load({ opencodeRows: opencodeOpener });
}

function envOf(home: string): Readonly<Record<string, string>> {
  return { AIDER_CHAT_HISTORY_FILE: join(home, 'shop/.aider.chat.history.md') };
}

/** The files of lines, those of helpers left out. */
function linedFiles(home: string): readonly string[] {
  return readdirSync(home, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:jsonl|md)$/.test(name) && !name.includes('/subagents/'))
    .map((name) => join(home, name));
}

function field(event: Event, name: string): unknown {
  return isRecord(event.data) ? event.data[name] : null;
}

/** The ids of calls, and those of results. */
function callsIn(events: readonly Event[]): readonly (readonly unknown[])[] {
  const of = (kind: string, name: string): readonly unknown[] =>
    events.filter((event) => event.kind === kind).map((event) => field(event, name));
  return [of('tool_call', 'id'), of('tool_result', 'tool_call_id')];
}

/** Something that stands in the file. */
function isSaid(event: Event): boolean {
  if (event.kind === 'tool_result') return field(event, 'synthetic') !== true;
  return ['user', 'assistant', 'tool_call'].includes(event.kind);
}

test.each(folders)('%s: cut behind any line and in the middle of it, every call is answered', async (folder) => {
  const home = homeWith({ x: '' });
  bringHome(folder, home);
  const reader = await readerOf(folder);
  const cut = (): number => {
    const all = readAll(reader, home, envOf(home));
    for (const { events } of all) {
      const [calls, results] = callsIn(events);
      expect(results).toEqual(calls);
    }
    return all.flatMap(({ events }) => events.filter(isSaid)).length;
  };
  let cuts = 0;
  for (const file of linedFiles(home)) {
    const whole = readFileSync(file);
    let before = cut();
    for (let end = whole.lastIndexOf(10, whole.length - 2); end > 0; end = whole.lastIndexOf(10, end - 1)) {
      const middle = end + 1 + Math.floor((whole.indexOf(10, end + 1) - end) / 2);
      for (const at of [middle, end + 1]) {
        truncateSync(file, Math.max(0, at));
        const now = cut();
        // What was read of less is never more.
        expect(now).toBeLessThanOrEqual(before);
        before = now;
        cuts += 1;
      }
    }
    writeFileSync(file, whole);
  }
  expect(cuts).toBeGreaterThan(30);
});

test.each([
  ['gemini', 'gemini-0.30'],
  ['opencode', 'opencode-1.1'],
])('what %s says is the same in its present and its former form', async (now, before) => {
  const reader = await readerOf(now);
  const said = (folder: string): readonly unknown[] => {
    const home = homeWith({ x: '' });
    bringHome(folder, home);
    const turns = readAll(reader, home).flatMap(told);
    const calls = turns.flatMap((turn) => (Array.isArray(turn) ? turn.slice(1) : []));
    const texts = turns.map((turn) => String(Array.isArray(turn) ? turn[0] : turn).trim());
    return [calls.map((call) => String(call).split(':')[0]), texts.filter((text) => text !== '')];
  };
  const one = said(now);
  expect(one[0]).toHaveLength(6);
  expect(one).toEqual(said(before));
});

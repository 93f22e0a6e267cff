import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { generateTokens } from '../ui/generated-text.js';
import { binary, place, type Place } from './program.js';

const sizes: readonly (readonly [columns: number, rows: number])[] = [
  [100, 30],
  [60, 15],
  [120, 40],
  [40, 12],
  [80, 24],
  [81, 10],
  [200, 50],
  [79, 50],
  [50, 20],
  [80, 24],
];
const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
const words = (text: string): readonly string[] => text.match(/[a-z]{2,}\d+/g) ?? [];

/** A model that streams `text` over some two seconds. `at` tells how much of it is out, from 0 to 1. */
async function slowModel(text: string): Promise<{ readonly env: Readonly<Record<string, string>>; at(): number }> {
  const pieces = text.match(/[\s\S]{1,6}/g) ?? [];
  let sent = 0;
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = (delta: unknown, finish: string | null): void => {
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      );
    };
    const step = (): void => {
      for (const end = Math.min(pieces.length, sent + Math.ceil(pieces.length / 400)); sent < end; sent++)
        chunk({ content: pieces[sent] }, null);
      if (sent < pieces.length) {
        setTimeout(step, 5);
        return;
      }
      chunk({}, 'stop');
      response.end('data: [DONE]\n\n');
    };
    step();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return {
    env: {
      OPENAI_API_KEY: 'sk-resize',
      AGENT_MODEL: 'openai/m',
      OPENAI_BASE_URL: url,
      AGENT_UI_NOTIFY: 'off',
      AGENT_UI_TITLE: 'false',
    },
    at: () => sent / pieces.length,
  };
}

/** Gives the terminal ten sizes, spread over the answer. */
async function tenSizes(model: { at(): number }, resize: (columns: number, rows: number) => void): Promise<void> {
  for (const [index, [columns, rows]] of sizes.entries()) {
    while (model.at() < (index + 1) / 12) await pause(2);
    resize(columns, rows);
  }
}

const answer = `${generateTokens(6_000).join('')}\n\`\`\`\n\nTHEEND`;

/** The program in a tmux of its own. */
function inTmux(at: Place, env: Readonly<Record<string, string>>): (...args: readonly string[]) => string {
  const configuration = join(dirname(at.work), 'tmux.conf');
  writeFileSync(configuration, 'set -g history-limit 100000\nset -g status off\n');
  const socket = `agent-e2e-${process.pid}`;
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-L', socket, '-f', configuration, ...args], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      env: { ...at.env, ...env },
    });
  onTestFinished(() => {
    tmux('kill-server');
  });
  tmux('new-session', '-d', '-x', '80', '-y', '24', '-c', at.work, `${process.execPath} ${binary}`);
  return tmux;
}

test.skipIf(spawnSync('tmux', ['-V']).status !== 0)(
  'ten resizes while an answer streams in tmux, which tells of a new size late: every word once, in order, no answer of the terminal in the input',
  async () => {
    const model = await slowModel(answer);
    const at = place();
    const tmux = inTmux(at, model.env);
    // The random name of the folder, in the status line, may hold what looks like a word of the answer.
    const all = (): string => tmux('capture-pane', '-p', '-J', '-S', '-').replaceAll(at.work, '(work)');
    while (!/❯\s*$/.test(all())) await pause(50);
    tmux('send-keys', 'go', 'Enter');
    await tenSizes(model, (columns, rows) => {
      tmux('resize-window', '-x', String(columns), '-y', String(rows));
    });
    while (!/THEEND[\s\S]*\n❯\s*$/.test(all())) await pause(100);
    expect(words(all())).toEqual(words(answer));
    expect(all()).not.toMatch(/\d;\d+R/);
  },
);

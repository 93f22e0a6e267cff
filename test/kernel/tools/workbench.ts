import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';
import type { Envelope } from '../../../src/kernel/core/envelope.js';
import { noSession, type Registry, type ToolContext, type ToolOutcome } from '../../../src/kernel/core/tool.js';
import { type BuiltinOptions, builtinTools } from '../../../src/kernel/tools/builtin.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';

const made: string[] = [];
afterAll(() => {
  for (const folder of made) rmSync(folder, { recursive: true, force: true });
});

/** A fresh folder holding `files` (a path that ends with `/` is a folder); gone after the file's tests. */
export function tree(files: Readonly<Record<string, string | Uint8Array>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tools-')));
  made.push(root);
  for (const [path, content] of Object.entries(files)) {
    if (path.endsWith('/')) {
      mkdirSync(join(root, path), { recursive: true });
      continue;
    }
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** Node cannot make one itself. */
export function makeFifo(path: string): void {
  const program = 'mkfifo';
  execFileSync(program, [path]);
}

export function context(cwd: string, changed: Partial<ToolContext> = {}): ToolContext {
  return {
    cwd,
    session: noSession,
    signal: new AbortController().signal,
    sandbox: 'off',
    limits: { timeoutMs: null, maxOutputBytes: 1_048_576 },
    knownFiles: new Map(),
    eventOutput: () => null,
    progress: () => {},
    ...changed,
  };
}

export const processes = createProcessRunner({
  watched: true,
  marker: { name: '_TOOLS_TEST', value: String(process.pid) },
});
afterAll(() => {
  processes.killNow();
});

export function toolOptions(changed: Partial<BuiltinOptions> = {}): BuiltinOptions {
  return {
    processes,
    shell: 'bash',
    maxReadBytes: 1_048_576,
    encoding: null,
    modelOutputBytes: 32_768,
    timeoutS: 120,
    maxTimeoutS: 600,
    env: process.env,
    protectedEnv: [],
    ...changed,
  };
}

export function registry(changed: Partial<BuiltinOptions> = {}): Registry {
  const made = createRegistry({
    maxOutputBytes: 1_048_576,
    now: () => performance.now(),
  });
  for (const tool of builtinTools(toolOptions(changed))) made.register(tool);
  return made;
}

/** Binds and runs one call, as the dispatcher would. */
export async function call(name: string, args: unknown, ctx: ToolContext, tools = registry()): Promise<ToolOutcome> {
  const text = typeof args === 'string' ? args : JSON.stringify(args);
  const binding = await tools.bind({ name, arguments: text });
  if (!binding.ok) return { envelope: binding.error, summary: 'not bound' };
  return binding.bound.tool.run(binding.bound.args, ctx);
}

export async function envelopeOf(name: string, args: unknown, ctx: ToolContext, tools?: Registry): Promise<Envelope> {
  return (await call(name, args, ctx, tools)).envelope;
}

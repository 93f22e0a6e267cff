import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

declare const AGENT_ROOT: string;

export interface Place {
  readonly home: string;
  readonly work: string;
  readonly modelUrl: string;
}
export interface Run {
  readonly wallMs: number;
  readonly startedAt: number;
  readonly output: string;
  readonly mostMegabytes: number;
}

/** The middle of `values`; 0 of none. */
export function median(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}

/** Runs the built program to its end; throws with what it said where it fails. AGENT_PROGRAM names another build. */
export function runProgram({ home, work, modelUrl }: Place, args: readonly string[]): Promise<Run> {
  const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    AGENT_HOME: join(home, '.agent'),
    LANG: 'C.UTF-8',
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: modelUrl,
    AGENT_MODEL: 'openai/m',
    AGENT_MAX_TOOL_TURNS: '100000',
  };
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, ...args], { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let said = '';
  let mostMegabytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const timer = setInterval(() => {
    mostMegabytes = Math.max(mostMegabytes, memoryOf(child.pid ?? 0));
  }, 25);
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      clearInterval(timer);
      if (code === 0) resolve({ wallMs: performance.now() - startedAt, startedAt, output, mostMegabytes });
      else reject(new Error(`agent ${args.join(' ')} ended with ${String(code)}: ${said}`));
    });
  });
}

/** Resident memory of a process, in MB; 0 once it has ended. Source: proc(5), /proc/PID/status. */
function memoryOf(id: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

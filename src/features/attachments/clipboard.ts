import type { MatchedFile } from '../../kernel/core/tool.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import { mostFileBytes } from '../../kernel/core/files/attached-formats.js';
import { pictureFacts } from './image-header.js';

const longestMs = 5000;

/** Returns the programs that can print the image of the clipboard here. */
function programs(env: Readonly<Record<string, string | undefined>>, platform: string): readonly (readonly string[])[] {
  return [
    ...(platform === 'darwin' ? [['pngpaste', '-']] : []),
    ...(env['WAYLAND_DISPLAY'] ? [['wl-paste', '--type', 'image/png']] : []),
    ...(env['DISPLAY'] ? [['xclip', '-selection', 'clipboard', '-target', 'image/png', '-out']] : []),
  ];
}

export interface ClipboardPlace {
  readonly processes: Pick<ProcessRunner, 'run'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  /** Absolute. */
  readonly cwd: string;
}

/** Reads the image of the clipboard. Returns null if there is none, or no program that reads it. */
export async function clipboardPicture(place: ClipboardPlace): Promise<MatchedFile | null> {
  for (const [file = '', ...args] of programs(place.env, place.platform)) {
    const bytes = await printed(file, args, place);
    if (pictureFacts(bytes) !== null) return { name: 'pasted.png', bytes };
  }
  return null;
}

/** Returns the variables that such a program needs to reach the screen. They contain no key. */
function needed(env: ClipboardPlace['env']): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'LANG', 'DISPLAY', 'XAUTHORITY', 'WAYLAND_DISPLAY', 'XDG_RUNTIME_DIR'];
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

async function printed(
  file: string,
  args: readonly string[],
  { processes, env, cwd }: ClipboardPlace,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  const result = await processes.run({
    file,
    args,
    cwd,
    env: needed(env),
    sandbox: 'off',
    signal: new AbortController().signal,
    timeoutMs: longestMs,
    maxTotalBytes: mostFileBytes,
    onOutput: (chunk, stream) => {
      if (stream === 'stdout') parts.push(Buffer.from(chunk));
    },
  });
  return result.ended === 'exit' && result.exitCode === 0 ? Buffer.concat(parts) : Buffer.alloc(0);
}

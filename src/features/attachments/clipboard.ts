import type { MatchedFile } from '../../kernel/core/tool.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import { mostFileBytes } from '../../kernel/core/files/attached-formats.js';
import { isWsl } from '../../kernel/disk/wsl.js';
import { pictureFacts } from './image-header.js';

const longestMs = 10_000;

interface ImageProgram {
  readonly argv: readonly string[];
  /** Returns the image in what the program prints. */
  readonly image: (printed: Buffer) => Buffer;
}

/** Returns the programs that can print the image of the clipboard here. */
function programs({ env, platform }: ClipboardPlace): readonly ImageProgram[] {
  const image = (printed: Buffer): Buffer => printed;
  return [
    ...(platform === 'darwin' ? [appleScript] : []),
    ...(env['WAYLAND_DISPLAY'] ? [{ argv: ['wl-paste', '--type', 'image/png'], image }] : []),
    ...(env['DISPLAY'] ? [{ argv: ['xclip', '-selection', 'clipboard', '-target', 'image/png', '-out'], image }] : []),
    ...(isWsl(env) ? [powerShell] : []),
  ];
}

/** Prints `«data PNGf89504E47…»`, also for an image that another program has copied as TIFF. */
const appleScript: ImageProgram = {
  argv: ['osascript', '-e', 'the clipboard as «class PNGf»'],
  image: (printed) => Buffer.from(/PNGf([\dA-F]+)/i.exec(printed.toString('latin1'))?.[1] ?? '', 'hex'),
};

/** Reads the clipboard of Windows from WSL, and prints base64: the console would change other bytes. */
const powerShell: ImageProgram = {
  argv: [
    ...['powershell.exe', '-NoProfile', '-NonInteractive', '-Sta', '-Command'],
    'Add-Type -AssemblyName System.Windows.Forms,System.Drawing; $i = [Windows.Forms.Clipboard]::GetImage(); ' +
      'if ($i) { $m = New-Object IO.MemoryStream; $i.Save($m, [Drawing.Imaging.ImageFormat]::Png); ' +
      '[Convert]::ToBase64String($m.ToArray()) }',
  ],
  image: (printed) => Buffer.from(printed.toString('latin1'), 'base64'),
};

export interface ClipboardPlace {
  readonly processes: Pick<ProcessRunner, 'run'>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  /** Absolute. */
  readonly cwd: string;
}

/** Reads the image of the clipboard. Returns null if there is none, or no program that reads it. */
export async function clipboardPicture(place: ClipboardPlace): Promise<MatchedFile | null> {
  for (const { argv, image } of programs(place)) {
    const [file = '', ...args] = argv;
    const bytes = image(await printed(file, args, place));
    if (pictureFacts(bytes) !== null) return { name: 'pasted.png', bytes };
  }
  return null;
}

/** Returns the variables that such a program needs to reach the screen. They contain no key. */
function needed(env: ClipboardPlace['env']): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'LANG', 'DISPLAY', 'XAUTHORITY', 'WAYLAND_DISPLAY', 'XDG_RUNTIME_DIR', 'WSL_INTEROP'];
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
    maxTotalBytes: mostFileBytes * 2 + 1024, // hexadecimal
    onOutput: (chunk, stream) => {
      if (stream === 'stdout') parts.push(Buffer.from(chunk));
    },
  });
  return result.ended === 'exit' && result.exitCode === 0 ? Buffer.concat(parts) : Buffer.alloc(0);
}

import { isRecord, parseJson } from '../../kernel/core/json.js';
import { firstLine } from '../../kernel/core/text.js';
import type { OpenCommand } from '../../kernel/tools/process/lasting-process.js';
import { visible } from './foreign-tools.js';

/** A command that prints the headers for a server, as JSON. */
export interface HeadersHelper {
  readonly command: string;
  /** Absolute. */
  readonly cwd: string;
  /** Variables of the user that the command names. */
  readonly env: Readonly<Record<string, string>>;
}

/** The command gave no headers. The message is a clause about the server. */
export class HelperFailure extends Error {}

interface HelperServer {
  readonly name: string;
  readonly url: string;
}

const longestMs = 10_000;
const maxBytes = 64 * 1024;

/** Runs the command in a shell and returns the headers that it prints. Rejects with a sentence where it fails, takes over
 * 10 s, or prints something else than an object of texts.
 * Source: Claude Code, "Connect Claude Code to tools via MCP", on dynamic headers (read November 2026). */
export async function helperHeaders(
  { command, cwd, env }: HeadersHelper,
  { name, url }: HelperServer,
  open: OpenCommand,
  passed: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const started = await open({
    file: 'sh',
    args: ['-c', command],
    cwd,
    env: { ...passed, ...env, CLAUDE_CODE_MCP_SERVER_NAME: name, CLAUDE_CODE_MCP_SERVER_URL: url },
    // The user chose this command; the sandbox is for commands of a model.
    sandbox: 'off',
  });
  if (!started.started) throw new HelperFailure(`its headersHelper could not be started: ${started.error}`);
  const { input, output, errors, exited } = started;
  input.end();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, longestMs, 'late');
  });
  try {
    const work = Promise.all([readText(output), readText(errors), exited]);
    const done = await Promise.race([work, late]);
    if (done === 'late') throw new HelperFailure(`its headersHelper took over ${longestMs / 1000} s`);
    const [printed, said, { code, signal }] = done;
    const last = firstLine(visible(said.trim().split('\n').at(-1) ?? ''), 200);
    if (code !== 0)
      throw new HelperFailure(
        `its headersHelper ended with ${signal ?? `exit code ${code ?? '?'}`}${last === '' ? '' : `: ${last}`}`,
      );
    return headersIn(printed);
  } finally {
    clearTimeout(timer);
    await started.end();
  }
}

async function readText(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      if (!Buffer.isBuffer(chunk) || bytes > maxBytes) continue;
      chunks.push(chunk);
      bytes += chunk.length;
    }
  } catch {
    // A stream that breaks off has ended.
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Parses the headers that the program printed. Errors never repeat the output: it holds keys. */
function headersIn(printed: string): Readonly<Record<string, string>> {
  let value: unknown;
  try {
    value = parseJson(printed.trim());
  } catch {
    value = null;
  }
  if (!isRecord(value)) throw new HelperFailure('its headersHelper did not print a JSON object of headers');
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(value)) {
    if (
      typeof text !== 'string' ||
      !/^[!#$%&'*+.^_`|~\w-]+$/.test(name) ||
      /[^\t\u0020-\u007e\u0080-\u00ff]/.test(text)
    )
      throw new HelperFailure(
        `its headersHelper printed a header ${JSON.stringify(visible(name).slice(0, 60))} that cannot be sent`,
      );
    headers[name] = text;
  }
  return headers;
}

/** Returns the variables that a shell command names. */
export function shellVariables(command: string): readonly string[] {
  return [...new Set([...command.matchAll(/\$\{?([A-Za-z_]\w*)/g)].map(([, name = '']) => name))];
}

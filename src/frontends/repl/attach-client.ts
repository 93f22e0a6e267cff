import { connectOwner, type OwnerClient } from '../../app/live/connect-owner.js';
import type { OwnerMessage } from '../../app/live/messages.js';
import { exit } from '../../kernel/console/command.js';
import { onLostStream } from '../../kernel/console/print.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { createOutputCollector } from '../../kernel/tools/process/output-collector.js';
import { runOnTerminal } from '../../kernel/tools/process/runner.js';
import { screenStreams } from '../../ui/early-frame.js';
import { endingSignals, onEndingSignal } from '../../ui/ending.js';
import { leaveTerminal } from '../../ui/terminal/streams.js';
import { jobControl } from './job-control.js';

/** The end of a terminal that was attached to a session of another process. `refused`: it showed nothing, for this
 * reason. `lost`: the other process is gone, or does not answer. */
export type Attached =
  | { readonly type: 'ended'; readonly exitCode: number; readonly text: string }
  | { readonly type: 'refused'; readonly text: string }
  | { readonly type: 'open'; readonly arguments: readonly string[] }
  | { readonly type: 'lost'; readonly pid: number }
  | { readonly type: 'silent' };

/** The variables that say what the terminal can do, and which editor the user wants. */
const terminalVariables = [
  'TERM',
  'COLORTERM',
  'COLORFGBG',
  'NO_COLOR',
  'FORCE_COLOR',
  'TERM_PROGRAM',
  'TERM_PROGRAM_VERSION',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TMUX',
  'TMUX_PANE',
  'STY',
  'VTE_VERSION',
  'WT_SESSION',
  'KONSOLE_VERSION',
  'CI',
  'AGENT_PLAIN',
  'VISUAL',
  'EDITOR',
];

const ctrlC = 3;
/** An owner that has sent nothing for this long after Ctrl-C does not answer: the next Ctrl-C leaves. */
const silenceMs = 3_000;
const resumeDelayMs = 20;
const signalDelayMs = 200;

/** Shows a session of another process on this terminal. `early`: takes the keys that were typed already. Resolves to null where
 * no process runs the session. */
export async function attachTerminal(
  settings: Pick<Settings, 'config' | 'env'>,
  sessionId: string,
  early: () => readonly (Uint8Array | string)[],
): Promise<Attached | null> {
  const { output } = screenStreams();
  const { env } = settings;
  const client = new Client();
  const owner = await connectOwner(settings.config.files, sessionId, {
    client: 'terminal',
    terminal: {
      columns: output.columns,
      rows: output.rows,
      env: Object.fromEntries(terminalVariables.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
    },
    onMessage: (message) => {
      client.take(message);
    },
  });
  return owner ? await client.converse(owner, early()) : null;
}

/** The terminal of this process as that of another one: it passes on what is typed, and prints what comes. */
class Client {
  readonly #streams = screenStreams();
  #owner: OwnerClient | null = null;
  #early: OwnerMessage[] = [];
  #end: (attached: Attached) => void = () => undefined;
  #hasShown = false;
  #hasTitle = false;
  #isReading = false;
  /** The rows of the frame above the cursor; null where something else has moved it since. */
  #rowsAbove: number | null = null;
  /** When Ctrl-C was sent that the owner has not heeded; else null. */
  #askedAt: number | null = null;
  /** The program that has the terminal. */
  #program: AbortController | null = null;

  async converse(owner: OwnerClient, early: readonly (Uint8Array | string)[]): Promise<Attached> {
    const { input, output } = this.#streams;
    const ended = new Promise<Attached>((resolve) => {
      this.#end = resolve;
    });
    this.#owner = owner;
    onEndingSignal((signal) => {
      if (signal !== 'SIGINT') this.#end({ type: 'ended', exitCode: endingSignals[signal], text: '' });
      else if (!this.#program) this.#keys('\x03');
    });
    onLostStream(() => {
      this.#end({ type: 'ended', exitCode: exit.done, text: '' });
    });
    input.once('end', () => {
      this.#end({ type: 'ended', exitCode: exit.done, text: '' });
    });
    const onStop = (): void => {
      owner.send({ type: 'pause' });
      this.#suspend();
    };
    process.on('SIGTSTP', onStop);
    void owner.closed.then(() => {
      this.#end({ type: 'lost', pid: owner.state.facts.pid });
    });
    output.on('resize', this.#resized);
    for (const chunk of early) this.#keys(chunk);
    this.#read(true);
    for (const message of this.#early.splice(0)) this.take(message);
    const attached = await ended;
    process.off('SIGTSTP', onStop);
    output.off('resize', this.#resized);
    this.#program?.abort();
    this.#read(false);
    owner.close();
    this.#giveBack(attached);
    return attached;
  }

  take(message: OwnerMessage): void {
    if (!this.#owner) {
      this.#early.push(message);
      return;
    }
    this.#askedAt = null;
    const { input, output } = this.#streams;
    switch (message.type) {
      case 'screen': {
        const text = Buffer.from(message.data, 'base64').toString('utf8');
        this.#hasShown = true;
        this.#hasTitle ||= text.includes('\x1b[22;0t');
        this.#rowsAbove = message.rows_above ?? null;
        output.write(text);
        break;
      }
      case 'raw':
        if (input.isTTY) input.setRawMode(message.on);
        break;
      case 'suspend':
        if (jobControl.hasShell()) this.#suspend();
        else this.#owner.send({ type: 'resume' });
        break;
      case 'run':
        void this.#run(message);
        break;
      case 'end_program':
        this.#program?.abort();
        break;
      case 'open':
        this.#end({ type: 'open', arguments: message.arguments });
        break;
      case 'end':
        this.#end(
          this.#hasShown
            ? { type: 'ended', exitCode: message.exitCode, text: message.text }
            : { type: 'refused', text: message.text },
        );
        break;
      default: // Messages for followers.
    }
  }

  readonly #keys = (chunk: Uint8Array | string): void => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk);
    const now = performance.now();
    if (bytes.includes(ctrlC)) {
      this.#askedAt ??= now;
      if (now - this.#askedAt > silenceMs) {
        this.#end({ type: 'silent' });
        return;
      }
    }
    this.#owner?.send({ type: 'keys', data: bytes.toString('base64') });
  };

  readonly #resized = (): void => {
    const { columns, rows } = this.#streams.output;
    this.#rowsAbove = null;
    this.#owner?.send({ type: 'size', columns, rows });
  };

  #read(on: boolean): void {
    const { input } = this.#streams;
    if (on === this.#isReading) return;
    this.#isReading = on;
    if (on) input.on('data', this.#keys).resume();
    else input.off('data', this.#keys).pause();
  }

  /** Stops this process, as Ctrl-Z does, and continues once the shell has given the terminal back. */
  #suspend(): void {
    const { input } = this.#streams;
    this.#read(false);
    this.#rowsAbove = null;
    if (input.isTTY) input.setRawMode(false);
    const stop = (): void => {
      jobControl.stop();
      setTimeout(() => {
        if (!jobControl.hasTerminal()) {
          setTimeout(stop, signalDelayMs);
          return;
        }
        this.#read(true);
        this.#resized();
        this.#owner?.send({ type: 'resume' });
      }, resumeDelayMs);
    };
    stop();
  }

  /** Runs a program on this terminal. The owner has given it back already. */
  async #run({ ref, command, cwd, env, keepsBytes }: Extract<OwnerMessage, { readonly type: 'run' }>): Promise<void> {
    const [file = '', ...args] = command;
    const controller = new AbortController();
    const collector = keepsBytes === undefined ? null : createOutputCollector(keepsBytes);
    const own = Object.entries(process.env).filter(([, value]) => value !== undefined);
    const whole = Object.keys(env).length > 0 ? env : (Object.fromEntries(own) as Record<string, string>);
    this.#program = controller;
    this.#read(false);
    this.#rowsAbove = null;
    let exitCode: number | null = null;
    try {
      const ended = await runOnTerminal({
        file,
        args,
        cwd,
        env: whole,
        signal: controller.signal,
        isCancelled: () => false,
        ...(collector ? { onOutput: (chunk: Buffer) => collector.add(chunk) } : {}),
      });
      exitCode = ended.code ?? (ended.signal === 'SIGINT' ? exit.interrupted : null);
    } catch {
      /* It could not be started: it has no exit code. */
    }
    this.#program = null;
    this.#read(true);
    this.#resized();
    const output = collector ? { output: collector.collected().parts.join('') } : {};
    this.#owner?.send({ type: 'ran', ref, exitCode, ...output });
  }

  /** Gives the terminal back as it was. An owner that ended in order has done so. */
  #giveBack({ type }: Attached): void {
    const { input, output } = this.#streams;
    if (type === 'lost' || type === 'silent')
      output.write(`${eraseFrame(this.#rowsAbove)}\x1b[?1004l${this.#hasTitle ? '\x1b[23;0t' : ''}`);
    leaveTerminal(input, output);
  }
}

/** Returns the sequence that removes a frame whose owner is gone. The row of the cursor stays where the size of the frame
 * is not known. tmux takes `ESC[J` in the home position for a clear screen, so the first cell is erased apart. */
function eraseFrame(rowsAbove: number | null): string {
  if (rowsAbove === null) return '\r\n\x1b[J';
  return `\r${rowsAbove > 0 ? `\x1b[${rowsAbove}A` : ''}\x1b[C\x1b[J\r\x1b[K\r\n`;
}

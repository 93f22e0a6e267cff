import { didYouMean } from '../../kernel/core/text.js';
import { listenForBrowser, pastedAnswer } from './access/browser-return.js';
import type { ConfiguredServer } from './configured-servers.js';
import { openSignIns, type SignIns } from './access/kept-sign-ins.js';
import { loadConnecting } from './load-connecting.js';
import type { HttpWay } from './server-link.js';
import type { Callback } from './access/sign-in.js';
import { createProcessRunner } from '../../kernel/tools/process/runner.js';
import { CliError, type CommandLine, exit, type Printer, type CommandHandler } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { version } from '../../kernel/console/version.js';
import { writtenServers } from './mcp-start.js';
import * as code from './start-servers.js';

const loaded = () => Promise.resolve(code);

const longestVisitMs = 10 * 60 * 1000;
/** The port of the address that the browser ends at in a manual sign-in. Nothing listens there: the user copies the
 * address. */
const manualPort = 33_418;

export const signIn: CommandHandler = {
  line: {
    example: 'agent mcp login issues --manual',
    options: (command) => command.option('--manual', "paste the browser's final address instead of listening for it"),
    run: async (line, [name = ''], { manual }) => {
      const settings = await line.settings();
      const { server, way } = await reachedOverHttp(line, name);
      const { logIn, portsOf } = await loadConnecting();
      const signIns = signInsOf(settings);
      const stop = new AbortController();
      line.onEnd(() => {
        stop.abort();
      });
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(longestVisitMs)]);
      const back =
        manual === true
          ? {
              ...byHand(line.out, way, signal),
              close: () => undefined,
            }
          : await listenForBrowser(portsOf(signIns, way), shownBy(line.out), signal);
      try {
        const { open } = createProcessRunner({ marker: { name: '_AGENT_SIGN_IN', value: String(process.pid) } });
        const count = await logIn(server, way, { signIns, version, env: settings.env, open }, back);
        line.out.print(
          count === null ? `${name} works without a sign-in.\n` : `Signed in to ${name}: ${count} tools.\n`,
        );
        return exit.done;
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        throw new CliError(
          exit.failed,
          `\`${name}\`: ${message}`,
          `Nothing was saved. Check it with agent mcp get ${name}`,
        );
      } finally {
        back.close();
      }
    },
  },
};

export const signOut: CommandHandler = {
  line: {
    example: 'agent mcp logout issues',
    run: async (line, [name = '']) => {
      const { way } = await reachedOverHttp(line, name);
      line.out.print(
        signInsOf(await line.settings()).forget(way.url)
          ? `Signed out of ${name}: its tokens are deleted here. Revoke the access in the server's settings, too.\n`
          : `Nobody was signed in to ${name}.\n`,
      );
      return exit.done;
    },
  },
};

async function reachedOverHttp(
  { settings }: CommandLine,
  name: string,
): Promise<{ readonly server: ConfiguredServer; readonly way: HttpWay }> {
  const { servers } = await writtenServers(await settings(), loaded);
  const server = servers.find((other) => other.name === name);
  if (!server) {
    const names = servers.map((other) => other.name);
    const known = `${didYouMean(name, names)} Known: ${names.join(', ') || 'none'}`.trim();
    throw new CliError(exit.usage, `there is no server \`${name}\``, known);
  }
  const { way } = server;
  if (way.kind === 'http') return { server, way };
  const problem = way.kind === 'unusable' ? way.problem : 'it is a local program and needs no sign-in';
  throw new CliError(exit.usage, `\`${name}\`: ${problem}`, `agent mcp get ${name} shows its entry.`);
}

function signInsOf({ config, secrets }: Settings): SignIns {
  return openSignIns(config.files.signIns, (secret) => secrets.push(secret));
}

function shownBy(out: Printer): (address: URL) => void {
  return (address) => {
    out.print(`Open this address in a browser and approve:\n\n${address.href}\n\nWaiting for it…\n`);
  };
}

function byHand(out: Printer, { signIn: { callbackPort = manualPort } }: HttpWay, signal: AbortSignal): Callback {
  return {
    redirectUrl: `http://127.0.0.1:${callbackPort}/callback`,
    visit: async (address) => {
      out.print(
        `Open this address in a browser and approve:\n\n${address.href}\n\n` +
          'The last page will not load; copy its address.\n',
      );
      const answer = pastedAnswer(await out.ask('Paste that address: ', signal));
      if (answer === null) throw new Error('that address has no code; nothing was saved');
      return answer;
    },
  };
}

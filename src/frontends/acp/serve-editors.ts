import {
  agent,
  type AgentApp,
  type AnyMessage,
  type InitializeResponse,
  methods,
  ndJsonStream,
} from '@agentclientprotocol/sdk';
import { exit } from '../../kernel/console/command.js';
import { isDeeperThan, maxJsonDepth } from '../../kernel/core/json.js';
import { endingSignals, onEndingSignal } from '../../ui/ending.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { onLostStream, outputForPrograms, printError } from '../../kernel/console/print.js';
import { version } from '../../kernel/console/version.js';
import { maxLineBytes, splitLines } from '../headless/input-lines.js';
import { EditorSessions, refusing } from './editor-sessions.js';
import { listSessionPage } from './session-list.js';

/** Serves an editor over standard input and output until it closes them. Standard output carries the protocol and
 * nothing else. Returns the exit code. Source: Agent Client Protocol, version 1, read 2026-11-22. */
export async function serveEditors(options: RootOptions): Promise<number> {
  const sessions = new EditorSessions(options);
  const { readable, writable } = ndJsonStream(outputForPrograms(), bytesOf(process.stdin));
  const messages = readable.pipeThrough(new TransformStream({ transform: passShallow }));
  const connection = createApp(options, sessions).connect({ readable: messages, writable });
  const code = await new Promise<number>((resolve) => {
    const gone = (): void => {
      resolve(exit.done);
    };
    void connection.closed.then(gone);
    onLostStream(gone);
    onEndingSignal((signal) => {
      resolve(endingSignals[signal]);
    });
  });
  await sessions.closeAll();
  connection.close();
  return code;
}

/** Passes a message on. One that is nested so deeply that reading it would overflow the stack loses its contents, so
 * that its request is refused and the connection stays. */
function passShallow(message: AnyMessage, to: TransformStreamDefaultController<AnyMessage>): void {
  if (!isDeeperThan(message, maxJsonDepth)) {
    to.enqueue(message);
    return;
  }
  const { id, method } = { id: null, method: '', ...message };
  const isPlain = typeof id === 'string' || typeof id === 'number';
  if (method !== '') to.enqueue({ jsonrpc: '2.0', method, params: {}, ...(isPlain ? { id } : {}) });
  else if (isPlain) to.enqueue({ jsonrpc: '2.0', id, error: { code: -32_600, message: 'it is nested too deeply' } });
}

/** Returns the lines of `input`. One that is too long becomes a bracket that nothing closes, which the protocol refuses
 * with an answer. */
function bytesOf(input: NodeJS.ReadStream): ReadableStream<Uint8Array> {
  const lines = splitLines(input);
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await lines.next();
      if (done) {
        controller.close();
        return;
      }
      if (value === null) printError(`agent: A line is longer than ${maxLineBytes} bytes and was skipped.\n`);
      controller.enqueue(Buffer.from(`${value ?? '{'}\n`));
    },
  });
}

const introduction: InitializeResponse = {
  protocolVersion: 1,
  agentInfo: { name: 'agent', title: 'agent', version },
  agentCapabilities: {
    loadSession: true,
    mcpCapabilities: { http: true },
    promptCapabilities: { image: true, embeddedContext: true },
    sessionCapabilities: { list: {}, resume: {}, close: {} },
  },
  authMethods: [],
};

function createApp(options: RootOptions, sessions: EditorSessions): AgentApp {
  return agent({ name: 'agent' })
    .onRequest(methods.agent.initialize, ({ params }) => {
      sessions.showsForms = Boolean(params.clientCapabilities?.elicitation?.form);
      return introduction;
    })
    .onRequest(methods.agent.session.new, async ({ client, params }) => {
      const session = await sessions.create(client, params);
      session.begin();
      return { sessionId: session.id, ...session.state() };
    })
    .onRequest(methods.agent.session.load, async ({ client, params }) => {
      const session = await sessions.open(client, params, params.sessionId);
      await session.replay();
      session.begin();
      return session.state();
    })
    .onRequest(methods.agent.session.resume, async ({ client, params }) => {
      const session = await sessions.open(client, params, params.sessionId);
      session.begin();
      return session.state();
    })
    .onRequest(methods.agent.session.prompt, async ({ client, params, signal }) => {
      const { sessionId } = params;
      const cancel = (): void => {
        sessions.cancel(sessionId);
      };
      signal.addEventListener('abort', cancel);
      try {
        return await sessions.prompt(client, sessionId, params.prompt);
      } finally {
        signal.removeEventListener('abort', cancel);
      }
    })
    .onNotification(methods.agent.session.cancel, ({ params }) => {
      sessions.cancel(params.sessionId);
    })
    .onRequest(methods.agent.session.setMode, ({ params }) => {
      sessions.find(params.sessionId).setMode(params.modeId);
      return {};
    })
    .onRequest(methods.agent.session.setConfigOption, async ({ params }) => ({
      configOptions: await refusing(() => sessions.find(params.sessionId).setOption(params.configId, params.value)),
    }))
    .onRequest(methods.agent.session.list, async ({ params }) => await refusing(() => listSessionPage(options, params)))
    .onRequest(methods.agent.session.close, async ({ params }) => {
      await sessions.close(params.sessionId);
      return {};
    });
}

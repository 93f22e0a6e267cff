import { dispatch } from '../../agent/dispatch.js';
import type { DispatchDeps } from '../../agent/deps.js';
import { createRecorder } from '../../agent/recorder.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { type EndingSignal, endingSignals, onEndingSignal } from '../../cli/ending.js';
import type { RootOptions } from '../../cli/options.js';
import { askLine, columns, errorsAreTerminal, print, printData, printJson, printListing } from '../../cli/print.js';
import { sessionHost } from '../../cli/session/assemble.js';
import { openPolicy } from '../../cli/session/open-policy.js';
import { openSandbox, openToolbox } from '../../cli/session/open-tools.js';
import { setUp, type Setup } from '../../cli/settings.js';
import { type Envelope, isError } from '../../core/envelope.js';
import type { Answer, Approver } from '../../core/policy.js';
import { didYouMean, escapedJson } from '../../core/text.js';
import type { Binding, Registry } from '../../core/tool.js';
import { decisionText } from '../../terminal/sanitize.js';
import { CliError, exit } from '../cli-error.js';

type Options = RootOptions & { readonly json?: boolean };

export async function listTools(options: Options): Promise<number> {
  const tools = (await openToolbox(await setUp(options), options.tools)).registry.list();
  printListing(
    options.json,
    tools.map(({ name, description, input_schema, effect, toolset }) => ({
      name,
      description,
      input_schema,
      effect,
      toolset,
    })),
    () => columns(tools.map((tool) => [tool.name, tool.toolset, tool.effect, tool.description])),
  );
  return exit.done;
}

export async function showTool(name: string, options: Options): Promise<number> {
  const { registry } = await openToolbox(await setUp(options), undefined);
  const tool = registry.get(name) ?? unknown(name, registry);
  if (options.json)
    printJson(
      {
        name,
        description: tool.description,
        input_schema: tool.input_schema,
        effect: tool.effect,
        toolset: tool.toolset,
      },
      2,
    );
  else
    print(
      `${tool.name} (${tool.toolset}, ${tool.effect})\n${tool.description}\n\n${JSON.stringify(tool.input_schema, null, 2)}\n`,
    );
  return exit.done;
}

function unknown(name: string, registry: Registry): never {
  const names = registry.list().map((tool) => tool.name);
  throw new CliError(
    exit.usage,
    `there is no tool \`${name}\``,
    `${didYouMean(name, names)} Known: ${names.join(', ')}`.trim(),
  );
}

/** Policy's own word on a call: nothing runs, `ask` stays `ask`. */
export async function checkTool(name: string, json: string, options: Options): Promise<number> {
  const setup = await setUp(options);
  const { registry } = await openToolbox(setup, options.tools);
  if (!registry.get(name)) unknown(name, registry);
  const binding = registry.bind({ name, arguments: json });
  if (!binding.ok) throw new CliError(exit.usage, binding.error.error, `agent tools show ${name} prints its schema.`);
  const { risk, decision, reasons, sandbox, targets } = await openPolicy(setup).assess(binding.bound, setup.cwd);
  printJson({ risk, decision, reasons, sandbox, ...(targets ? { targets } : {}) });
  return exit.done;
}

/** One call through the whole path, without a session. */
export async function callTool(name: string, json: string, options: Options): Promise<number> {
  const setup = await setUp(options);
  const { registry, processes } = await openToolbox(setup, options.tools, await openSandbox(setup));
  const binding = registry.bind({ name, arguments: json });
  const stop = new AbortController();
  onEndingSignal((signal) => {
    stop.abort(signal);
  });
  const envelope = await runCall(setup, registry, { name, json, binding, signal: stop.signal });
  await processes.killBackground();
  printData(`${escapedJson(setup.guard.json(JSON.stringify(envelope)))}\n`);
  if (stop.signal.aborted) return endingSignals[stop.signal.reason as EndingSignal];
  return isError(envelope) ? exit.failed : exit.done;
}

interface Call {
  readonly name: string;
  readonly json: string;
  readonly binding: Binding;
  readonly signal: AbortSignal;
}

async function runCall(setup: Setup, registry: Registry, { name, json, binding, signal }: Call): Promise<Envelope> {
  const call = { id: 'call_1', type: 'function', function: { name, arguments: json }, response_id: 'r1' } as const;
  return (await dispatch(standalone(setup, registry), { call, binding }, signal)).outcome.envelope;
}

/** What `dispatch` needs where there is no session: what it records goes to memory. */
function standalone(setup: Setup, registry: Registry): DispatchDeps {
  const host = sessionHost(setup.log);
  return {
    tools: { registry, policy: openPolicy(setup) },
    approval: { ...terminalApprover(), canAsk: false, grants: new Set() },
    cwd: setup.cwd,
    record: createRecorder({
      store: openMemoryStore({ now: host.now }),
      sessionId: 'call',
      now: host.now,
      emit: () => undefined,
      restored: [],
    }),
    emit: () => undefined,
    limits: setup.config.limits,
    host,
    secrets: setup.guard,
  };
}

/** Asks on the terminal where there is one on both sides; default No. */
function terminalApprover(): Approver {
  if (!process.stdin.isTTY || !errorsAreTerminal()) return { ask: () => Promise.resolve({ answer: 'unavailable' }) };
  return {
    async ask(question, signal): Promise<Answer> {
      try {
        const text = [question.title, question.argumentsText, ...question.verdict.reasons]
          .map((line) => decisionText(line, { lines: false }))
          .join('\n');
        const reply = await askLine(`${text}\nRun it? [y/N] `, signal);
        return /^y(es)?$/i.test(reply.trim()) ? { answer: 'once' } : { answer: 'deny' };
      } catch {
        return { answer: 'deny' };
      }
    },
  };
}

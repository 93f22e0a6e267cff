import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { dispatch, type Dispatched } from '../../../../src/kernel/agent/dispatch.js';
import { createRecorder } from '../../../../src/kernel/agent/recorder.js';
import { createPathFacts } from '../../../../src/app/open-policy.js';
import type { PermissionAnswer, ApprovalMode, Question } from '../../../../src/kernel/core/policy.js';
import type { Registry } from '../../../../src/kernel/core/tool.js';
import { createPolicy } from '../../../../src/kernel/permissions/permission-policy.js';
import { createSecretPaths } from '../../../../src/kernel/permissions/guarded-paths.js';
import { namesSecret } from '../../../../src/kernel/permissions/shell/words.js';
import { openMemoryStore } from '../../../../src/kernel/store/memory-store.js';
import { builtinTools } from '../../../../src/kernel/tools/builtin.js';
import { createProcessRunner, type ProcessRunner } from '../../../../src/kernel/tools/process/runner.js';
import { createRehearsals, type Rehearsals } from '../../../../src/kernel/tools/rehearsal/open-rehearsals.js';
import { createRegistry } from '../../../../src/kernel/tools/registry.js';
import { defaultDeny } from '../../permissions/judging.js';

export interface RigOptions {
  /** Absolute, links resolved. */
  readonly workspace: string;
  readonly home: string;
  readonly approval?: ApprovalMode;
  readonly planning?: boolean;
  /** False: as on a machine where no command can be rehearsed. */
  readonly rehearses?: boolean;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** What the person answers; nobody can be asked without it. */
  readonly answer?: (question: Question) => PermissionAnswer;
  /** The folder of journals; beside the home directory unless given. */
  readonly journals?: string;
  /** Processes end also where this one is killed. */
  readonly watched?: boolean;
}

export interface Rig {
  readonly processes: ProcessRunner;
  readonly rehearsals: Rehearsals;
  readonly questions: readonly Question[];
  /** Sends a command through policy, question and tool, as a call of a model. */
  call(command: string, more?: Readonly<Record<string, unknown>>): Promise<Dispatched>;
  close(): Promise<void>;
}

export function createRig(options: RigOptions): Rig {
  const { workspace, home, rehearses = true, answer } = options;
  const env: Record<string, string | undefined> = { ...process.env, HOME: home, ...options.env };
  const processes = createProcessRunner({
    marker: { name: '_AGENT_RIG', value: randomUUID() },
    watched: options.watched ?? false,
  });
  const journals = options.journals ?? join(home, '..', 'journals');
  mkdirSync(journals, { recursive: true });
  const secrets = createSecretPaths(defaultDeny, home);
  const rehearsals = createRehearsals({
    processes,
    workspace,
    home,
    path: env['PATH'] ?? '',
    isSecret: (path) => secrets.matches(path),
    isSecretVariable: namesSecret,
    journals,
  });
  const registry = registryOf(
    builtinTools({
      processes,
      shell: 'bash',
      maxReadBytes: 1_048_576,
      encoding: null,
      modelOutputBytes: 32_768,
      timeoutS: 120,
      maxTimeoutS: 600,
      env,
      protectedEnv: [],
      ...(rehearses ? { rehearsals: () => Promise.resolve(rehearsals) } : {}),
    }),
  );
  const facts = createPathFacts({ home, workspace, ownPaths: [join(home, '.config', 'agent')], env });
  const policy = createPolicy({
    approval: options.approval ?? 'mutating',
    planning: options.planning ?? false,
    sandbox: 'off',
    facts,
    fsDeny: defaultDeny,
  });
  const questions: Question[] = [];
  let calls = 0;
  return {
    processes,
    rehearsals,
    questions,
    async call(command, more = {}) {
      const id = `call_${++calls}`;
      const text = JSON.stringify({ command, ...more });
      const binding = await registry.bind({ name: 'bash', arguments: text });
      const call = { id, type: 'function', function: { name: 'bash', arguments: text }, response_id: 'r' } as const;
      return await dispatch(
        {
          tools: { registry, policy, capture: { hash: sha256, maxBlobBytes: 8_388_608, watch: null } },
          approval: {
            ask: (question) => {
              questions.push(question);
              return Promise.resolve(answer?.(question) ?? { answer: 'unavailable' });
            },
            canAsk: answer !== undefined,
            grants: new Set(),
            rules: new Map(),
            asked: new Map(),
          },
          cwd: workspace,
          record: createRecorder({
            store: openMemoryStore({ now: Date.now }),
            sessionId: 'rig',
            now: Date.now,
            emit: () => undefined,
            restored: [],
          }),
          emit: () => undefined,
          limits: { maxToolTurns: 10, maxToolCalls: 10, loopLimit: 0, maxOutputBytes: 1_048_576 },
          host: {
            now: Date.now,
            schedule: () => () => undefined,
            sha256: (input) => sha256(Buffer.from(input)),
            log: () => undefined,
          },
        },
        { call, content: command, binding },
        new AbortController().signal,
      );
    },
    close: () => processes.killBackground(),
  };
}

function registryOf(tools: ReturnType<typeof builtinTools>): Registry {
  const registry = createRegistry({ maxOutputBytes: 1_048_576, now: Date.now });
  for (const tool of tools) registry.register(tool);
  return registry;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

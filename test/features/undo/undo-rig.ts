import { createHash } from 'node:crypto';
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createSession, type Session } from '../../../src/kernel/agent/session.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { ModelChunk, Provider } from '../../../src/kernel/core/provider.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { createPathFacts } from '../../../src/app/open-policy.js';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { type ChangeWatchOptions, createChangeWatch } from '../../../src/kernel/tools/changes/watch-files.js';
import { sha256Of } from '../../../src/kernel/tools/files/atomic-write.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';

export type Step = readonly [name: 'file_write' | 'file_edit' | 'bash', args: Readonly<Record<string, unknown>>];

const ref = { provider: 'scripted', api: 'openai-chat', model: 'm' } as const;
/** A session, and a way to make calls in it in one turn. */
export interface RiggedSession {
  readonly session: Session;
  /** Returns the results. `prompt`: the message of the turn. */
  run(steps: readonly Step[], prompt?: string): Promise<readonly Event[]>;
}

export interface UndoRig extends RiggedSession {
  readonly root: string;
  readonly store: Store;
  readonly file: string;
  /** Opens another session in the same directory and the same store. */
  another(id: string): RiggedSession;
}

/** A session over real tools, real files and a real database. */
export async function undoRig(
  files: Readonly<Record<string, string>> = {},
  watch: Partial<ChangeWatchOptions> = {},
): Promise<UndoRig> {
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'agent-undo-')));
  onTestFinished(() => {
    rmSync(place, { recursive: true, force: true });
  });
  const root = join(place, 'work');
  mkdirSync(root);
  for (const [path, text] of Object.entries(files)) put(join(root, path), text);
  const file = join(place, 'agent.db');
  const { store } = await openSqliteStore({ file, now: Date.now });
  onTestFinished(() => store.close());
  const registry = createRegistry({
    maxOutputBytes: 1_048_576,
    now: () => performance.now(),
  });
  const processes = createProcessRunner({ marker: { name: '_AGENT_TEST', value: place } });
  for (const tool of builtinTools({
    processes,
    env: { ...process.env, HOME: place },
    protectedEnv: [],
    shell: 'bash',
    encoding: null,
    maxReadBytes: 1_048_576,
    modelOutputBytes: 32_768,
    timeoutS: 20,
    maxTimeoutS: 20,
  }))
    registry.register(tool);
  const another = (id: string): RiggedSession => rigSession({ id, store, registry, place, root, watch });
  return { root, store, file, another, ...another('s1') };
}

interface SessionPlace {
  readonly id: string;
  readonly store: Store;
  readonly registry: ReturnType<typeof createRegistry>;
  readonly place: string;
  readonly root: string;
  readonly watch: Partial<ChangeWatchOptions>;
}

function rigSession({ id, store, registry, place, root, watch }: SessionPlace): RiggedSession {
  const script: (readonly ModelChunk[])[] = [];
  const provider: Provider = {
    async *stream() {
      yield* (
        script.shift() ?? [
          { type: 'text', text: 'Done.' },
          { type: 'end', stop: 'stop' },
        ]
      );
    },
  };
  const session = createSession({
    record: {
      store,
      restored: [],
      opening: [{ kind: 'system', content: 'S', data: null }],
      row: {
        id,
        parentId: null,
        cwd: root,
        title: null,
        provider: null,
        model: null,
        createdAt: 1,
        updatedAt: 1,
      },
    },
    model: { provider, ref },
    models: {},
    connect: () => Promise.resolve(provider),
    interactive: false,
    limits: { maxToolTurns: 50, maxToolCalls: 100, loopLimit: 6, maxOutputBytes: 1_048_576 },
    host: {
      now: Date.now,
      schedule: () => () => undefined,
      sha256: (text) => createHash('sha256').update(text).digest('hex'),
      log: () => undefined,
    },
    tools: {
      registry,
      policy: createPolicy({
        approval: 'never',
        sandbox: 'off',
        facts: createPathFacts({ home: place, workspace: root, ownPaths: [] }),
        fsDeny: [],
      }),
      capture: {
        hash: sha256Of,
        maxBlobBytes: 8 * 1024 * 1024,
        watch: createChangeWatch({ env: process.env, isSecret: () => false, ...watch }),
      },
    },
  });
  let count = 0;
  return {
    session,
    run: async (steps, prompt = 'go') => {
      const from = session.events().length;
      script.push(
        ...steps.map(([name, args]): readonly ModelChunk[] => [
          { type: 'tool_call', call: { id: `${id}-c${++count}`, name, arguments: JSON.stringify(args) } },
          { type: 'end', stop: 'tool' },
        ]),
      );
      await session.submit(prompt);
      return session
        .events()
        .slice(from)
        .filter((event) => event.kind === 'tool_result');
    },
  };
}

export function put(path: string, text: string | Uint8Array, mode?: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  if (mode !== undefined) chmodSync(path, mode);
}

/** Every path below `root` with what it is: folder, link and target, or mode and hash. */
export function treeOf(root: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    readdirSync(root, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((name) => {
        const path = join(root, name);
        const stats = lstatSync(path);
        if (stats.isDirectory()) return [name, 'folder'];
        return [
          name,
          stats.isSymbolicLink()
            ? `-> ${readlinkSync(path)}`
            : `${(stats.mode & 0o7777).toString(8)} ${createHash('sha256').update(readFileSync(path)).digest('hex')}`,
        ];
      }),
  );
}

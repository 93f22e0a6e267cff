import { afterEach, expect, test } from 'vitest';
import { at, type Json, type Message, type Path, placesOf, replaced } from '../json-places.js';
import {
  answerOf,
  newerAnswerOf,
  openPool,
  ownMessages,
  type Pool,
  type Script,
  scripted,
  validResults,
  type Wire,
} from './hostile-server.js';

/** More of the same: `AGENT_FAULTS=all`. */
const isThorough = process.env['AGENT_FAULTS'] === 'all';
const impatient = { command: 'x', startup_timeout_ms: 100, timeout_ms: 100 };
const methods = Object.keys(validResults);

const opened: Pool[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ servers }) => servers.close()));
});

/** Plays a whole session against a server, and returns what came of it. Fails where anything is thrown or kept waiting. */
async function session(
  script: () => Script,
  entry: object = { command: 'x' },
): Promise<{
  readonly pool: Pool;
  readonly tools: readonly string[];
  readonly outcomes: Readonly<Record<string, string>>;
  readonly problem: string | null;
}> {
  const pool = openPool({ tried: entry }, scripted(script));
  opened.push(pool);
  await pool.servers.discover(new AbortController().signal);
  const problem = pool.servers.facts()[0]?.problem ?? null;
  const tools = pool.servers.tools().map(({ ownName }) => ownName);
  const first = tools.length === 0 ? null : await pool.call('good');
  const read = await pool.servers.ask('tried', (to) => to.read('note://a', new AbortController().signal));
  const prompt = await pool.servers.ask('tried', (to) => to.prompt('greet', {}));
  // Where the server is broken for good the next call may fail, but is answered.
  const again = tools.length === 0 ? null : await pool.call('good');
  const outcomes = Object.fromEntries(
    Object.entries({ first, read, prompt, again }).map(([name, called]) => [
      name,
      called === null ? 'no tool' : called.kind === 'failed' ? `failed: ${called.problem}` : called.kind,
    ]),
  );
  return { pool, tools, outcomes, problem };
}

/** What a person can read: one line, and no words about versions of the protocol where they are not at fault. */
function isSentence(problem: string): boolean {
  return (
    problem.trim() !== '' && !problem.includes('\n') && !/ReferenceError|TypeError|RangeError|undefined/.test(problem)
  );
}

/** What holds whatever the server does. */
function holds({ pool, tools, outcomes, problem }: Awaited<ReturnType<typeof session>>): void {
  if (tools.length === 0) expect(problem ?? '', 'a reason').toSatisfy(isSentence);
  for (const outcome of Object.values(outcomes))
    if (outcome.startsWith('failed: ')) expect(outcome.slice(8)).toSatisfy(isSentence);
  expect(pool.said.length).toBeLessThanOrEqual(3);
  for (const said of pool.said) expect(said).toSatisfy(isSentence);
  expect(pool.logged).not.toContain('a message was not handled');
}

const valid: Script = (message, { write }) => {
  if (message['id'] !== undefined && message['method'] !== undefined) write(`${JSON.stringify(answerOf(message))}\n`);
};

test('a valid server offers all that it has', async () => {
  const { pool, tools, outcomes, problem } = await session(() => valid);
  expect({ tools, outcomes, problem, said: pool.said }).toEqual({
    tools: ['good', 'rich', 'last'],
    outcomes: { first: 'answered', read: 'answered', prompt: 'answered', again: 'answered' },
    problem: null,
    said: [],
  });
});

const wrongValues: readonly (Json | undefined)[] = [undefined, null, true, 7, 'text', [], {}, [null], { a: { b: [] } }];

/** Wrong values for a place: those of another type than the valid one. A few of them, others at each place. */
function wrongAt(value: Json, place: number): readonly (Json | undefined)[] {
  const typeOf = (one: Json | undefined): string => (Array.isArray(one) ? 'array' : one === null ? 'null' : typeof one);
  const others = wrongValues.filter((wrong) => typeOf(wrong) !== typeOf(value) || Array.isArray(value));
  return isThorough ? others : others.filter((_wrong, index) => (index + place) % 3 === 0);
}

/** Answers everything as it should, but one answer of one method with another value at one place. */
function wrongAnswer(method: string, path: Path, by: Json | undefined, answers: typeof answerOf): () => Script {
  return () => {
    let isDone = false;
    return (message, wire) => {
      const isLaterPage = 'cursor' in ((message['params'] ?? {}) as Message);
      const answer = answers(message);
      if (isDone || isLaterPage || message['method'] !== method) {
        if (message['id'] !== undefined && message['method'] !== undefined) wire.write(`${JSON.stringify(answer)}\n`);
        return;
      }
      isDone = !/^initialize$|^server\/discover$|^tools\/list$/.test(method);
      wire.write(`${JSON.stringify({ ...answer, result: replaced(answer['result'] ?? null, path, by) })}\n`);
    };
  };
}

/** Fields without which a thing cannot be used. */
const needed: Readonly<Record<string, RegExp>> = {
  initialize: /^protocolVersion$|^$/,
  'server/discover': /^supportedVersions(?:\.0)?$|^$/,
  'tools/list': /^tools$|^$/,
};

test('a valid server of the newest protocol offers all that it has', async () => {
  const { pool, tools, outcomes, problem } = await session(() => (message, { write }) => {
    if (message['id'] !== undefined) write(`${JSON.stringify(newerAnswerOf(message))}\n`);
  });
  expect({ tools, outcomes, problem, said: pool.said }).toEqual({
    tools: ['good', 'rich', 'last'],
    outcomes: { first: 'answered', read: 'answered', prompt: 'answered', again: 'answered' },
    problem: null,
    said: [],
  });
});

const newerMethods = ['server/discover', ...methods.filter((method) => method !== 'initialize')];

test.each([
  ...methods.map((method) => ['2025-11-25', method, answerOf] as const),
  ...newerMethods.map((method) => ['2026-07-28', method, newerAnswerOf] as const),
])(
  '%s: one wrong field in the answer to %s costs no more than itself',
  async (_version, method, answers) => {
    const result = answers({ method, params: {} })['result'] ?? {};
    for (const [index, path] of placesOf(result).entries())
      for (const wrong of wrongAt(at(result, path), index)) {
        const name = `${method} ${path.join('.')} = ${JSON.stringify(wrong)}`;
        // What is not there cannot be missed.
        if (wrong === undefined && /^capabilities\.tools$|^tools\.\d$/.test(path.join('.'))) continue;
        const found = await session(wrongAnswer(method, path, wrong, answers));
        holds(found);
        const { tools, outcomes, pool } = found;
        if (needed[method]?.test(path.join('.')) === true) continue;
        const isGoodTool = method === 'tools/list' && path[0] === 'tools' && path[1] === 0;
        if (!isGoodTool) expect(tools, name).toContain('good');
        const isNeededByRich = /^tools\.1(?:\.name|\.inputSchema(?:\.type)?)?$/.test(path.join('.'));
        if (method === 'tools/list' && path[0] === 'tools' && path[1] === 1) {
          if (!isNeededByRich) expect(tools, name).toContain('rich');
          else if (!tools.includes('rich')) expect(pool.said, name).toHaveLength(1);
        }
        // An answer that cannot be used fails its own request, not the next one.
        expect(outcomes['again'], name).toBe(tools.includes('good') ? 'answered' : 'failed: there is no tool good');
      }
  },
  120_000,
);

test.each(ownMessages.map((message) => [JSON.stringify(message['method']), message] as const))(
  'one wrong field in %s of the server does no harm',
  async (_method, own) => {
    for (const [index, path] of placesOf(own).entries())
      for (const wrong of wrongAt(at(own, path), index)) {
        const found = await session(() => (message, wire) => {
          if (message['method'] === 'tools/call') wire.write(`${JSON.stringify(replaced(own, path, wrong))}\n`);
          valid(message, wire);
        });
        holds(found);
        const name = `${path.join('.')} = ${JSON.stringify(wrong)}`;
        expect([found.tools.length, found.outcomes['again']], name).toEqual([3, 'answered']);
      }
  },
  120_000,
);

const flood = (message: object, times: number): string =>
  `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`.repeat(times);
const junk = [
  '\uFEFF',
  '\u001B[32mready\u001B[0m\n',
  '\n\n  \n',
  'Listening on stdio\n',
  '{"level":"info"}\n',
  '[1,2]\n',
  '{"jsonrpc":\n',
  Buffer.from([0xff, 0xfe, 0, 0x0a]),
];

/** What a server does around a message. True: it does nothing more. */
const faults: Readonly<Record<string, (wire: Wire) => boolean>> = {
  exit: ({ complain, exit }) => {
    complain('the disk is full\n');
    exit(3);
    return true;
  },
  hang: () => true,
  junk: ({ write }) => {
    for (const line of junk) write(line);
    return false;
  },
  'a flood of logs': ({ write, complain }) => {
    write(flood({ method: 'notifications/message', params: { level: 'info', data: 'x' } }, 2000));
    complain('words\n'.repeat(20_000));
    return false;
  },
  'a flood of list_changed': ({ write }) => {
    write(flood({ method: 'notifications/tools/list_changed' }, 500));
    return false;
  },
  'a flood of questions': ({ write }) => {
    for (let id = 0; id < 200; id++)
      write(
        flood(
          {
            id: `q${id}`,
            method: 'elicitation/create',
            params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
          },
          1,
        ),
      );
    return false;
  },
  'answers to nothing': ({ write }) => {
    write(flood({ id: 999, result: {} }, 500) + flood({ id: null, result: null }, 500));
    return false;
  },
  'deep nesting': ({ write }) => {
    write(`{"jsonrpc":"2.0","method":"x","params":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}\n`);
    return false;
  },
};

/** Breaks a session at one message, once or for good. */
function faulty(method: string, when: string, fault: (wire: Wire) => boolean): () => Script {
  return () => {
    let isSilent = false;
    return (message, wire) => {
      if (isSilent || message['method'] === undefined) return;
      if (message['method'] !== method) {
        valid(message, wire);
        return;
      }
      const line = `${JSON.stringify(answerOf(message))}\n`;
      const half = when === 'before' ? 0 : when === 'during' ? Math.floor(line.length / 2) : line.length;
      if (message['id'] !== undefined) wire.write(line.slice(0, half));
      isSilent = fault(wire);
      if (!isSilent && message['id'] !== undefined) wire.write(line.slice(half));
    };
  };
}

const moments = [...methods, 'notifications/initialized'].flatMap((method) =>
  ['before', 'during', 'after'].map((when) => [when, method] as const),
);

test.each(Object.keys(faults))(
  '%s at any moment of a session ends nothing but that server',
  async (name) => {
    const fault = faults[name] ?? (() => false);
    for (const [when, method] of moments) {
      // A line that is broken in the middle is no message: a later member says so.
      if (when === 'during' && !['exit', 'hang'].includes(name)) continue;
      const found = await session(faulty(method, when, fault), name === 'hang' ? impatient : undefined);
      holds(found);
      const place = `${name} ${when} ${method}`;
      if (!['exit', 'hang'].includes(name))
        expect([found.tools.length, found.outcomes['again']], place).toEqual([3, 'answered']);
      if (['tools/call', 'resources/read', 'prompts/get'].includes(method)) expect(found.tools, place).toHaveLength(3);
      if (name === 'exit' && when !== 'after' && method === 'tools/call')
        expect(found.outcomes['first'], place).toBe('failed: it ended with exit code 3; its output: the disk is full');
    }
  },
  120_000,
);

const big = 'x'.repeat(17 * 1024 * 1024);

test.each(['tools/list', 'tools/call', 'resources/read'])(
  'an answer to %s of more than 16 MiB fails it at once',
  async (method) => {
    const script = (): Script => (message, wire) => {
      if (message['method'] !== method) valid(message, wire);
      // The id comes last, as some write it.
      else
        wire.write(
          `{"jsonrpc":"2.0","result":{"tools":[],"content":[{"type":"text","text":"${big}"}]},"id":${JSON.stringify(message['id'])}}\n`,
        );
    };
    const pool = openPool({ tried: { command: 'x' } }, scripted(script));
    opened.push(pool);
    await pool.servers.discover(new AbortController().signal);
    const reason = 'it answered with more than 16 MiB, which was dropped';
    if (method === 'tools/list') expect(pool.servers.facts()[0]?.problem).toBe(reason);
    else if (method === 'tools/call') expect(await pool.call('good')).toEqual({ kind: 'failed', problem: reason });
    else
      expect(await pool.servers.ask('tried', (to) => to.read('note://a', new AbortController().signal))).toEqual({
        kind: 'failed',
        problem: reason,
      });
  },
);

test('a line that is broken fails the call that it answers, at once', async () => {
  const script = (): Script => (message, wire) => {
    if (message['method'] === 'tools/call')
      wire.write(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":{"content":[{"ty\n`);
    else valid(message, wire);
  };
  const pool = openPool({ tried: { command: 'x' } }, scripted(script));
  opened.push(pool);
  await pool.servers.discover(new AbortController().signal);
  expect(await pool.call('good')).toEqual({ kind: 'failed', problem: 'it answered with a line that is not JSON' });
});

test('messages in batches, with ids as texts, without the version and with words before them are understood', async () => {
  const forms: readonly ((answer: Message) => string)[] = [
    (answer) => `[${JSON.stringify(answer)}]`,
    (answer) => JSON.stringify({ ...answer, id: JSON.stringify(answer['id']) }),
    ({ jsonrpc: _version, ...answer }) => JSON.stringify(answer),
    (answer) => `Loading the model... ${JSON.stringify(answer)}`,
    (answer) => `\u001B[32m\uFEFF  ${JSON.stringify(answer)}\u001B[0m\r`,
    (answer) => JSON.stringify({ ...answer, error: null, extra: 1 }),
  ];
  for (const form of forms) {
    const { tools, outcomes } = await session(() => (message, { write }) => {
      if (message['id'] !== undefined && message['method'] !== undefined) write(`${form(answerOf(message))}\n`);
    });
    expect([tools.length, outcomes['again']], form.toString()).toEqual([3, 'answered']);
  }
});

test('10,000 tools are taken, and those that cannot be used are named in one sentence', async () => {
  const tools = Array.from({ length: 10_000 }, (_, index) => ({
    name: `t${index}`,
    inputSchema: index % 2 === 0 ? { type: 'object' } : 'none',
  }));
  const pool = openPool(
    { tried: { command: 'x' } },
    scripted(() => (message, wire) => {
      if (message['method'] === 'tools/list')
        wire.write(`${JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools } })}\n`);
      else valid(message, wire);
    }),
  );
  opened.push(pool);
  await pool.servers.discover(new AbortController().signal);
  expect(pool.servers.tools()).toHaveLength(5000);
  expect(pool.said).toEqual([
    'The server tried offers 5000 invalid entries, which are skipped: "t1": its input schema is not an object; "t3": its input schema is not an object; "t5": its input schema is not an object and 4997 more.',
  ]);
});

test('of two tools with one name the first counts, and entries without a use are named', async () => {
  const list = (...entries: readonly Json[]) =>
    session(() => (message, wire) => {
      if (message['method'] === 'tools/list')
        wire.write(
          `${JSON.stringify({ jsonrpc: '2.0', id: message['id'], result: { tools: [{ name: 'good' }, ...entries] } })}\n`,
        );
      else valid(message, wire);
    });
  const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as Json;
  const cases: readonly (readonly [Json, string])[] = [
    [{ name: 'good' }, '"good": it is listed twice'],
    [{ name: 7 }, 'one without a name: it has no name'],
    [null, 'one without a name: it is not an object'],
    [{ name: 'bad', inputSchema: { type: 'string' } }, '"bad": its input schema is not an object'],
    [{ name: 'bad', inputSchema: 'none' }, '"bad": its input schema is not an object'],
  ];
  for (const [entry, problem] of cases) {
    const { tools, pool } = await list(entry);
    expect([tools, pool.said]).toEqual([['good'], [`The server tried offers ${problem}; that tool is left out.`]]);
  }
  const text = `{"tools":[{"name":"good"},{"name":"bad","inputSchema":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}}]}`;
  expect(deep).not.toBeNull();
  const { tools, pool } = await session(() => (message, wire) => {
    if (message['method'] === 'tools/list')
      wire.write(`{"jsonrpc":"2.0","id":${JSON.stringify(message['id'])},"result":${text}}\n`);
    else valid(message, wire);
  });
  expect([tools, pool.said]).toEqual([
    ['good'],
    ['The server tried offers "bad": it is nested too deeply; that tool is left out.'],
  ]);
});

test('a page that cannot be read leaves the pages before it', async () => {
  const { tools, pool } = await session(() => (message, wire) => {
    const { cursor } = (message['params'] ?? {}) as Message;
    if (message['method'] !== 'tools/list' || cursor === undefined) valid(message, wire);
    else
      wire.write(
        `${JSON.stringify({ jsonrpc: '2.0', id: message['id'], error: { code: 1, message: 'database is down' } })}\n`,
      );
  });
  expect(tools).toEqual(['good', 'rich']);
  expect(pool.said).toEqual([expect.stringContaining('database is down')]);
});

test('a server that says its tools have changed without end is asked at most once a second', async () => {
  let lists = 0;
  const { outcomes } = await session(() => (message, wire) => {
    if (
      message['method'] === 'tools/list' &&
      message['params'] !== undefined &&
      !('cursor' in (message['params'] as object))
    )
      lists++;
    if (message['method'] !== 'notifications/initialized')
      wire.write(flood({ method: 'notifications/tools/list_changed' }, 300));
    valid(message, wire);
  });
  expect(outcomes['again']).toBe('answered');
  expect(lists).toBeLessThanOrEqual(3);
});

test('a person who turns a question down is not asked the rest of a flood', async () => {
  const put: string[] = [];
  const answers: Json[] = [];
  const pool = openPool(
    { tried: { command: 'x' } },
    scripted(() => {
      let call: Json = null;
      return (message, wire) => {
        if (message['method'] === 'tools/call') {
          call = message['id'] ?? null;
          faults['a flood of questions']?.(wire);
        } else if (message['method'] === undefined) {
          answers.push(at(message, ['result', 'action']));
          if (answers.length === 200) wire.write(`${JSON.stringify(answerOf({ id: call, method: 'tools/call' }))}\n`);
        } else valid(message, wire);
      };
    }),
  );
  opened.push(pool);
  await pool.servers.discover(new AbortController().signal);
  const warned: string[] = [];
  const onWarning = (warning: Error): number => warned.push(warning.message);
  process.on('warning', onWarning);
  const called = await pool.call('good', (form) => {
    put.push(form.message);
    return Promise.resolve({ answer: 'declined' });
  });
  process.off('warning', onWarning);
  expect([called.kind, put.length, answers.length, warned]).toEqual(['answered', 1, 200, []]);
});

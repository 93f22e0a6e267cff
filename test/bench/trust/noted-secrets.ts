// Tries to keep each form of secret in a note, in a database of its own, and looks for it in the bytes of the files:
// npm run t:notes
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isError } from '../../../src/kernel/core/envelope.js';
import { knownSecrets } from '../../../src/kernel/secrets/known-secrets.js';
import { guardedNotes } from '../../../src/features/memory/guarded-notes.js';
import { registryOf } from '../../features/registered.js';
import { noSession, type ToolContext } from '../../../src/kernel/core/tool.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { memoryTools } from '../../../src/features/memory/remember.js';
import { noteTableSet } from '../../../src/features/memory/note-tables.js';

interface Form {
  readonly kind: string;
  readonly before?: string;
  readonly secret: readonly string[];
  readonly after?: string;
}

declare const AGENT_ROOT: string;

const forms = JSON.parse(readFileSync(join(AGENT_ROOT, 'fixtures/secrets/forms.json'), 'utf8')) as readonly Form[];
const ofVariables = forms.filter(({ kind }) => kind === 'environment').map(({ secret }) => secret.join(''));
const env = Object.fromEntries(ofVariables.map((value, index) => [`DEPLOY_${index}_SECRET`, value]));
const folder = mkdtempSync(join(tmpdir(), 'agent-notes-'));
const opened = await openSqliteStore({ file: join(folder, 'agent.db'), now: Date.now });
const notes = guardedNotes(await opened.tables(noteTableSet), { env, secrets: knownSecrets(env) });
const tools = registryOf(
  memoryTools({
    notes: () => Promise.resolve(notes),
    project: (cwd) => cwd,
    save: 'auto',
    search: () => Promise.resolve([]),
    redact: (text) => text,
  }),
);
const ctx: ToolContext = {
  cwd: '/work',
  session: noSession,
  signal: new AbortController().signal,
  sandbox: 'off',
  limits: { timeoutMs: null, maxOutputBytes: 1_048_576 },
  knownFiles: new Map(),
  eventOutput: () => null,
  progress: () => undefined,
};

/** Returns how the call ended: the code of its error, or `saved`. */
async function save(args: object): Promise<string> {
  const binding = await tools.bind({ name: 'save_note', arguments: JSON.stringify(args) });
  if (!binding.ok) return binding.error.code;
  const { envelope } = await binding.bound.tool.run(binding.bound.args, ctx);
  return isError(envelope) ? envelope.error : 'saved';
}

const ends = new Map<string, number>();
await save({ content: 'The keys are in the vault.' });
for (const { before = '', secret, after = '' } of forms) {
  const text = before + secret.join('') + after;
  for (const args of [{ content: text }, { content: `Keep this: ${text}` }, { content: 'x', tags: [text] }]) {
    const end = await save(args);
    const what = 'tags' in args ? 'as a tag' : 'as a text';
    ends.set(`${what}: ${end}`, (ends.get(`${what}: ${end}`) ?? 0) + 1);
  }
}
await opened.store.close();
const bytes = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'));
const stored = forms.filter(({ secret }) => bytes.some((file) => file.includes(secret.join(''))));
rmSync(folder, { recursive: true });
for (const [end, count] of ends) process.stdout.write(`${count} ${end}\n`);
process.stdout.write(
  `${forms.length} secrets, ${stored.length} stored: ${stored.map(({ kind }) => kind).join(', ')}\n`,
);
process.exitCode = stored.length === 0 ? 0 : 1;

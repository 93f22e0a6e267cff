import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileRows } from './files.js';
import { openModel } from './model.js';
import type { Place } from './program.js';
import { resumeRows } from './resume.js';
import { growthRows, startRows, turnRows, type Row } from './turns.js';

/** `npm run bench`: what the program costs by itself, beside no other program, as Markdown tables of medians. About
 * three minutes; nothing leaves this machine. */
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-bench-')));

function table(head: Row, rows: readonly Row[]): void {
  console.log(`\n| ${head.join(' | ')} |\n|${head.map((_, index) => (index === 0 ? ' --- ' : ' ---: ')).join('|')}|`);
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
}

const model = await openModel();
try {
  const place: Place = { home: join(folder, 'home'), work: join(folder, 'work'), modelUrl: model.url };
  for (const path of [place.home, place.work]) mkdirSync(path);
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`);
  table(['start', 'median of 7'], await startRows(place, model));
  table(['turn', 'median'], await turnRows(place, model));
  table(
    ['turns in one session', 'the first 20, a turn', 'the last 20, a turn', 'last request', 'most memory'],
    await growthRows(place, model),
  );
  table(['resume: events', 'start to request, median of 3', 'request', 'most memory'], await resumeRows(folder, model));
  table(['files', 'glob `**/*7.ts`', 'grep `needle`', '`rg needle`'], await fileRows(folder));
} finally {
  model.close();
  rmSync(folder, { recursive: true, force: true });
}

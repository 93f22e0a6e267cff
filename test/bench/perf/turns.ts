import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Model } from './model.js';
import { median, runProgram, type Place } from './program.js';

export type Row = readonly (string | number)[];

const runs = 7;
const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`;

/** The start: the process alone, help, and an answer without tools. */
export async function startRows(place: Place, model: Model): Promise<readonly Row[]> {
  model.play(() => ({ text: 'Hello.' }));
  const walls = { version: [] as number[], help: [] as number[], hello: [] as number[], request: [] as number[] };
  let megabytes = 0;
  for (let run = 0; run <= runs; run++) {
    const version = await runProgram(place, ['--version']);
    const help = await runProgram(place, ['--help']);
    model.seen.length = 0;
    const hello = await runProgram(place, ['-p', 'hi']);
    if (run === 0) continue;
    walls.version.push(version.wallMs);
    walls.help.push(help.wallMs);
    walls.hello.push(hello.wallMs);
    walls.request.push((model.seen[0]?.arrivedAt ?? 0) - hello.startedAt);
    megabytes = Math.max(megabytes, hello.mostMegabytes);
  }
  return [
    ['`--version`', ms(median(walls.version))],
    ['`--help`', ms(median(walls.help))],
    ['`-p hi`, start to first request', ms(median(walls.request))],
    ['`-p hi`, start to end', ms(median(walls.hello))],
    ['`-p hi`, most memory seen', `${megabytes.toFixed(0)} MB`],
  ];
}

/** From the end of an answer with one call to the arrival of the next request. */
async function turnTimes(
  place: Place,
  model: Model,
  turns: number,
  tool: string,
  args: unknown,
): Promise<{ readonly times: readonly number[]; readonly megabytes: number; readonly bytes: readonly number[] }> {
  model.play((answered) => (answered < turns ? { tool, args } : { text: 'Done.' }));
  const { mostMegabytes } = await runProgram(place, [
    '-p',
    'go',
    '--set',
    'loop_limit=0',
    '--set',
    'max_tool_turns=5000',
  ]);
  if (model.seen.length !== turns + 1) throw new Error(`${model.seen.length} requests for ${turns} turns`);
  const times = model.seen.slice(1).map(({ arrivedAt }, index) => arrivedAt - (model.seen[index]?.answeredAt ?? 0));
  return { times, megabytes: mostMegabytes, bytes: model.seen.map(({ bytes }) => bytes) };
}

export async function turnRows(place: Place, model: Model): Promise<readonly Row[]> {
  writeFileSync(join(place.work, 'read.txt'), 'a line to read\n'.repeat(20));
  const bash = await turnTimes(place, model, 100, 'bash', { command: 'echo turn' });
  const read = await turnTimes(place, model, 100, 'file_read', { path: 'read.txt' });
  model.play(() => ({ text: 'word '.repeat(20_000) }));
  const stream: number[] = [];
  for (let run = 0; run < 3; run++) stream.push((await runProgram(place, ['-p', 'go'])).wallMs);
  const stored = median(stream);
  return [
    ['tool turn, bash (`echo`)', ms(median(bash.times))],
    ['tool turn, file_read', ms(median(read.times))],
    ['answer of 20,000 tokens, start to end', ms(stored)],
  ];
}

/** One session of `turns` reads: what a turn costs at its beginning and at its end, and the memory of the program. */
export async function growthRows(place: Place, model: Model): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const turns of [20, 200, 2_000]) {
    const { times, megabytes, bytes } = await turnTimes(place, model, turns, 'file_read', { path: 'read.txt' });
    rows.push([
      turns,
      ms(median(times.slice(0, 20))),
      ms(median(times.slice(-20))),
      `${((bytes.at(-1) ?? 0) / 1000).toFixed(0)} kB`,
      `${megabytes.toFixed(0)} MB`,
    ]);
  }
  return rows;
}

// What ps(1) of macOS prints, for the options that are used here. The first argument is a folder where the kernel's
// list of processes is mounted, which nothing else of the simulation knows. Source: adv_cmds, ps/ps.c and ps/print.c.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

const [proc, ...words] = process.argv.slice(2);
const ticksPerSecond = 100;
const widths = { pid: 5, ppid: 5, pgid: 5, stat: 4, lstart: 28, command: 16 };
const isLeftAligned = { stat: true, lstart: true, command: true };
/** Programs of the system: the kernel does not show their environment. */
const restricted = /^\/(?:usr\/)?s?bin\//;

const columns = [];
let [all, environment, wide, only] = [false, false, 0, null];
for (let index = 0; index < words.length; index++) {
  const word = words[index];
  if (/^-[axwE]*o$/.test(word)) {
    if (word !== '-o') words.splice(index--, 1, word.slice(0, -1), '-o');
    else column(words[++index]);
  } else if (word === '-p') only = words[++index].split(',');
  else if (/^-[axwE]+$/.test(word)) {
    all ||= word.includes('a') && word.includes('x');
    environment ||= word.includes('E');
    wide += word.split('w').length - 1;
  } else {
    console.error(`ps: illegal option -- ${word}`);
    process.exit(1);
  }
}

/** What follows a `=` is the header, to the end of the argument. */
function column(word) {
  const [names, header] = word.split(/=(.*)/s);
  const list = names.split(/[ \t,]/);
  columns.push(...list.map((name, place) => ({ name, header: place === list.length - 1 ? header : undefined })));
}

const unknown = columns.find(({ name }) => !(name in widths));
if (unknown) {
  console.error(`ps: ${unknown.name}: keyword not found`);
  process.exit(1);
}
const bootSeconds = Number(/^btime (\d+)$/m.exec(readFileSync(`${proc}/stat`, 'utf8'))[1]);

function text(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

function described(id) {
  const stat = text(`${proc}/${id}/stat`);
  if (stat === '') return null;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  let program = '';
  try {
    program = readlinkSync(`${proc}/${id}/exe`);
  } catch {
    // another user's, or the kernel's
  }
  const entries = (name) => text(`${proc}/${id}/${name}`).split('\0').slice(0, -1).join(' ');
  const isZombie = fields[0] === 'Z';
  const shown = environment && !restricted.test(program) ? ` ${entries('environ')}` : '';
  return {
    pid: id,
    ppid: fields[1],
    pgid: fields[2],
    stat: `${isZombie ? 'Z' : fields[0] === 'R' ? 'R' : 'S'}${fields[3] === id ? 's' : ''}`,
    lstart: started(bootSeconds + Math.floor(Number(fields[19]) / ticksPerSecond)),
    command: isZombie
      ? '<defunct>'
      : `${entries('cmdline') || `(${/\((.*)\)/s.exec(stat)[1]})`}${shown}`.replaceAll('\n', '\\n'),
  };
}

/** `%c` of strftime in the C locale. */
function started(seconds) {
  const when = new Date(seconds * 1000);
  const [day, month, date, year] = when
    .toDateString()
    .split(' ')
    .map((part, at) => (at === 2 ? String(Number(part)) : part));
  return `${day} ${month} ${date.padStart(2)} ${when.toTimeString().slice(0, 8)} ${year}`;
}

const ids = readdirSync(proc).filter((name) => /^\d+$/.test(name) && (only ? only.includes(name) : all));
const rows = ids.map(described).filter((row) => row !== null);
if (columns.some(({ header }) => header !== ''))
  console.log(columns.map(({ name, header }) => header ?? name.toUpperCase()).join(' '));
for (const row of rows) {
  const line = columns
    .map(({ name }, at) => {
      const isLast = at === columns.length - 1;
      if (name === 'command' && isLast) return row.command;
      return isLeftAligned[name] ? row[name].padEnd(widths[name]) : row[name].padStart(widths[name]);
    })
    .join(' ');
  console.log(wide > 1 ? line : line.slice(0, wide === 1 ? 131 : 79));
}
process.exitCode = rows.length > 0 ? 0 : 1;

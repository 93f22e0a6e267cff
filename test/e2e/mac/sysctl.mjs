// What `sysctl -n NAME` of macOS prints. The first argument is a file with the name of this boot.
import { readFileSync } from 'node:fs';

const [boot, option, ...names] = process.argv.slice(2);
const values = { 'kern.bootsessionuuid': readFileSync(boot, 'utf8').trim() };
for (const name of names) {
  if (option === '-n' && name in values) console.log(values[name]);
  else {
    console.error(`sysctl: unknown oid '${name}'`);
    process.exitCode = 1;
  }
}

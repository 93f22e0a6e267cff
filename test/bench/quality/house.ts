// What a reader of this tree pays, beside what was set as its limits: npm run house [-- folder]
import { join } from 'node:path';
import { measureHouse } from '../../house-measures.js';

declare const AGENT_ROOT: string;

const measures = measureHouse(join(process.argv[2] ?? AGENT_ROOT, 'src'));
const rows: readonly (readonly [string, string, string])[] = [
  ['files', String(measures.files), '<= 262'],
  ['median of lines', String(measures.medianLines), '~130'],
  ['largest file, lines', String(measures.largest), '<= 500'],
  ['one importer', `${measures.oneImporterPercent.toFixed(1)} %`, '<= 25 %'],
  ['30 lines or fewer', `${measures.smallPercent.toFixed(1)} %`, '<= 8 %'],
  ['bytes a line', measures.bytesALine.toFixed(1), '<= 40'],
  ['lines over 120 columns', String(measures.linesOver120), '0'],
  ['names that stand twice', measures.doubledNames.join(' ') || '0', '0'],
  ['folders over 20 files', measures.crowdedFolders.join(' ') || '0', '0'],
  ['names that repeat their folder', measures.repeatedPrefixes.join(' ') || '0', '0'],
];
process.stdout.write('| `src/` | now | limit |\n| --- | --: | --: |\n');
for (const row of rows) process.stdout.write(`| ${row.join(' | ')} |\n`);

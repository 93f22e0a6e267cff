import clouds from '../../../config/commands/clouds.json' with { type: 'json' };
import files from '../../../config/commands/files.json' with { type: 'json' };
import git from '../../../config/commands/git.json' with { type: 'json' };
import interpreters from '../../../config/commands/interpreters.json' with { type: 'json' };
import media from '../../../config/commands/media.json' with { type: 'json' };
import network from '../../../config/commands/network.json' with { type: 'json' };
import packages from '../../../config/commands/packages.json' with { type: 'json' };
import readers from '../../../config/commands/readers.json' with { type: 'json' };
import services from '../../../config/commands/services.json' with { type: 'json' };
import shell from '../../../config/commands/shell.json' with { type: 'json' };
import starters from '../../../config/commands/starters.json' with { type: 'json' };
import system from '../../../config/commands/system.json' with { type: 'json' };
import text from '../../../config/commands/text.json' with { type: 'json' };
import wordLists from '../../../config/commands/words.json' with { type: 'json' };
import { builtinCodes } from './builtins.js';
import { cloudCodes, cloudTests } from './clouds.js';
import { archiveCodes, fileCodes } from './file-programs.js';
import { findCodes } from './finders.js';
import { gitCodes, gitTests } from './git.js';
import { interpreterCodes } from './interpreters.js';
import type { NamedCode } from './invocation.js';
import { networkCodes, networkTests } from './network-programs.js';
import { packageCodes, packageTests } from './packages.js';
import type { CommandFile } from './programs.js';
import { readerCodes } from './readers.js';
import { awkCodes, sedCodes } from './sed-and-awk.js';
import { serviceCodes } from './services.js';
import { compilerCodes, mediaCodes, systemCodes } from './system.js';
import { knownPrograms } from './tables.js';
import { wrapperCodes } from './wrappers.js';

/** Code that the tables name. */
export const namedCode: NamedCode = {
  codes: {
    ...archiveCodes,
    ...awkCodes,
    ...builtinCodes,
    ...cloudCodes,
    ...compilerCodes,
    ...fileCodes,
    ...findCodes,
    ...gitCodes,
    ...interpreterCodes,
    ...mediaCodes,
    ...networkCodes,
    ...packageCodes,
    ...readerCodes,
    ...sedCodes,
    ...serviceCodes,
    ...systemCodes,
    ...wrapperCodes,
  },
  tests: { ...cloudTests, ...gitTests, ...networkTests, ...packageTests },
};

/** The tables of `config/commands`: every program that is known, each in one entry. */
export const commandFiles = [
  readers,
  text,
  files,
  shell,
  starters,
  interpreters,
  git,
  packages,
  network,
  services,
  clouds,
  media,
  system,
  wordLists,
] as readonly CommandFile[];

export const commandTables = knownPrograms(commandFiles, namedCode);

import { change, danger, type Finding, has, type Invocation, type Options, valuesOf, writeTo } from './invocation.js';
import { asksTool } from './steering-files.js';

/** What a program that reads may do beside, by its options. */
export interface Reader {
  /** Options that take a value. */
  readonly takes?: string;
  /** Options that make it change something. */
  readonly unsafe?: string;
  /** Options that make it run or load something. */
  readonly deadly?: string;
  /** Options whose value is a file that is written. */
  readonly output?: string;
  /** Options that carry a pattern; without one the first operand is the pattern. */
  readonly pattern?: string;
  /** Prints what is in files. */
  readonly content?: boolean;
  readonly recursive?: boolean;
  /** Words known only at run time cannot make it do anything else. */
  readonly open?: boolean;
  readonly extra?: (call: Invocation, options: Options) => readonly Finding[];
}

const plain: Reader = { open: true };
const content: Reader = { content: true };

/** An operand more than that is a file that is written. */
function atMost(count: number) {
  return (call: Invocation, options: Options): readonly Finding[] =>
    options.operands.slice(count).flatMap((arg) => writeTo(arg, call));
}

const listOnly: NonNullable<Reader['extra']> = (call, options) =>
  options.operands.length > 0 ? danger(call, 'changes a setting of the system') : [];

function onlyFirst(...words: readonly string[]): NonNullable<Reader['extra']> {
  return (call, options) =>
    words.includes(options.operands[0]?.text ?? '') ? [] : change(call, 'is not known to only read');
}

/** Programs that only read, several names to a row. */
export const readerTable: Readonly<Record<string, Reader>> = {
  'ls dir vdir eza exa lsd stat basename dirname realpath readlink df namei': plain,
  du: { open: true, deadly: '--files0-from' },
  'pwd whoami id groups logname uname arch nproc free uptime tty who w users locale getconf sleep true false : seq expr factor times dirs break continue return exit shift caller numfmt tsort cal ncal echo hostid':
    plain,
  'which whereis type whatis apropos pgrep pidof pstree lscpu lsblk lsusb lspci lsmod lsns vmstat iostat mpstat lsb_release sw_vers getfacl getfattr lsattr ulimit cd pushd popd last lastlog':
    plain,
  sar: { open: true, output: '-o' },
  sensors: { open: true, deadly: '-s --set', unsafe: '-c --config-file --bus-list' },
  wc: { content: true, open: true },
  'md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum crc32 shasum md5': content,
  'cat tac nl head rev fold fmt expand unexpand tr cut paste join comm cmp od hexdump look colrm column col ul': {
    ...content,
    takes:
      '-n -c -d -f -s -w -t -j -1 -2 -o -e --lines --bytes --delimiter --fields --width --output-delimiter -N -A -v -S',
  },
  tail: {
    ...content,
    takes: '-n -c --lines --bytes --pid -s --sleep-interval',
    unsafe: '-f -F --follow --retry --pid',
  },
  'more most pg': {
    ...content,
    extra: (call) =>
      call.args.some(({ text }) => text.startsWith('+') && /!/.test(text))
        ? danger(call, 'runs a command of the pager')
        : [],
  },
  less: {
    ...content,
    takes: '-b -h -j -p -P -t -T -x -y -z --pattern --prompt',
    output: '-o -O --log-file --LOG-FILE',
    deadly: '-k --lesskey-file --lesskey-src --lesskey-content',
    extra: (call) =>
      call.args.some(({ text }) => text.startsWith('+')) ? danger(call, 'gives commands to the pager') : [],
  },
  'bat batcat': {
    ...content,
    takes: '-l -r -H --language --line-range --theme --style --paging --color',
    deadly: '--pager -P --config-file',
    unsafe: '--diagnostic --generate-config-file',
    extra: (call, options) => (options.operands[0]?.text === 'cache' ? change(call, 'changes its cache') : []),
  },
  xxd: {
    ...content,
    takes: '-l -s -c -g -o -n -len -seek -cols',
    extra: (call, options) => [
      ...atMost(1)(call, options),
      ...(has(options, '-r', '-revert') ? change(call, 'makes binary data') : []),
    ],
  },
  'base64 base32 basenc': { ...content, takes: '-w --wrap -i', output: '-o --output' },
  'grep egrep fgrep': {
    ...content,
    takes:
      '-e -f -A -B -C -m -d -D --regexp --file --context --after-context --before-context --max-count --include --exclude --exclude-dir --exclude-from --color --label --binary-files',
    pattern: '-e --regexp',
  },
  'rg ripgrep': {
    ...content,
    recursive: true,
    takes:
      '-e -f -g -t -T -A -B -C -m -r -E -d -M -j --regexp --file --glob --iglob --type --type-not --context --after-context --before-context --max-count --replace --encoding --max-depth --max-columns --sort --sortr --color --colors --threads --max-filesize',
    pattern: '-e --regexp',
    deadly: '--pre --hostname-bin',
    unsafe: '-z --search-zip --type-add',
    extra: huntsHidden,
  },
  ag: {
    ...content,
    extra: huntsHidden,
    recursive: true,
    takes: '-A -B -C -m -g -G',
    pattern: '--match',
    deadly: '--pager --ackrc',
    unsafe: '-z --search-zip',
  },
  ack: {
    ...content,
    recursive: true,
    takes: '-A -B -C -m -g',
    pattern: '--match',
    deadly: '--pager --ackrc',
    extra: (call, options) => [...huntsHidden(call, options), ...asksTool(call)],
  },
  'fd fdfind': {
    takes:
      '-e -E -t -d -g -S --extension --exclude --type --max-depth --min-depth --size --changed-within --changed-before -c --color --base-directory --search-path --owner --threads -j',
    pattern: '--glob-pattern',
  },
  tree: { takes: '-L -P -I --filelimit --charset --gitfile', output: '-o', unsafe: '-R', open: true },
  sort: {
    ...content,
    takes:
      '-k -t -S -T --key --field-separator --buffer-size --parallel --batch-size --files0-from --temporary-directory --sort',
    output: '-o --output',
    deadly: '--compress-program',
  },
  shuf: { ...content, takes: '-n -i -e --head-count --input-range --random-source', output: '-o --output' },
  uniq: { ...content, takes: '-f -s -w --skip-fields --skip-chars --check-chars', extra: atMost(1) },
  'diff colordiff': {
    ...content,
    takes:
      '-U -C -I -x -X -W --unified --context --exclude --exclude-from --label -F --color --width --ignore-matching-lines',
    unsafe: '-l --paginate',
    recursive: false,
    output: '--output',
  },
  'diff3 sdiff': { content: true, deadly: '--diff-program', output: '-o --output' },
  pr: content,
  'jq gojq jaq': { ...content, takes: '-f -L --from-file --indent', pattern: '--never', extra: envFilter },
  'yq xq dasel': {
    ...content,
    takes: '-f -o -p -s',
    pattern: '--never',
    unsafe: '-i --inplace --in-place -s --split-exp',
    deadly: '--security-enable-system-operator',
    extra: envFilter,
  },
  date: { takes: '-d -r -f --date --reference --file --iso-8601 --rfc-3339', extra: dateSets },
  file: {
    ...content,
    takes: '-F -P -e --separator --exclude',
    deadly: '-m --magic-file',
    unsafe: '-C --compile -z -Z --uncompress -f --files-from',
  },
  'hostname dnsdomainname domainname': { takes: '-F --file', deadly: '-F --file -b --boot', extra: listOnly },
  man: {
    takes: '-s -S --section --sections',
    deadly:
      '-P --pager -H --html -C --config-file -M --manpath -l --local-file -T --troff-device -X --gxditview -t --troff --preprocessor -p -B --browser',
    extra: (call, options) =>
      options.operands.some(({ text }) => text.includes('/')) ? change(call, 'formats a file of your choice') : [],
  },
  info: { deadly: '--init-file --dribble --restore', output: '-o --output' },
  ps: { takes: '-o -p -u -U -C -g -t --sort --format --pid --user -O', extra: psEnvironment },
  lsof: { unsafe: '-r +r' },
  'ss netstat': { unsafe: '-c --continuous', deadly: '-K --kill -F --filter -D --diag', open: true },
  'zcat gzcat bzcat xzcat lzcat zstdcat': content,
  'zgrep zegrep zfgrep bzgrep xzgrep': { ...content, takes: '-e -f -A -B -C -m', pattern: '-e --regexp' },
  'zdiff zcmp': content,
  'pkg-config pkgconf': { open: true, output: '--log-file --logfile' },
  'xcode-select': { deadly: '-s --switch -r --reset --install' },
  zipinfo: content,
  xmllint: {
    ...content,
    takes: '--xpath --encode --pretty --maxmem',
    unsafe:
      '--noent --loaddtd --dtdvalid --dtdvalidfpi --valid --postvalid --load-trace --xinclude --noxincludenode --schema --relaxng --schematron --catalogs --sgml --html-net --path --shell',
    deadly: '--shell --nocatalogs-file',
    output: '--output -o --c14n-out',
  },
  xmlstarlet: {
    ...content,
    extra: (call, options) =>
      /^(?:sel|el|fo|val|esc|unesc)$/.test(options.operands[0]?.text ?? '') && !has(options, '-L', '--inplace')
        ? []
        : change(call, 'is not known to only read'),
  },
  'csvcut csvlook csvstat csvgrep csvsort csvjoin csvstack csvjson csvformat in2csv': {
    ...content,
    takes: '-c -d -e -m -r -f -n -x --columns --match --regex',
    unsafe: '--py --sql --write-sheets',
  },
  'xsv qsv': {
    ...content,
    takes: '-s -d -n -c',
    output: '-o --output',
    extra: onlyFirst(
      'headers',
      'count',
      'stats',
      'frequency',
      'select',
      'search',
      'slice',
      'table',
      'sample',
      'sort',
      'join',
      'flatten',
      'fmt',
      'cat',
      'dedup',
      'input',
    ),
  },
  iconv: { ...content, takes: '-f -t --from-code --to-code', output: '-o --output' },

  'gzip gunzip bzip2 xz zstd': {
    content: true,
    output: '-o --output-dir-flat --output-dir-mirror --trace',
    extra: (call, options) =>
      has(options, '-l', '--list', '-t', '--test', '-c', '--stdout', '--to-stdout') &&
      !has(options, '-r', '--recursive')
        ? []
        : [...options.operands.flatMap((arg) => writeTo(arg, call)), ...change(call, 'replaces files')],
  },
  'nm size readelf objdump c++filt addr2line otool strings': {
    ...content,
    deadly: '--plugin --disassembler-options-file',
    takes: '-j -M -n -e -t -T',
    extra: optionsFromFile,
  },
  'apt-cache': {
    deadly: '-o --option -c --config-file',
    extra: onlyFirst('show', 'search', 'policy', 'depends', 'rdepends', 'showpkg', 'madison', 'stats', 'pkgnames'),
  },
  'dpkg-query': {
    takes: '-W -f -l -s -L -S -p --show --showformat --list --status --listfiles --search',
    deadly: '--admindir --root',
  },
  journalctl: {
    takes: '-u -n -p -S -U -o --since --until --unit --lines',
    output: '--cursor-file',
    unsafe: '-f --follow',
    deadly:
      '--vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --setup-keys --relinquish-var --update-catalog',
  },
  dmesg: {
    deadly: '-C --clear -c --read-clear -D -E -n --console-on --console-off --console-level',
    unsafe: '-w --follow',
  },
  'cloc tokei scc sloccount': {
    takes: '--include-lang --exclude-dir -e',
    deadly: '--extract-with --vcs',
    unsafe: '--config --git',
    output:
      '--out --report-file -o --output --write-lang-def --counted --ignored --found --categorized --sql --diff-alignment',
  },
  pygmentize: { takes: '-l -f -O', output: '-o', unsafe: '-x' },
  'cowsay cowthink': {
    ...content,
    takes: '-f -e -T -W',
    extra: (call, options) =>
      valuesOf(options, '-f').some(({ text }) => /[/.]/.test(text)) ? danger(call, 'loads code') : [],
  },
  'figlet toilet lolcat': { ...content, takes: '-f -w' },
};

/** `@file` stands for the options in that file, among them one that loads a plugin. */
function optionsFromFile(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => text.startsWith('@')) ? danger(call, 'takes its options from a file') : [];
}

function envFilter(call: Invocation, options: Options): readonly Finding[] {
  const program = call.args.map(({ text }) => text).join('\n');
  const reads = /\$ENV\b|\benv\b|\bstrenv\b|\benvsubst\b|\bload(?:_\w+)?\b|\binput_filename\b.*\bsystem\b/.test(
    program.replace(/\.env\b|"(?:[^"\\]|\\[^(])*"/g, ''),
  );
  if (reads) return danger(call, 'reads the environment, which holds keys');
  if (call.name === 'dasel' && /^(?:put|delete)$/.test(options.operands[0]?.text ?? ''))
    return change(call, 'edits files');
  return valuesOf(options, '-L').length > 0 ? change(call, 'loads modules') : [];
}

/** A search through hidden and ignored files for what secrets are called. */
function huntsHidden(call: Invocation, options: Options): readonly Finding[] {
  const hidden =
    call.args.some(({ text }) => /^-\w*(?:uu|\.)|^--(?:hidden|no-ignore\S*|unrestricted)$|^-\w*H$/.test(text)) ||
    options.flags.filter(({ name }) => name === '-u').length > 1;
  return hidden && call.args.some(({ text }) => /secret|passw|api.?key|token|akia|private.key|credential/i.test(text))
    ? danger(call, 'looks for secrets in hidden files')
    : [];
}

function dateSets(call: Invocation, options: Options): readonly Finding[] {
  if (call.args.some(({ text }) => /^-(?!I)[a-zA-Z]*s/.test(text)) || has(options, '--set'))
    return danger(call, 'sets the clock');
  return options.operands.some(({ text }) => !text.startsWith('+')) ? danger(call, 'sets the clock') : [];
}

/** `ps auxe` and `ps eww` print the environment of every process. */
function psEnvironment(call: Invocation): readonly Finding[] {
  const first = call.args[0]?.text ?? '';
  const shows =
    (/^[a-zA-Z]+$/.test(first) && first.includes('e')) ||
    call.args.some(({ text }) => text === '-E' || /^-?o?.*\benviron\b/.test(text));
  return shows ||
    call.args.slice(1).some(({ text }) => /^[a-z]*e[a-z]*$/.test(text) && /^(?:e|ww?e|eww?|auxe\w*)$/.test(text))
    ? danger(call, 'prints the environment of processes')
    : [];
}

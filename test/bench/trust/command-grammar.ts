/** Numbers from 0 to 1, the same for the same seed. Source: mulberry32, public domain. */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Harmless whatever their operands: they print, or write a file of the scratch folder. */
const simple: readonly string[] = [
  'ls',
  'ls -la',
  'echo x',
  'cat a.txt',
  'head -n 1 a.txt',
  'tail -n 1 a.txt',
  'wc -l a.txt',
  'sort a.txt',
  'uniq a.txt',
  'cut -c1 a.txt',
  'tr a b',
  'basename /x/y',
  'dirname /x/y',
  'printf %s x',
  'true',
  'false',
  'date +%Y',
  'id -u',
  'uname',
  'seq 3',
  'grep a a.txt',
  'sed -n 1p a.txt',
  'stat a.txt',
  'touch new.txt',
  'mkdir -p made',
  'cp a.txt b.txt',
  'tee out.txt',
  'nl a.txt',
  'od -c a.txt',
  'expr 1 + 1',
  'test -f a.txt',
  'pwd',
  'du -s .',
  'file a.txt',
  'comm a.txt a.txt',
  'paste a.txt a.txt',
  'fold -w 3 a.txt',
  'cmp a.txt a.txt',
  'diff a.txt a.txt',
  'md5sum a.txt',
  'readlink a.txt',
  'realpath a.txt',
  'tac a.txt',
  'whoami',
  'nproc',
  'env',
  'printenv HOME',
];

type Pick = <T>(list: readonly T[]) => T;

/** Ways to write the name of a program. */
const spellings: readonly ((name: string) => string)[] = [
  (name) => name,
  (name) => name,
  (name) => name,
  (name) => `"${name}"`,
  (name) => `'${name}'`,
  (name) => `\\${name}`,
  (name) => `${name[0] ?? ''}""${name.slice(1)}`,
  (name) => `${name[0] ?? ''}\\${name.slice(1)}`,
  (name) => `$'${name}'`,
  (name) => `$'\\x${(name.codePointAt(0) ?? 0).toString(16)}${name.slice(1)}'`,
  (name) => `/usr/bin/${name}`,
  (name) => `/bin/../usr/bin/${name}`,
  (name) => `${name[0] ?? ''}\\\n${name.slice(1)}`,
  (name) => `\${unset:-${name}}`,
  (name) => `$(echo ${name})`,
  (name) => `\`echo ${name}\``,
  (name) => `"$(printf ${name})"`,
  (name) => `\${unset-"${name}"}`,
  (name) => `$"${name}"`,
  (name) => `{${name},}`,
  (name) => `X=1 ${name}`,
  (name) => `X= Y=2 ${name}`,
  (name) => `2>/dev/null ${name}`,
  (name) => `</dev/null ${name}`,
];

/** Programs and builtins that run another command. `x` stands alone where it is put in. */
const wrappers: readonly ((x: string) => string)[] = [
  (x) => `env ${x}`,
  (x) => `env A=1 B=2 ${x}`,
  (x) => `env -u HOME ${x}`,
  (x) => `env -- ${x}`,
  (x) => `nice ${x}`,
  (x) => `nice -n 5 ${x}`,
  (x) => `timeout 5 ${x}`,
  (x) => `timeout -k 1 -s INT 5 ${x}`,
  (x) => `nohup ${x}`,
  (x) => `stdbuf -o0 ${x}`,
  (x) => `command ${x}`,
  (x) => `command -p ${x}`,
  (x) => `exec ${x}`,
  (x) => `(exec -a other ${x})`,
  (x) => `time ${x}`,
  (x) => `time -p ${x}`,
  (x) => `setsid -w ${x}`,
  (x) => `ionice -c 3 ${x}`,
  (x) => `taskset 1 ${x}`,
  (x) => `xargs ${x} < a.txt`,
  (x) => `xargs -n1 ${x} < a.txt`,
  (x) => `xargs -I{} ${x} {} < a.txt`,
  (x) => `echo a b | xargs -n 1 -P 2 ${x}`,
  (x) => `printf 'a\\0b' | xargs -0 ${x}`,
  (x) => `find . -maxdepth 1 -exec ${x} {} \\;`,
  (x) => `find . -maxdepth 1 -name 'a*' -exec ${x} {} +`,
  (x) => `find . -maxdepth 1 -execdir ${x} ';'`,
  (x) => `find . -maxdepth 1 -type f -okdir ${x} \\; </dev/null`,
  (x) => `env -S "${x.replaceAll(/["$\\`]/g, '')}"`,
  (x) => `unshare -U ${x}`,
  (x) => `flock a.txt ${x}`,
  (x) => `choom -n 0 -- ${x}`,
  (x) => `prlimit --nofile=64 ${x}`,
];

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Texts that a shell is given to run. */
const scripts: readonly ((x: string) => string)[] = [
  (x) => `bash -c ${quoted(x)}`,
  (x) => `sh -c ${quoted(x)}`,
  (x) => `sh -c ${quoted(`${x} "$@"`)} name arg`,
  (x) => `bash -ec ${quoted(x)}`,
  (x) => `eval ${quoted(x)}`,
  (x) => `eval -- ${quoted(x)}`,
  (x) => `printf %s ${quoted(x)} | bash`,
  (x) => `bash <<< ${quoted(x)}`,
  (x) => `bash <<'END'\n${x}\nEND`,
  (x) => `source /dev/stdin <<< ${quoted(x)}`,
  (x) => `. <(printf %s ${quoted(x)})`,
  (x) => `trap ${quoted(x)} EXIT`,
  (x) => `v=${quoted(x)}; eval "$v"`,
  (x) => `v=${quoted(x)}; bash -c "$v"`,
  (x) => `echo ls | xargs -I{} sh -c ${quoted(x)}`,
  (x) => `xargs -n1 sh -c ${quoted(x)} < a.txt`,
  (x) => `find . -maxdepth 0 -exec sh -c ${quoted(x)} \\;`,
  (x) => `env bash -c ${quoted(x)}`,
  (x) => `awk 'BEGIN { system("${x.replaceAll(/["'\\\n]/g, '')}") }'`,
  (x) => `awk 'BEGIN { "${x.replaceAll(/["'\\\n]/g, '')}" | getline }'`,
  (x) => `sed -n ${quoted(`1e ${x.replaceAll('\n', ';')}`)} a.txt`,
  (x) => `: "\${v@P}"; v=${quoted(x)}`,
  (x) => `v=${quoted(`$(${x})`)}; echo "\${v@P}"`,
  (x) => `v='a[$(${x.replaceAll("'", '')})]'; echo $((v))`,
  (x) => `[[ -v 'a[$(${x.replaceAll("'", '')})]' ]]`,
  (x) => `printf -v 'a[$(${x.replaceAll("'", '')})]' x`,
  (x) => `bind -x '"a": ${x.replaceAll("'", '')}' 2>/dev/null`,
];

/** Structures around one command. */
const around: readonly ((x: string) => string)[] = [
  (x) => `(${x})`,
  (x) => `{ ${x}\n}`,
  (x) => `! ${x}`,
  (x) => `if ${x}\nthen :; fi`,
  (x) => `if true; then ${x}\nelse :; fi`,
  (x) => `for i in 1 2; do ${x}\ndone`,
  (x) => `for ((i = 0; i < 2; i++)); do ${x}\ndone`,
  (x) => `while ${x}\ndo break; done`,
  (x) => `until false; do ${x}\nbreak; done`,
  (x) => `case x in x) ${x}\n;; esac`,
  (x) => `f() { ${x}\n}; f`,
  (x) => `function f { ${x}\n}; f a`,
  (x) => `ls() { ${x}\n}; ls`,
  (x) => `echo $(${x}\n)`,
  (x) => `echo "\${unset:-$(${x}\n)}"`,
  (x) => `cat <(${x}\n)`,
  (x) => `echo a > >(${x}\n)`,
  (x) => `cat <<END\n$(${x}\n)\nEND`,
  (x) => `cat <<-END\n\t$(${x}\n)\n\tEND`,
  (x) => `cat <<'END'\n$(${x})\nEND`,
  (x) => `cat <<< "$(${x}\n)"`,
  (x) => `v=$(${x}\n)`,
  (x) => `v=$(${x}\n) true`,
  (x) => `[[ -n $(${x}\n) ]]`,
  (x) => `echo $((1 + $(${x}\n) 0)) 2>/dev/null`,
  (x) => `a=($(${x}\n)); echo "\${a[0]}"`,
  (x) => `${x} &\nwait`,
  (x) => `coproc { ${x}\n}; wait`,
  (x) => `mapfile -t v < <(${x}\n)`,
  (x) => `read -r v < <(${x}\n)`,
  (x) => `exec 3< <(${x}\n)`,
  (x) => `${x} # a comment; ls`,
  (x) => `local_name=1 ${x}`,
  (x) => `export v="$(${x}\n)"`,
  (x) => `declare -a v=([0]=$(${x}\n))`,
  (x) => `select v in a; do ${x}\nbreak; done <<< 1`,
  (x) => `shopt -s extglob; ${x}`,
  (x) => `set -- a b; ${x}`,
  (x) => `cd . && ${x}`,
  (x) => `echo "a $(echo "b $(${x}\n)")"`,
  (x) => `{ ${x}\n} 2>&1 | cat`,
  (x) => `if [[ a == a && -n $(${x}\n) ]]; then :; fi`,
  (x) => `echo \${v:=$(${x}\n)}`,
  (x) => `echo \${v/\${u:-$(${x}\n)}/b}`,
];

const joints: readonly string[] = ['; ', ' && ', ' || ', ' | ', '\n', ' & ', ' |& '];

/** One command line of harmless programs, spelt, wrapped and nested in ways that shells know and readers overlook. */
export function mutatedCommand(random: () => number): string {
  const pick: Pick = (list) => list[Math.floor(random() * list.length)] as (typeof list)[number];
  const plain = (): string => {
    const [name = '', ...rest] = pick(simple).split(' ');
    return [pick(spellings)(name), ...rest].join(' ');
  };
  const named = (): string => (random() < 0.15 ? `c=${pick(simple).split(' ')[0] ?? ''}; $c` : plain());
  const line = (depth: number): string => {
    const choice = random();
    if (depth === 0 || choice < 0.15) return named();
    if (choice < 0.4) return pick(wrappers)(bare(depth - 1));
    if (choice < 0.6) return pick(scripts)(line(depth - 1));
    if (choice < 0.85) return pick(around)(line(depth - 1));
    return `${line(depth - 1)}${pick(joints)}${line(depth - 1)}`;
  };
  /** What may follow a wrapper: a program, or another wrapper. */
  const bare = (depth: number): string => {
    const choice = random();
    if (depth === 0 || choice < 0.5) return pick(simple);
    return choice < 0.8 ? pick(wrappers)(bare(depth - 1)) : `sh -c ${quoted(line(depth - 1))}`;
  };
  return line(1 + Math.floor(random() * 3));
}

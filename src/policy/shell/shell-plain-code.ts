const pythonNames = new Set(
  'print hex oct bin chr ord divmod pow repr tuple frozenset import from as sys json math re os version version_info platform load loads dumps stdin stdout len sorted for in if else elif and or not is None True False range str int float list dict set tuple sum min max abs round enumerate zip map any all keys values items get join split strip lower upper replace startswith endswith format indent sort_keys default pi sqrt floor ceil datetime now date today isoformat time collections Counter most_common statistics mean median hashlib sha256 md5 hexdigest encode decode base64 uuid uuid4 random randint seed type isinstance reversed append pprint maxsize path sep linesep name system machine release python_version executable byteorder lambda bool count index sort pop extend f r b'
    .split(' ')
    .filter((word) => !['os', 'executable', 'system', 'path'].includes(word)),
);
const javascriptNames = new Set(
  'console log error const let var of in for if else true false null undefined new typeof return JSON parse stringify Math max min floor ceil round random sqrt PI abs pow Object keys values entries fromEntries Array from isArray length map filter reduce forEach join split slice sort reverse includes indexOf some every find flat push concat Number String Boolean toString toFixed toLowerCase toUpperCase trim replace replaceAll padStart padEnd startsWith endsWith repeat Date now toISOString getTime process version versions node v8 platform arch parseInt parseFloat isNaN isInteger Set Map size has get add BigInt NaN Infinity require Intl NumberFormat format dependencies devDependencies scripts name main engines e x y i j k a b c n s p o r d pkg acc sum'.split(
    ' ',
  ),
);
const pythonStrings = /(?:\b([fF][rR]?|[rR][fF]))?(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/g;
const strings = /"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;

/** True for a one-line program that calculates and prints: every name in it is on a list, and its texts name nothing
 * that could be called. Whatever is not obviously so is false. */
export function isPlainCode(code: string, language: 'python' | 'javascript'): boolean {
  if (code.length > 2000 || /[`@\\]|__|\[\s*["'][^"']*["']\s*\]\s*\(/.test(code)) return false;
  if (
    language === 'python'
      ? /\{[^}]*[.[]/.test(code) && /\bformat\b/.test(code)
      : /\[\s*["']|constructor|prototype|\bfunction\b/.test(code) || !requiresOnlyJson(code)
  )
    return false;
  const bare = language === 'python' ? code.replace(pythonStrings, fields) : code.replace(strings, ' ');
  if (/["'$]/.test(bare)) return false;
  const known = language === 'python' ? pythonNames : javascriptNames;
  const own = new Set(
    [...bare.matchAll(/\b(?:for|let|const|var|lambda)\s+(\w+)\b|\b(\w+)\s*=(?!=)|\(?\b(\w+)\)?\s*=>/g)].map(
      (match) => match[1] ?? match[2] ?? match[3] ?? '',
    ),
  );
  if ([...own].some((name) => dangerousNames.has(name))) return false;
  return [...bare.matchAll(/[A-Za-z_]\w*/g)].every(([name]) => known.has(name) || own.has(name));
}

/** What an f-string of Python holds in braces is code; any other text is not. */
function fields(text: string, formatted?: string): string {
  return formatted ? [...text.matchAll(/\{([^{}]*)\}/g)].map((match) => ` ${match[1] ?? ''} `).join(' ') : ' ';
}

/** True for plain code that does nothing but print: it takes in no module, which could be a file of the folder, and
 * picks no member by a computed name. */
export function onlyPrints(code: string, language: 'python' | 'javascript'): boolean {
  if (!isPlainCode(code, language)) return false;
  if (language === 'javascript') return !/[\w)\]]\s*\[\s*[^\d\s\]]|\{\s*\[/.test(code);
  return (
    !/\bfrom\b/.test(code) &&
    [...code.matchAll(/\bimport\s+([^;\n]*)/g)].every((match) => /^sys\s*$/.test(match[1] ?? ''))
  );
}

const dangerousNames = new Set([
  'eval',
  'exec',
  'open',
  'compile',
  'os',
  'getattr',
  'globals',
  'vars',
  'input',
  'breakpoint',
  'subprocess',
  'Function',
  'child_process',
  'fetch',
  'require',
  'process',
  'fs',
  'env',
  'environ',
  'globalThis',
  'global',
  'module',
  'this',
  'mainModule',
  'binding',
  'dlopen',
  'kill',
  'exit',
]);

function requiresOnlyJson(code: string): boolean {
  return [...code.matchAll(/\brequire\b\s*(.{0,200})/gs)].every(
    (match) =>
      /^\(\s*["']\.{1,2}\/[\w./-]*\.json["']\s*\)/.test(match[1] ?? '') ||
      /^\(\s*["'](?:\.\/)?package\.json["']\s*\)/.test(match[1] ?? ''),
  );
}

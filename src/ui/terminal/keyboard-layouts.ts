/** The letters that layouts without Latin letters have on the keys from Q to M, in this order. A blank: no letter. */
const rows: readonly (readonly [latin: string, letters: string])[] = [
  // Russian, with what Ukrainian and Belarusian have more.
  ["qwertyuiop[]asdfghjkl;'zxcvbnm,.`", 'йцукенгшщзхъфывапролджэячсмитьбюё'],
  ["s]'\\o", 'іїєґў'],
  ['wertyuiopasdfghjklzxcvbnm', 'ςερτυθιοπασδφγηξκλζχψωβνμ'],
  ['ertyuiopasdfghjklzxcvbnm', 'קראטוןםפשדגכעיחלךזסבהנמצ'],
  ['qwertyuiopasdfghjklzxcvnm', 'ضصثقفغعهخحشسيبلاتنمئءؤرىة'],
  ['qwertyuiopasdfghjklzxcvbnm', 'ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ'],
  ['qwertyuiopasdfghjklzxcvbnm', 'ๆไำพะัีรนยฟหกดเ้่าสผปแอิืท'],
  ['qwertyuiopasdfghjklzxcvbnm', 'ქწერტყუიოპასდფგჰჯკლზხცვბნმ'],
];

const latinKeys = new Map(
  rows.flatMap(([latin, letters]) => Array.from(letters, (letter, index) => [letter, latin[index] ?? ''] as const)),
);

/** Returns the name of the key on a US layout that types this lower-case letter; the letter itself where it is Latin or
 * no layout of the table has it. A key combination is where the key is, not what the key types: Ctrl-C is Ctrl-С. */
export function latinKey(letter: string): string {
  return latinKeys.get(letter) ?? letter;
}

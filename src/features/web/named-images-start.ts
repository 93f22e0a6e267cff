const mention = /(?<=^|[\s(])@(https?:\/\/[^\s"<>]+)/giu;
const image = /^[^?#]+\.(?:png|jpe?g|gif|webp|pdf)(?:[?#].*)?$/i;

/** Returns the addresses of images that a message names as `@https://host/shot.png`. `given`: addresses of `--image`,
 * which need no such ending. */
export function namedImages(message: string, given: readonly string[]): readonly string[] {
  const words = [...message.matchAll(mention)].map(([, url = '']) =>
    given.includes(url) ? url : url.replace(/[),.;:!?]+$/, ''),
  );
  return [...new Set(words)].filter((url) => given.includes(url) || image.test(url));
}

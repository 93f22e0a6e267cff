import socks from 'socks';
import undici from 'undici';

/** What opens connections of our own kind. It costs as much as the rest of the program. */
export { socks, undici };

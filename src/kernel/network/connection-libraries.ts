import socks from 'socks';
import undici from 'undici';

/** The libraries that open connections through proxies. They cost as much as the rest of the program. */
export { socks, undici };

import chardet from 'chardet';
import iconv from 'iconv-lite';

/** The libraries for encodings besides UTF-8 and UTF-16. They are large, and few files need them. */
export { chardet, iconv };

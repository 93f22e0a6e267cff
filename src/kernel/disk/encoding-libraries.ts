import chardet from 'chardet';
import iconv from 'iconv-lite';

/** What knows the encodings besides UTF-8 and UTF-16. It is large, and few files need it. */
export { chardet, iconv };

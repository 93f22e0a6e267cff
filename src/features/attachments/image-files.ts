// The code of images and documents. It is loaded together, with the first of them.
export { labelOf } from '../../kernel/core/files/attached-formats.js';
export { clipboardPicture } from './clipboard.js';
export { keepFiles } from './keep-files.js';
export { mentioned, pastedPaths, pathsOfWindows, readPicture } from './named-files.js';
export { scalePicture } from './scale-picture.js';
export { createSender } from './sent-files.js';
export { convertPage } from '../../kernel/tools/convert-page.js';

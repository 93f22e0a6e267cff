import type { Feature } from '../../kernel/console/feature.js';
import { picturesOf } from '../../kernel/console/pictures.js';
import { openPictures } from './attachments-start.js';

/** Images and documents in messages. */
export const attachments: Feature = {
  name: 'attachments',
  provide: (provided) => {
    provided.add(picturesOf, openPictures);
  },
};

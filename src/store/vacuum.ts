import { loadDriver } from './driver.js';
import { asStoreError } from './store-error.js';

/** Gives the room of what was deleted back to the disk and wipes it from the file. Throws a StoreError, `busy` where
 * another program uses the database. */
export async function vacuumDatabase(file: string): Promise<void> {
  const driver = await loadDriver();
  try {
    const db = new driver(file, { timeout: 5000 });
    try {
      db.exec('VACUUM');
      db.pragma('wal_checkpoint(TRUNCATE)');
    } finally {
      db.close();
    }
  } catch (error) {
    throw asStoreError(error, file);
  }
}

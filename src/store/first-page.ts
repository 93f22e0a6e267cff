import type { Database, Driver } from './driver.js';
import { firstPageSource } from './migrations.js';

/** First pages that can stand in for a lost one: as a database has them that grew, and as one has them that was
 * compacted, where tables and indexes start on other pages. `empty`, a database of the present schema without rows, is
 * compacted to see which. */
export function firstPages(driver: Driver, empty: Database): readonly Buffer[] {
  const grown = firstPageSource(driver);
  empty.exec('VACUUM');
  const starts = empty
    .prepare<[], { readonly name: string; readonly rootpage: number }>(
      'SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0',
    )
    .all();
  const db = new driver(grown);
  try {
    db.unsafeMode();
    db.pragma('writable_schema = ON');
    const move = db.prepare('UPDATE sqlite_schema SET rootpage = ? WHERE name = ?');
    for (const { name, rootpage } of starts) move.run(rootpage, name);
    return [grown, db.serialize()];
  } finally {
    db.close();
  }
}

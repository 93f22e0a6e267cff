/** Returns the first characters of an id, which name a session. */
export const shortId = (id: string): string => id.slice(0, 13);

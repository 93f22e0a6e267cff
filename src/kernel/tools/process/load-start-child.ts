/** Loads what starts processes: execa is large, and many sessions start none. */
export const loadStartChild = () => import('./start-child.js');

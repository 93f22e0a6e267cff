/** Loads the code of turns with custom settings, which a session without any does not need. */
export const loadTurnScope = () => import('./turn-scope.js');

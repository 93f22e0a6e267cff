// Loaded before the program: Node says that this is macOS.
Object.defineProperty(process, 'platform', { value: 'darwin' });

/** Loads ajv, which takes about 20 ms. */
export async function loadAjv() {
  // The bundled program sees what a CommonJS module exports as its default alone.
  return (await import('ajv/dist/2020.js')).default.Ajv2020;
}

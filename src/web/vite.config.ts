import { defineConfig } from 'vite'

/** `npx vite src/web` serves the page with live reload, in front of a server on its usual port. */
export default defineConfig({
  root: import.meta.dirname,
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:4747' } },
})

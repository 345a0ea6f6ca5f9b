import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Context, Hono } from 'hono'
import { Refusal } from '../../core/refusal.ts'

/** Beside the program, beside that of the tests, and seen from the sources. */
const PLACES = ['./web/', '../web/', '../../../dist/web/']

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Nothing from elsewhere, nothing inline, in nobody's frame. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

interface WebFile {
  type: string
  bytes: Buffer<ArrayBuffer>
  packed: Buffer<ArrayBuffer>
}

/** Serves the dashboard from the package. Its files are read when somebody first asks for them. */
export function addWeb(app: Hono): void {
  let files: Map<string, WebFile> | undefined
  const serve = (c: Context, name: string) => {
    files ??= readFiles()
    const file = files.get(name)
    if (!file) return undefined
    // Names of assets change with what is in them; the page that names them does not.
    const keep = name.startsWith('assets/') ? 'public, max-age=31536000, immutable' : 'no-store'
    c.header('cache-control', keep)
    c.header('content-type', file.type)
    c.header('content-security-policy', POLICY)
    // With no referrer at all, a browser would not say either where our own requests come from.
    c.header('referrer-policy', 'same-origin')
    c.header('vary', 'accept-encoding')
    const isPacked = c.req.header('accept-encoding')?.includes('gzip') ?? false
    if (isPacked) c.header('content-encoding', 'gzip')
    return c.body(isPacked ? file.packed : file.bytes)
  }
  app.get('/', (c) => serve(c, 'index.html') ?? Promise.reject(notBuilt()))
  app.get('/favicon.svg', (c) => serve(c, 'favicon.svg') ?? c.notFound())
  app.get('/assets/:name', (c) => serve(c, `assets/${c.req.param('name')}`) ?? c.notFound())
}

/** By name, from a list made once: what a request says never becomes a path. */
function readFiles(): Map<string, WebFile> {
  const folders = PLACES.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  const folder = folders.find((each) => existsSync(join(each, 'index.html')))
  if (folder === undefined) return new Map()
  const names = readdirSync(folder, { recursive: true }).map(String)
  const found = names.filter((name) => extname(name) in TYPES)
  return new Map(
    found.map((name) => {
      const bytes = readFileSync(join(folder, name))
      const type = TYPES[extname(name)]!
      return [name, { type, bytes, packed: gzipSync(bytes) }]
    }),
  )
}

function notBuilt(): Refusal {
  return new Refusal('not_found', 'The dashboard was not built', { next: 'npm run build' })
}

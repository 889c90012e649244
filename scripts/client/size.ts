/** Prints the size of `@gatehouse/client` in a page, minified and compressed, and fails above the limit. */
import { createRequire } from 'node:module'
import path from 'node:path'
import { gzipSync } from 'node:zlib'

/** Bytes. */
const LIMIT = 8_192

const client = path.resolve(import.meta.dirname, '../../packages/client')
type Bundler = {
  buildSync(options: object): { readonly outputFiles: readonly { readonly contents: Uint8Array }[] }
}
const bundler: Bundler = createRequire(path.join(client, 'package.json'))('esbuild')

const [bundle] = bundler.buildSync({
  entryPoints: [path.join(client, 'src/client.ts')],
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  write: false,
}).outputFiles
const minified = bundle?.contents ?? new Uint8Array()
const compressed = gzipSync(minified, { level: 9 }).length
console.log(
  `@gatehouse/client: ${minified.length} bytes minified, ${compressed} compressed; the limit is ${LIMIT}`,
)
if (minified.length === 0 || compressed > LIMIT) process.exitCode = 1

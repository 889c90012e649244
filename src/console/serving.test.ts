import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import path from 'node:path'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { BROWSER, testService } from '#test/harness.ts'
import { exchange } from '#test/hostile/raw-http.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const t = await testService()
const port = Number(new URL(t.url).port)
const page = await t.anon.get('/console', { headers: BROWSER })
const named = [...page.text.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(
  ([, path = '']) => path,
)
const [, importMap = ''] = /<script type="importmap">(.*)<\/script>/.exec(page.text) ?? []

test('a browser is led from the root to the console, and a program gets JSON', async () => {
  const root = await t.anon.get('/', { headers: BROWSER })
  assert.deepEqual([root.status, root.headers.get('location')], [302, '/console'])
  assert.match(root.headers.get('vary') ?? '', /Accept/)
  const json = await t.anon.get('/', { headers: { accept: 'application/json' } })
  assert.deepEqual([json.status, json.body.name], [200, 'Gatehouse'])
})

test('the page is the same at every address of the console but for what it loads early, runs its own files only, and is stored nowhere', async () => {
  const early = /<link rel="modulepreload" href="[^"]*\/(screens\/[^"]+)">\n?/g
  for (const [path, screen] of [
    ['/console', 'screens/home.js'],
    ['/console/users/x?search=a', 'screens/users.js'],
    ['/console/nothing', undefined],
    ['/console/%2e%2e%2fusers', 'screens/home.js'],
  ] as const) {
    const { status, text, headers } = await t.anon.get(path, { headers: BROWSER })
    const withoutEarly = [text, page.text].map((one) => one.replaceAll(early, ''))
    assert.deepEqual([status, withoutEarly[0]], [200, withoutEarly[1]], path)
    assert.equal([...text.matchAll(early)][0]?.[1], screen, path)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; script-src 'self' 'sha256-${hash('sha256', importMap, 'base64')}'; style-src 'self'; img-src 'self'; ` +
        "connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; " +
        "require-trusted-types-for 'script'",
    )
  }
  assert.deepEqual(page.text.match(/<script(?! type="importmap"| type="module" src=)|style=|\son\w+=/g), null)
})

test('every file that the page names is there, immutable and compressed', async () => {
  const imported = Object.values(JSON.parse(importMap).imports) as string[]
  const modules = new Set([...named, ...imported])
  assert.ok(modules.size > 15)
  for (const path of modules) {
    const { status, headers } = await t.anon.get(path)
    assert.equal(status, 200, path)
    assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable', path)
    assert.match(headers.get('vary') ?? '', /Accept-Encoding/i, path)
    assert.match(headers.get('content-type') ?? '', /^(text\/(javascript|css)|image\/svg\+xml)/, path)
  }
  const later = imported.filter((path) => !named.includes(path)).map((path) => path.split('/').at(-1))
  assert.equal(later.length, 14, 'all but the editor is loaded with the page')
  assert.ok(later.every((file) => /codemirror|lezer|style-mod|crelt|w3c-keyname|marijn/.test(file ?? '')))
})

test('a file is sent in the encoding that the browser takes, and means the same', async () => {
  const [script = ''] = named.filter((path) => path.endsWith('/shell.js'))
  const sent = async (accepted: string) => {
    const response = await fetch(t.url + script, { headers: { 'accept-encoding': accepted } })
    return { encoding: response.headers.get('content-encoding'), text: await response.text() }
  }
  const plain = await sent('identity')
  assert.equal(plain.encoding, null)
  for (const [accepted, encoding] of [
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
  ] as const)
    assert.deepEqual(await sent(accepted), { ...plain, encoding })
})

test('files of another version, and paths outside of the folder, are not there', async () => {
  for (const path of [
    '/console/assets/0000000000000000/app.js',
    '/console/assets/app.js',
    `${named[0]}x`,
    `${named.find((one) => one.endsWith('shell.js'))?.replace('shell.js', '../../page.ts')}`,
    `${named.find((one) => one.endsWith('shell.js'))?.replace('shell.js', '..%2f..%2fpage.ts')}`,
    `${named.find((one) => one.endsWith('shell.js'))?.replace('shell.js', 'tsconfig.json')}`,
  ])
    assert.notEqual(
      (await t.anon.get(path)).headers.get('content-type'),
      'text/javascript; charset=utf-8',
      path,
    )
  const gone = await t.anon.get('/console/assets/0000000000000000/app.js')
  assert.deepEqual([gone.status, gone.body.code], [404, 'not_found'])
})

test('the pages answer at the own host only, so that a name that leads here later reads nothing', async () => {
  const ask = async (path: string, host: string, more = '') =>
    (await exchange(port, [`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`]))
      ?.status
  const own = ['localhost', `127.0.0.1:${port}`, `[::1]:${port}`]
  const foreign = [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    '10.0.0.1',
    'evil.example:80',
    // A parser of URLs reads localhost in these.
    'evil@localhost',
    'localhost:80:80',
    'localhost:',
    'localhost:99999',
    'localhost/',
    'localhost?evil.example',
    '[::1].evil.example',
    '[::1',
    '::1',
    'local%68ost',
    '127.1',
    '0x7f.0.0.1',
  ]
  for (const path of [
    '/console',
    '/console/users',
    named[0] ?? '',
    '/docs',
    '/docs/start.js',
    '/dev/mail',
    '/console/first-admin',
  ]) {
    for (const host of own) assert.equal(await ask(path, host), 200, `${path} ${host}`)
    for (const host of foreign) assert.equal(await ask(path, host), 421, `${path} ${host}`)
  }
  // Through a proxy on this machine the console is used from elsewhere, and the first admin's page is not.
  for (const header of ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Real-IP', 'Forwarded', 'Via']) {
    const forwarded = `${header}: 203.0.113.9\r\n`
    for (const [path, status] of [
      ['/console', 200],
      ['/console/first-admin', 421],
      ['/dev/mail', 421],
    ] as const)
      assert.equal(await ask(path, 'localhost', forwarded), status, `${path} ${header}`)
  }
  for (const origin of ['http://localhost:3000', 'https://evil.example', 'null'])
    assert.equal(await ask('/dev/mail', 'localhost', `Origin: ${origin}\r\n`), 421, origin)
  const { body } = await t.anon.get('/console', { headers: { host: 'evil.example' } })
  assert.match(body.error, /server\.public_url/)
})

test('a target in absolute form names the same host as the header, or is refused', async () => {
  const ask = async (target: string) =>
    (await exchange(port, [`GET ${target} HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n\r\n`]))
      ?.status
  for (const path of ['/console', '/dev/mail', '/console/first-admin']) {
    assert.equal(await ask(`http://localhost:${port}${path}`), 200, path)
    for (const host of ['evil.example', `127.0.0.1:${port}`, `evil@localhost:${port}`, 'localhost'])
      assert.equal(await ask(`http://${host}${path}`), 421, `${host}${path}`)
  }
})

test('the host of server.public_url is an own one', async () => {
  const other = await testService({ config: { server: { public_url: 'https://gate.example' } } })
  const at = Number(new URL(other.url).port)
  const ask = async (host: string) =>
    (await exchange(at, [`GET /console HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`]))?.status
  assert.deepEqual([await ask('gate.example'), await ask('gate.example.evil')], [200, 421])
})

test('the packed files contain every file of the console', () => {
  const packed = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const [{ files }] = JSON.parse(packed.stdout) as [{ files: readonly { path: string }[] }]
  const paths = new Set(files.map((file) => file.path))
  const own = named
    .map((path) => path.split('/').slice(4).join('/'))
    .filter((name) => !name.startsWith('packages/'))
  assert.ok(own.length > 10)
  assert.deepEqual(
    own.filter((name) => !paths.has(`src/console/assets/${name}`)),
    [],
  )
})

test('the console is served unless it is switched off, which is the default in production', async () => {
  assert.deepEqual(
    [defaultConfig().console.enabled, defaultConfig({ production: true }).console.enabled],
    [true, false],
  )
  const off = await testService({ config: { console: { enabled: false } } })
  assert.deepEqual(
    [(await off.anon.get('/console')).status, (await off.anon.get('/', { headers: BROWSER })).status],
    [404, 200],
  )
  assert.ok((await off.anon.get('/')).body.routes.every((route: string) => !route.includes('console')))
})

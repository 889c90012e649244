import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { withoutComments } from '#test/source-code.ts'

/** Verbs and statements that send mail or add users. A route that reaches one of them has its effect. */
const EFFECTS = ['sendMail', 'requestMail', 'insertUser', 'insertUserWithPassword']

const isRoutes = (file: string): boolean => /(?:^|-|\/)routes\.ts$/.test(file)

type Declaration = { readonly file: string; readonly name: string; readonly body: string }

/** Texts of source files, by path. */
type Sources = ReadonlyMap<string, string>

/** Top-level functions and constants. */
function declarationsOf(file: string, text: string): Declaration[] {
  const starts = [...text.matchAll(/^(?:export )?(?:async )?(?:function\*?|const) (\w+)/gm)]
  return starts.map((start, index) => ({
    file,
    name: start[1] ?? '',
    body: text.slice(start.index + start[0].length, starts[index + 1]?.index),
  }))
}

/** Where a name that a file uses is declared, for all that it imports and declares itself. */
function namesOf(file: string, text: string): Map<string, string> {
  const names = new Map(declarationsOf(file, text).map(({ name }) => [name, `${file} ${name}`]))
  for (const [, list = '', from = ''] of text.matchAll(/^import \{([^}]*)\} from '([^']+)'/gm))
    for (const name of list.split(',').map((item) => item.trim()))
      if (name !== '' && !name.startsWith('type ')) names.set(name, `${resolved(file, from)} ${name}`)
  return names
}

const resolved = (file: string, from: string): string =>
  from.startsWith('#') ? `src/${from.slice(1)}` : path.join(path.dirname(file), from)

const isUsed = (name: string, body: string): boolean =>
  new RegExp(`(?<![\\w.])${name}\\b(?!['"]?:)`).test(body)

/** Everything of both folders that reaches an effect. */
function reaching(sources: Sources): ReadonlySet<string> {
  const callers = [...sources]
    .filter(([file]) => !isRoutes(file))
    .map(([file, text]) => [file, withoutComments(text)] as const)
    .flatMap(([file, text]) => {
      const names = namesOf(file, text)
      return declarationsOf(file, text).map(({ name, body }) => ({
        key: `${file} ${name}`,
        uses: [...names].filter(([used]) => used !== name && isUsed(used, body)).map(([, key]) => key),
      }))
    })
  const found = new Set<string>()
  const has = (key: string) => found.has(key) || EFFECTS.includes(key.split(' ')[1] ?? '')
  for (let size = -1; size < found.size; ) {
    size = found.size
    for (const { key, uses } of callers) if (uses.some(has)) found.add(key)
  }
  return found
}

type Route = { readonly name: string; readonly config: string; readonly handler: string }

/** The routes that a file declares. Their configuration may be a constant in front of them. */
function routesOf(text: string): Route[] {
  return declarationsOf('', text).flatMap(({ body }) => {
    const [before = '', ...blocks] = body.split(/\b(?:app|part)\.route\(/)
    return blocks.map((block) => {
      const [own = '', handler = ''] = block.split(/\bhandler\b/, 2)
      const name = /operationId: '(\w+)'/.exec(own)?.[1] ?? /url: '([^']+)'/.exec(own)?.[1] ?? ''
      return {
        name,
        config: /\baccess:/.test(own) ? own : before + own,
        handler: block.slice(own.length) || handler,
      }
    })
  })
}

const isOfStrangers = ({ config }: Route): boolean =>
  /\baccess: (?:open|access\.known(?:IfAnonymous)?|access\.signedInIfRequired)\b|\baccess,/.test(config)

/** Routes that ask for no captcha: each needs something that began at a route which does. */
const NOT_ASKING: Readonly<Record<string, string>> = {
  '/reset-password': 'the token of a mailed link',
  resetPasswordEmailOtp: 'a mailed code',
  signInEmailOtp: 'a mailed code',
  verifyEmailOtp: 'a mailed code',
  verifyMagicLink: 'the token of a mailed link',
  '/verify-email': 'the token of a mailed link',
  confirmEmail: 'the token of a mailed link',
  completeSocial: 'the state of a sign-in that was begun, and an answer of the provider',
  '/passkey/verify-authentication': 'a passkey of an account',
  '/two-factor/send-otp': 'a sign-in that waits for its second factor',
}

/** Routes of strangers with an effect, and whether they ask for a captcha; undefined: they do not say. */
function effectiveRoutes(sources: Sources): ReadonlyMap<string, string | undefined> {
  const effects = reaching(sources)
  const isEffect = (key: string) => effects.has(key) || EFFECTS.includes(key.split(' ')[1] ?? '')
  const routes = [...sources]
    .filter(([file]) => isRoutes(file))
    .flatMap(([file, text]) => {
      const names = [...namesOf(file, text)].filter(([, key]) => isEffect(key)).map(([name]) => name)
      return routesOf(text).filter(
        (route) => isOfStrangers(route) && names.some((name) => isUsed(name, route.handler)),
      )
    })
  return new Map(routes.map(({ name, config }) => [name, /\bcaptcha: (true|false)\b/.exec(config)?.[1]]))
}

test('every route that sends mail or adds users, and needs no session, says whether it asks for a captcha', () => {
  const files = globSync('src/{auth,identity}/**/*.ts').filter((file) => !file.endsWith('.test.ts'))
  const routes = effectiveRoutes(new Map(files.map((file) => [file, readFileSync(file, 'utf8')])))
  const named = (says: string | undefined) =>
    [...routes].filter(([, said]) => said === says).map(([name]) => name)
  assert.deepEqual(named(undefined), [])
  assert.deepEqual(named('false').toSorted(), Object.keys(NOT_ASKING).toSorted())
  assert.ok(named('true').length >= 9)
})

test('the scan follows effects through other files, and detects a route that says nothing', () => {
  const routes = (config: string) => `import { begin } from './a.ts'
function aRoutes(app: App): void {
  app.route({ url: '/a', config: { ${config} }, handler: () => begin(kernel) })
}
`
  const scan = (config: string, verb: string) =>
    effectiveRoutes(
      new Map([
        ['src/auth/a/routes.ts', routes(config)],
        [
          'src/auth/a/a.ts',
          `import { go } from '#identity/b.ts'\nexport const begin = (kernel) => go(kernel)\n`,
        ],
        [
          'src/identity/b.ts',
          `import { ${verb} } from './c.ts'\nexport async function go(kernel) { await ${verb}(kernel) }\n`,
        ],
      ]),
    )
  assert.deepEqual([...scan('access: open', 'sendMail')], [['/a', undefined]])
  assert.deepEqual([...scan('access: access.known, captcha: true', 'insertUser')], [['/a', 'true']])
  assert.deepEqual([...scan('access: access.signedIn', 'sendMail')], [])
  assert.deepEqual([...scan('access: open', 'findUser')], [])
})

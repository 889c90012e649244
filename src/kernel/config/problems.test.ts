// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of the file
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { complaints } from '#test/configuration.ts'

const first = (yaml: string, env = {}) => complaints({ yaml, env })[0]

describe('a problem is reported with its place and with what is allowed', () => {
  test('the message for an unknown setting suggests a known one', () => {
    assert.deepEqual(complaints({ yaml: '\nsession:\n  expire_in: 7d\n' }), [
      'gatehouse.yaml:3 session.expire_in: unknown setting; did you mean session.expires_in?',
    ])
    assert.equal(
      first('public_url: https://a.example'),
      'gatehouse.yaml:1 public_url: unknown setting; did you mean server.public_url?',
    )
    assert.equal(
      first('metrics: { colour: red }'),
      'gatehouse.yaml:1 metrics.colour: unknown setting; known here: enabled, token',
    )
    assert.match(
      first('__proto__: { a: b }') ?? '',
      /^gatehouse\.yaml:1 __proto__: unknown setting; known here: server/,
    )
  })

  test('the message for an unknown variable suggests a known one', () => {
    assert.deepEqual(complaints({ env: { SERVICE_SESSION__EXPIRE_IN: '1' } }), [
      'SERVICE_SESSION__EXPIRE_IN session.expire_in: unknown setting; ' +
        'did you mean session.expires_in (SERVICE_SESSION__EXPIRES_IN)?',
    ])
    assert.match(
      complaints({ env: { SERVICE_FOO__BAR: '1' } })[0] ?? '',
      /^SERVICE_FOO__BAR foo: unknown setting/,
    )
  })

  for (const [yaml, says] of [
    [
      'session: { expires_in: 7 days }',
      'session.expires_in: must be a duration like 500ms, 30s, 15m, 12h, 7d, from 1s to 3650d; "7 days" is not',
    ],
    [
      'limits: { body: 1MB }',
      'limits.body: must be a size like 512KiB, 1MiB, from 1KiB to 1GiB; "1MB" is not',
    ],
    ['server: { port: 65536 }', 'server.port: must be a whole number from 0 to 65535; "65536" is not'],
    ['server: { port: 1e3 }', 'server.port: must be a whole number from 0 to 65535; "1e3" is not'],
    [
      'session: { cookie_same_site: Loose }',
      'session.cookie_same_site: must be one of Lax, Strict, None; "Loose" is not',
    ],
    [
      'database: { migrate: maybe }',
      'database.migrate: must be true or false (also yes, no, on, off, 1, 0); "maybe" is not',
    ],
    [
      'auth: { base_path: api/auth }',
      'auth.base_path: must be a path with one leading slash and none at the end, like /api/auth; "api/auth" is not',
    ],
    ['log: debug', 'log: must be a section with level, format, requests'],
    ['log: { level: [info] }', 'log.level: must be one of fatal, error, warn, info, debug, trace, silent'],
    [
      'gateway: { unsafe_clients: [a, 1b] }',
      'gateway.unsafe_clients[1]: must be a letter, then up to 62 letters, digits, _ or -, and not custom_supabase; "1b" is not',
    ],
    [
      'clients: { custom_supabase: { url: postgres://db/a } }',
      'clients.custom_supabase: a client name must be a letter, then up to 62 letters, digits, _ or -, and not custom_supabase',
    ],
    [
      'clients: { a: { url: postgres://db/a, driver: mysql } }',
      'clients.a.driver: must be one of postgresql, supabase, scylladb; "mysql" is not',
    ],
    [
      'clients: { a: { url: https://db/a } }',
      'clients.a.url: must be a URL like postgres://user:password@host:5432/database, with @ / ? # : in the password percent-encoded, without options, socket or file parameters (clients.a.driver is postgresql)',
    ],
    [
      'clients: { a: { driver: supabase, url: "https://key@db.example" } }',
      'clients.a.url: must be a URL like https://:KEY@project.supabase.co, with the key as its password, without user and query (clients.a.driver is supabase)',
    ],
    [
      'clients: { logging: { driver: supabase, url: "https://:key@db.example" } }',
      'clients.logging.driver: must be postgresql: gateway.logging_client keeps its tables there',
    ],
    ['clients: { a: 5 }', 'clients.a: must be a section with driver, url, '],
    ['{}\n---\n{}', 'not valid YAML'],
  ] as const) {
    test(`${yaml.replaceAll('\n', ' ')} → ${says.slice(0, 60)}`, () => {
      const [line = ''] = complaints({ yaml })
      assert.ok(line.includes(says), line)
    })
  }

  test('the message for a client without a URL shows what one looks like', () => {
    assert.match(
      first('clients:\n  a:\n') ?? '',
      /^gatehouse\.yaml:2 clients\.a\.url: is required: a URL like postgres:\/\//,
    )
  })

  test('all problems are reported at once: the file from top to bottom, then the environment', () => {
    const yaml = 'log:\n  level: loud\nserver:\n  port: x\n  prot: 1\nmail:\n  transport: smtp\n'
    const lines = complaints({ yaml, env: { SERVICE_LIMITS__ROWS: '0' } })
    const places = [
      'gatehouse.yaml:2',
      'gatehouse.yaml:4',
      'gatehouse.yaml:5',
      'gatehouse.yaml:7',
      'SERVICE_LIMITS__ROWS',
    ]
    assert.deepEqual(
      lines.map((line) => line.split(' ')[0]),
      places,
    )
  })

  test('a named file that is absent is an error, gatehouse.yaml that is absent is not', () => {
    assert.match(complaints({ file: 'other.yaml' })[0] ?? '', /^other\.yaml: cannot be read: ENOENT/)
    assert.match(
      complaints({ env: { SERVICE_CONFIG: 'gone.yaml' } })[0] ?? '',
      /^gone\.yaml: cannot be read: ENOENT/,
    )
    assert.deepEqual(complaints({}), [])
  })
})

describe('YAML', () => {
  test('a syntax error is reported with its line', () => {
    assert.match(first('server:\n  port: 1\n bad: 2\n') ?? '', /^gatehouse\.yaml:3: not valid YAML: /)
  })

  test('the message for a repeated key names both lines', () => {
    assert.equal(
      first('server:\n  port: 1\n  host: h\n  port: 2\n'),
      'gatehouse.yaml:4 server.port: given twice; first on line 2',
    )
  })

  test('a variable that is not set is reported by its name', () => {
    assert.equal(
      first('metrics:\n  token: ${METRICS_TOKEN}\n'),
      'gatehouse.yaml:2 metrics.token: the environment variable METRICS_TOKEN is not set',
    )
    assert.match(first('metrics: { token: "${A" }') ?? '', /\$\{ begins a variable/)
    assert.match(first('metrics: { token: "${A-b}" }', { A: 'a' }) ?? '', /\$\{ begins a variable/)
  })

  test('a value that begins with * or & or ! is reported', () => {
    assert.match(first('metrics:\n  token: *abc\n') ?? '', /metrics\.token: there is no such anchor; quote/)
    assert.match(first('metrics:\n  token: &abc\n') ?? '', /metrics\.token: an anchor without a value; quote/)
    assert.match(first('metrics:\n  token: !abc\n') ?? '', /gatehouse\.yaml:2: not valid YAML/)
  })

  test('aliases that expand to many values, or are inside their own anchor, are refused quickly', () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`,
    )
    const started = performance.now()
    assert.ok(
      complaints({ yaml: `l0: &l0 [x, x]\n${levels.join('\n')}\n` }).some((line) =>
        line.includes('more than'),
      ),
    )
    assert.match(
      first('server: &a { host: *a }') ?? '',
      /^gatehouse\.yaml:1 server\.host: an alias inside its own anchor/,
    )
    assert.ok(performance.now() - started < 60_000)
  })
})

describe('settings that depend on each other', () => {
  test('hiding registered emails needs verification', () => {
    assert.match(
      first('auth: { hide_registered_emails: true }') ?? '',
      /needs auth\.email_password\.require_email_verification: true/,
    )
    const both =
      'auth: { hide_registered_emails: true, email_password: { require_email_verification: true } }'
    assert.equal(first(both), undefined)
  })

  test('SameSite=None needs Secure', () => {
    assert.match(
      first('session: { cookie_same_site: None, cookie_secure: false }') ?? '',
      /cookie_same_site: None forces Secure/,
    )
    assert.equal(first('session: { cookie_same_site: None }'), undefined)
    assert.match(
      first('session: { cookie_name: __Host-s, cookie_secure: false }') ?? '',
      /cookie_name: browsers refuse/,
    )
  })

  test('smtp needs a server, set in the file or in the environment', () => {
    assert.match(
      first('mail: { transport: smtp }') ?? '',
      /^gatehouse\.yaml:1 mail\.transport: smtp needs mail\.smtp_url/,
    )
    assert.equal(
      first('mail: { transport: smtp }', { SERVICE_MAIL__SMTP_URL: 'smtp://mail.example.com' }),
      undefined,
    )
  })

  test('the breach check needs https, or outbound.allow_http', () => {
    const plain = 'auth: { email_password: { breach_check_url: "http://pwned.example/range" } }'
    assert.match(first(plain) ?? '', /breach_check_url: needs https, or outbound\.allow_http: true/)
    assert.equal(first(plain, { SERVICE_OUTBOUND__ALLOW_HTTP: 'true' }), undefined)
    for (const url of [
      'https://user@pwned.example/range',
      'https://pwned.example/range?key=1',
      'pwned.example',
    ])
      assert.ok(first(`auth: { email_password: { breach_check_url: "${url}" } }`), url)
  })

  test('a rule is not applied to a setting that is invalid by itself', () => {
    const lines = complaints({ yaml: 'mail: { transport: smtp, smtp_url: http://mail }' })
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', /mail\.smtp_url: must be a URL like smtps/)
  })
})

describe('addresses', () => {
  const refused = (setting: string, value: string) => complaints({ env: { [setting]: value } }).length > 0

  test('an origin has a scheme, a host, perhaps a port, and nothing else', () => {
    const wrong = [
      'https://a.example/x',
      'https://a.example?x',
      'https://a.example/#',
      'https://u@a.example',
      'a.example',
    ]
    for (const value of [
      ...wrong,
      'myapp://a',
      'javascript:alert(1)',
      'https://*.example',
      '//a.example',
      'null',
    ]) {
      assert.ok(refused('SERVICE_SERVER__PUBLIC_URL', value), value)
      assert.ok(refused('SERVICE_AUTH__TRUSTED_ORIGINS', value), value)
    }
  })

  test('a network is an address or a CIDR block', () => {
    for (const value of [
      '10.0.0.0/33',
      '::/129',
      '10.0.0',
      'fe80::1%eth0',
      '10.0.0.0/',
      'localhost',
      '10.0.0.0/8/8',
    ]) {
      assert.ok(refused('SERVICE_SERVER__TRUSTED_PROXIES', value), value)
    }
  })

  test('a database URL that its password cuts in two is refused, because the mask would cover only half of it', () => {
    for (const value of [
      'postgres://u:1#x@h/d',
      'postgres://u:1/x@h/d',
      'postgres://u:1?x@h/d',
      'mysql://h/d',
      'h:5432',
    ]) {
      assert.ok(refused('DATABASE_URL', value), value)
      assert.ok(refused('SERVICE_CLIENTS__A__URL', value), value)
    }
  })

  test('a client’s URL reaches no socket, file or server option', () => {
    for (const value of [
      'postgres:///d?host=/tmp',
      'postgres://%2Ftmp/d',
      'postgres://h/d?options=-c%20x',
      'postgres://h/d?sslkey=/etc/k',
    ]) {
      assert.ok(refused('SERVICE_CLIENTS__A__URL', value), value)
    }
  })

  test('a cookie name is a token, a sender has an address and no line break', () => {
    for (const value of ['a b', 'a;b', 'a=b', 'ä', 'a,b'])
      assert.ok(refused('SERVICE_SESSION__COOKIE_NAME', value), value)
    for (const value of ['Gatehouse', 'a@b\nBcc: c@d', 'A <a@b>, B <c@d>'])
      assert.ok(refused('SERVICE_MAIL__FROM', value), value)
    for (const value of ['a@b.example', 'Ä & B <a@b.example>', '"A, B" <a@b.example>']) {
      assert.ok(!refused('SERVICE_MAIL__FROM', value), value)
    }
  })
})

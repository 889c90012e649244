import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { withoutComments } from './source-code.ts'

/** Files that never see text of a caller: commands, configuration, our own database. */
const NOT_REACHED =
  /^(cli\/|kernel\/config\/(?!addresses|scylla-url)|kernel\/db\/|control\.ts|app\.ts|main\.ts)|\.test\.ts$/

/** Unbounded repetitions that `isSimple` rejects, and why the time of each grows at most linearly with the text. */
const CLEARED: readonly (readonly [file: string, literal: string, reason: string])[] = [
  [
    'kernel/mail/read-message.ts',
    String.raw`/(https?:\/\/\S+)/`,
    'an attempt that begins with http:// succeeds',
  ],
  [
    'databases/drivers/catalogue-cache.ts',
    String.raw`/\b(?:create|alter|drop|import|call|do(?!\s+(?:nothing|update)\b)|(?<!\b(?:insert|merge)\s+)into)\b/i`,
    'a run of spaces is read once for each of the two words beside it',
  ],
  [
    'gateway/backups/dump/left-out.ts',
    String.raw`/^SCHEMA - (.*) \S+$/`,
    'a line of pg_restore with two names of at most 63 bytes',
  ],
  [
    'console/assets.ts',
    String.raw`/^(?:import|export)\b[^'"();]*?from\s*['"]([^'"]+)['"]/gm`,
    'the modules of our own console',
  ],
  ['auth/organization/fields.ts', String.raw`/^-?\d+(\.\d+)?$/`, 'the parts share no character'],
  [
    'kernel/http/own-host.ts',
    String.raw`/^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/`,
    'a header; the parts share no character',
  ],
  ['auth/password/well-known-passwords.ts', String.raw`/^(#.*\n)+\n/`, 'a file of our own'],
  ['kernel/http/origins.ts', String.raw`/\/+/g`, 'an attempt ends behind the run that it begins'],
  [
    'kernel/config/addresses.ts',
    String.raw`/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/`,
    'the settings alone; only the second part begins with a slash',
  ],
  [
    'databases/clients/custom.ts',
    String.raw`/^https?:\/\/[a-z0-9.:-]+(\/|\/rest\/v1\/?)?$/i`,
    'a header; the parts share no character',
  ],
  [
    'databases/request/decimal.ts',
    String.raw`/^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,5}))?$/`,
    'at most MAX_DIGITS characters',
  ],
  [
    'databases/drivers/postgres/sql/parse-tree.ts',
    String.raw`/^-?[\d.]+(?:[eE][+-]?\d+)?$/`,
    'at most 10,000 characters; the parts share no character',
  ],
  [
    'databases/drivers/postgres/management.ts',
    String.raw`/"(?:[^"]|"")*"|[^,\s"]+/g`,
    'a setting of the database; an attempt ends at the next quote',
  ],
  [
    'databases/drivers/postgres/protocol/errors.ts',
    String.raw`/\$(\d+)/`,
    'an attempt that begins at a $ ends before the next one',
  ],
  ['databases/drivers/postgres/protocol/errors.ts', '/^E[A-Z]+$|^ERR_(SSL|TLS)/', 'a code of Node'],
  ['databases/drivers/postgres/protocol/row-query.ts', String.raw`/\d+$/`, "the server's command tag"],
  [
    'databases/drivers/postgres/protocol/script.ts',
    String.raw`/^(?:INSERT \d+|UPDATE|DELETE|MERGE|COPY) (\d+)$/`,
    "the server's command tag",
  ],
  [
    'databases/drivers/postgres/sql/statement-text.ts',
    String.raw`/[\p{L}_\u0080-\uffff][\p{L}\p{N}_$\u0080-\uffff]*|\d[\p{L}\p{N}_.]*/uy`,
    'sticky; the scan continues after the match',
  ],
  [
    'databases/drivers/postgres/sql/statement-text.ts',
    String.raw`/\$(?:[\p{L}_\u0080-\uffff][\p{L}\p{N}_\u0080-\uffff]*)?\$/uy`,
    'sticky; an attempt that begins at a $ ends at the next one',
  ],
  [
    'databases/drivers/scylla/catalogue.ts',
    String.raw`/^(?:values|keys|entries|full)\((.*)\)$/s`,
    'text that the server writes',
  ],
  ['databases/drivers/scylla/catalogue.ts', String.raw`/^(\w+)<(.*)>$/`, 'text that the server writes'],
  [
    'databases/drivers/scylla/numbers.ts',
    String.raw`/^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i`,
    'from the start; the parts share no character',
  ],
  [
    'databases/drivers/scylla/reads.ts',
    String.raw`/ If you want .* use ALLOW FILTERING\.?/s`,
    'a message that the server writes',
  ],
  [
    'databases/drivers/scylla/times.ts',
    String.raw`/^P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d{1,9}))?S)?)?$/`,
    'from the start; each of six parts reads the digits at most once',
  ],
  ['databases/drivers/scylla/times.ts', '/0+$/', 'nine digits'],
  [
    'databases/drivers/scylla/values.ts',
    String.raw`/^\\x(?:[0-9a-f]{2})*$/i`,
    'from the start; every step takes two characters',
  ],
  [
    'databases/drivers/supabase/call.ts',
    String.raw`/^(select|columns|on_conflict|(.*\.)?(order|limit|offset|and|or))$/`,
    'the name of an argument, which is also in the catalogue',
  ],
  [
    'databases/drivers/supabase/json-kind.ts',
    String.raw`/^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/`,
    'at most MAX_NUMBER_LENGTH characters; the parts share no character',
  ],
  [
    'databases/drivers/supabase/errors.ts',
    '/column "([^"]+)"/',
    'a message of PostgREST; an attempt ends at the next quote',
  ],
  [
    'databases/drivers/supabase/errors.ts',
    '/constraint "([^"]+)"/',
    'a message of PostgREST; an attempt ends at the next quote',
  ],
  [
    'databases/drivers/supabase/openapi.ts',
    String.raw`/(?:^|\n\n)Note:\n(.*)$/s`,
    'text that PostgREST writes',
  ],
  [
    'databases/drivers/supabase/openapi.ts',
    String.raw`/<fk table='(.*)' column='(.*)'\/>$/`,
    'text that PostgREST writes',
  ],
  [
    'gateway/grouping/grouper.ts',
    String.raw`/^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?)?$/`,
    'from the start; the one repetition is followed by other characters',
  ],
  ['kernel/config/addresses.ts', String.raw`/^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/`, 'a setting'],
  [
    'kernel/config/addresses.ts',
    String.raw`/^(\*\.)?[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*(:\d{1,5})?$/`,
    'a setting',
  ],
  [
    'kernel/config/addresses.ts',
    String.raw`/^([\w.~!$&'()*+,;=:-]|%[2-7][\dA-F])*$/i`,
    'the password of a URL of at most 4,096 characters; the parts share no character',
  ],
  ['kernel/config/addresses.ts', String.raw`/^[a-z0-9.-]+$|^\[/`, 'a setting'],
  [
    'kernel/config/scylla-url.ts',
    String.raw`/^(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*$/`,
    'a host of a URL of at most 4,096 characters; the parts share no character',
  ],
  [
    'kernel/config/scylla-url.ts',
    String.raw`/^(?:scylladb|scylla|cassandra):\/\/(?:([^:@/?#]+):([^:@/?#]+)@)?([^:@/?#]+)(?::(\d{1,5}))?\/([A-Za-z][A-Za-z0-9_]{0,47})(?:\?([^#]*))?$/`,
    'a URL of at most 4,096 characters; each part ends at a character that it cannot contain',
  ],
  [
    'kernel/http/bodies/escaped-keys.ts',
    String.raw`/\\.[^"\\]*"\s*:/s`,
    'an attempt that begins at a backslash ends before the next one',
  ],
  [
    'databases/drivers/supabase/errors.ts',
    '/foreign key constraint "[^"]+" on table "([^"]+)"/',
    'a message of PostgREST; an attempt ends at the next quote',
  ],
  ['kernel/http/client-address.ts', '/%.*$/', 'the address of a socket'],
  [
    'kernel/http/client-address.ts',
    String.raw`/^(?:([\d.]+):\d{1,5}|\[([\da-f.]*:[\da-f:.]*)\](?::\d{1,5})?)$/i`,
    'a header, at most limits.header; the parts share no character',
  ],
  ['kernel/memory-parts.ts', String.raw`/^Rss(?:File|Shmem):\s+(\d+) kB/gm`, 'a file of the system'],
  ['kernel/http/fast-path.ts', String.raw`/^([│ ]*)[├└]── (.*) \(GET\)$/`, 'routes of our own'],
  ['kernel/http/fast-path.ts', String.raw`/\[.*\]$/`, 'routes of our own'],
  ['kernel/http/fast-path.ts', String.raw`/[^",[\]]+(?=\(\)")/g`, 'routes of our own'],
  [
    'databases/drivers/postgres/changes/position.ts',
    String.raw`/^([0-9a-f]{32})\.([0-9a-f]{32})\.(\d{1,20}):((?:\d{1,20}(?:,\d{1,20})*)?)$/`,
    'from the start; a comma separates the repetitions, and digits have none',
  ],
  ['gateway/schema/types/kysely/names.ts', '/[a-z0-9]+/gi', 'matches whenever one character does'],
  ['kernel/http/document/operations.ts', '/[^A-Za-z0-9]+/', 'the address of a route'],
  ['kernel/http/routes.ts', String.raw`/:(\w+)/g`, 'the address of a route'],
  ['kernel/http/routes.ts', String.raw`/:\w+/g`, 'the address of a route'],
  [
    'kernel/redact.ts',
    String.raw`/([?&](?:api_key|token|(?:user_|device_)?code|otp|state|apikey)=)[^&\s"]+/gi`,
    'every attempt that reaches the repetition matches; the scan continues after it',
  ],
  [
    'kernel/redact.ts',
    String.raw`/\$(argon2(?:id|i|d)|2[aby]|pbkdf2[a-z0-9-]*|scrypt)\$[^\s"']+/g`,
    'an attempt that begins at a $ ends at the next one, or matches',
  ],
  [
    'kernel/redact.ts',
    String.raw`/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{8,}/gi`,
    'the parts share no character, and the next attempt begins after them',
  ],
  [
    'kernel/redact.ts',
    String.raw`/\b(password=)('(?:[^'\\]|\\.)*'|[^\s&"';]+)/gi`,
    'the quote of the next match closes a quoted value, so only the last one can be open',
  ],
  [
    'kernel/redact.ts',
    String.raw`/\bsvc_[0-9a-f]{16}\.[A-Za-z0-9_-]{20,}/g`,
    'the repetition contains no word boundary',
  ],
  [
    'kernel/redact.ts',
    String.raw`/\bwhsec_[A-Za-z0-9+/=_-]{8,}/g`,
    'matches whenever eight characters follow',
  ],
  [
    'kernel/redact.ts',
    String.raw`/^([A-Z][A-Z0-9_]{2,63}|[0-9A-Z]{5}|[a-z]+(_[a-z]+)+|\d{1,3})$/`,
    'from the start; the parts share no character',
  ],
]

type RepetitionAt = { readonly file: string; readonly literal: string }

const SRC = new URL('../src/', import.meta.url)

const repetitions = (): readonly RepetitionAt[] =>
  readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !NOT_REACHED.test(file))
    .flatMap((file) => found(file, readFileSync(new URL(file, SRC), 'utf8')))

function found(file: string, text: string): RepetitionAt[] {
  const literals = new Set<string>()
  withoutComments(text, (literal) => literals.add(literal))
  return [...literals].filter((literal) => !isSimple(literal)).map((literal) => ({ file, literal }))
}

/** True without unbounded repetitions, or with one repetition of single characters in a pattern anchored at the start. */
function isSimple(literal: string): boolean {
  const end = literal.lastIndexOf('/')
  const pattern = literal
    .slice(1, end)
    .replace(/\\[pPu]\{[^}]*\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\./gi, 'c')
    .replace(/\[[^\]]*\]/g, 'c')
  const repeated = [...pattern.matchAll(/(.)(?:[*+]|\{\d+,\})/g)]
  if (repeated.length === 0) return true
  const isAnchored = /^\^[^|]*$/.test(pattern) && !literal.slice(end).includes('m')
  return isAnchored && repeated.length === 1 && repeated[0]?.[1] !== ')'
}

const isCleared = ({ file, literal }: RepetitionAt): boolean =>
  CLEARED.some(([cleared, pattern]) => cleared === file && pattern === literal)

test('every regular expression over text of a caller is bounded, or has a reason why it is safe', () => {
  assert.deepEqual(
    repetitions().filter((one) => !isCleared(one)),
    [],
  )
})

test('the rule rejects expressions that can backtrack, and accepts those that cannot', () => {
  const wrong = [
    '/a+$/',
    '/^(a+)+$/',
    '/^a+b+$/',
    '/^a|b+/',
    '/^a{2,}b*/',
    '/^[a-z]+$/m',
    '/\\s+/g',
    '/^(ab)*$/',
  ]
  const right = ['/^a+$/', '/^[^/+*]*$/u', '/a{1,30}$/', '/["\\\\]/', '/^\\p{L}+$/u', '/\\+00$/']
  for (const literal of wrong) assert.equal(found('a.ts', `const a = ${literal}\n`).length, 1, literal)
  for (const literal of right) assert.deepEqual(found('a.ts', `const a = ${literal}\n`), [], literal)
})

test('every reason is still needed', () => {
  const all = repetitions()
  for (const [file, literal] of CLEARED)
    assert.ok(
      all.some((one) => one.file === file && one.literal === literal),
      `${file} has no ${literal}`,
    )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { createLog } from '#kernel/log.ts'
import type { beginChecks, DoctorContext, DoctorDatabases } from './doctor-checks.ts'
import { createDoctor } from './running-doctor.ts'

/** As far as the checks of these tests read them. */
const databases = {} as DoctorDatabases
const contextWith = (config: Parameters<typeof defaultConfig>[0] = {}): DoctorContext =>
  ({ config: defaultConfig(config) }) as DoctorContext

const fine = { subject: 'database', ok: true, says: 'answers' }

function heldChecks() {
  const held = Promise.withResolvers<readonly (typeof fine)[]>()
  const begun = { count: 0 }
  const begin: typeof beginChecks = () => {
    begun.count++
    return [
      { subject: 'configuration', found: Promise.resolve([fine]) },
      { subject: 'database', found: held.promise },
    ]
  }
  return { held, begun, begin }
}

test('concurrent calls share a run, and a later one begins another', async () => {
  const { held, begun, begin } = heldChecks()
  const doctor = createDoctor(contextWith(), databases, { begin })
  const calls = Array.from({ length: 10 }, () => doctor())
  held.resolve([fine])
  for (const findings of await Promise.all(calls)) assert.deepEqual(findings, [fine, fine])
  assert.equal(begun.count, 1)
  await doctor()
  assert.equal(begun.count, 2)
})

test('a part that is late is a finding, and no other run begins until it has ended', async () => {
  const { held, begun, begin } = heldChecks()
  const doctor = createDoctor(contextWith(), databases, { begin, patience: 20 })
  const findings = await doctor()
  assert.deepEqual(findings[0], fine)
  assert.deepEqual([findings[1]?.subject, findings[1]?.ok], ['database', false])
  assert.match(findings[1]?.says ?? '', /within 0\.02 s/)
  assert.equal(await doctor(), findings)
  assert.equal(begun.count, 1)
  held.resolve([fine])
  await held.promise
  await new Promise(setImmediate)
  await doctor()
  assert.equal(begun.count, 2)
})

test('checks that fail are a finding and a record of the log, and the others are told', async () => {
  const begin: typeof beginChecks = () => [
    { subject: 'database', found: Promise.reject(new Error('broken')) },
    { subject: 'configuration', found: Promise.resolve([fine]) },
  ]
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  })
  const findings = await createDoctor({ ...contextWith(), log }, databases, { begin })()
  assert.deepEqual(findings[1], fine)
  assert.deepEqual([findings[0]?.subject, findings[0]?.ok], ['database', false])
  assert.doesNotMatch(findings[0]?.says ?? '', /broken/)
  assert.match(lines.join(''), /"event":"check_failed".*broken/)
})

test('secrets of the configuration that a server repeats are masked, and words that only look alike are not', async () => {
  const config = {
    clients: {
      shop: { url: 'postgres://shop:postgres@db/x?sslmode=require' },
      far: { driver: 'supabase', url: 'https://:key-of-far@far.example/rest/0123456789abcdef0123' },
    },
    mail: { smtp_url: 'smtp://sender:p%40ss-word@mail.example' },
  } as const
  const texts: Readonly<Record<string, string>> = {
    'postgresql 18 requires a password': 'postgresql 18 requires a password',
    'no entry for "postgres"': 'no entry for "***"',
    'refused p@ss-word and p%40ss-word': 'refused *** and ***',
    'GET https://far.example/rest/0123456789abcdef0123 with key-of-far':
      'GET https://far.example/rest/*** with ***',
    'sent /rest/0123456789abcdef0123': 'sent /rest/***',
  }
  const begin: typeof beginChecks = () => [
    {
      subject: 'texts',
      found: Promise.resolve(Object.keys(texts).map((says) => ({ subject: 'x', ok: true, says }))),
    },
  ]
  const findings = await createDoctor(contextWith(config), databases, { begin })()
  assert.deepEqual(
    findings.map(({ says }) => says),
    Object.values(texts),
  )
})

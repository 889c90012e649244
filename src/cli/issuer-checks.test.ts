import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { startJwtIssuer } from '#test/jwt-issuer.ts'
import { issuerFindings } from './issuer-checks.ts'

const acme = await startJwtIssuer()
const LOOPBACK = { allow_http: true, allow_networks: ['127.0.0.0/8'] }

async function findings(issuers: readonly string[], outbound: object = LOOPBACK) {
  const row_level_security = {
    enabled: true,
    issuers: issuers.map((issuer) => ({ issuer, audience: ['x'] })),
  }
  const config = defaultConfig({ clients: { app: { row_level_security } }, outbound })
  return (await issuerFindings(config)).map(
    ({ subject, ok, says }) => `${subject} ${ok ? 'ok' : 'BAD'}: ${says}`,
  )
}

test('the doctor reads the keys of each issuer', async () => {
  const [found, spelled, absent] = await findings([acme.issuer, `${acme.issuer}/`, 'http://127.0.0.1:1'])
  assert.equal(found, `client app ok: the keys of the issuer ${acme.issuer} were read`)
  assert.match(spelled ?? '', /^client app BAD: .*spelled in another way$/)
  assert.match(absent ?? '', /^client app BAD: .*ECONNREFUSED/)
})

test('the doctor says that the rules of outbound requests forbid an issuer', async () => {
  const [found] = await findings([acme.issuer], { allow_http: true })
  assert.match(found ?? '', /BAD: .*private network \(outbound.allow_networks opens exceptions\)/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { complaints, load } from '#test/configuration.ts'
import { maskedConfig } from './config.ts'
import { createSecretMask } from './secret-mask.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const GOOD = { url: 'https://app.example.com/hook', secret, on: ['sign_in'] }
const yamlOf = (hook: object, name = 'mine') => JSON.stringify({ auth: { hooks: { [name]: hook } } })
const problemsOf = (hook: object, name?: string) => complaints({ yaml: yamlOf(hook, name) })

test('a hook has an address, a secret and points; timeout and effect of a failure have defaults', () => {
  assert.deepEqual(load({ yaml: yamlOf(GOOD) }).auth.hooks.mine, {
    ...GOOD,
    timeout: 3_000,
    on_failure: 'refuse',
  })
  for (const name of ['url', 'secret'] as const) {
    const { [name]: _, ...rest } = GOOD
    assert.match(problemsOf(rest)[0] ?? '', new RegExp(`auth\\.hooks\\.mine.*${name}`), name)
  }
})

test('every wrong setting of a hook is refused', () => {
  const wrong: readonly object[] = [
    { secret: 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    { secret: 'whsec_' },
    { secret: 'whsec_c2hvcnQ=' },
    { secret: `${secret}=` },
    { secret: `whsec_${Buffer.alloc(65).toString('base64')}` },
    { on: [] },
    { on: ['sign_in', 'sign_in'] },
    { on: ['sign_out'] },
    { url: 'http://app.example.com/hook' },
    { url: 'ftp://app.example.com/hook' },
    { url: 'https://user:password@app.example.com/hook' },
    { timeout: '11s' },
    { timeout: '0s' },
    { on_failure: 'ignore' },
  ]
  for (const each of wrong) assert.equal(problemsOf({ ...GOOD, ...each }).length, 1, JSON.stringify(each))
  assert.match(problemsOf(GOOD, 'Mine')[0] ?? '', /a hook name must be/)
  const withoutTokens = { auth: { jwt: { enabled: false }, hooks: { mine: { ...GOOD, on: ['token'] } } } }
  assert.match(complaints({ yaml: JSON.stringify(withoutTokens) })[0] ?? '', /auth\.jwt\.enabled/)
})

test('hooks that one request waits for have less time together than the request', () => {
  const slow = { ...GOOD, timeout: '10s' }
  const of = (hooks: readonly object[], timeout = '40s') => ({
    limits: { timeout },
    auth: { hooks: Object.fromEntries(hooks.map((hook, index) => [`hook${index}`, hook])) },
  })
  const told = (tree: object) => complaints({ yaml: JSON.stringify(tree) })
  const both = { ...slow, on: ['sign_up', 'sign_in'] }
  const token = { ...slow, on: ['token'] }
  for (const fits of [
    [both, slow, token, token],
    [token, token, token],
  ])
    assert.deepEqual(told(of(fits)), [])
  for (const exceeds of [
    [both, both],
    [slow, slow, slow, slow],
    [token, token, token, token],
  ]) {
    const [problem = '', ...more] = told(of(exceeds))
    assert.match(problem, /auth\.hooks: before (sign_up and sign_in|token) the timeouts .* limits\.timeout/)
    assert.deepEqual(more, [])
    assert.deepEqual(told(of(exceeds, '41s')), [])
  }
})

test('the secret comes from the environment too, and is masked', () => {
  const { secret: _, ...rest } = GOOD
  const config = load({ yaml: yamlOf(rest), env: { SERVICE_AUTH__HOOKS__MINE__SECRET: secret } })
  assert.equal(config.auth.hooks.mine?.secret, secret)
  assert.ok(!JSON.stringify(maskedConfig(config)).includes(secret))
  assert.ok(!createSecretMask(config)(`refused ${secret}`).includes(secret))
})

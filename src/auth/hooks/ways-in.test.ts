import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEVICE_CLIENTS } from '#test/devices.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'
import { waysIn } from '#test/hook-ways.ts'
import { expectSilentAbout, OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'
import { startOpenidProvider } from '#test/identity-provider/openid-provider.ts'
import { oidcSettings, register } from '#test/identity-provider/visits.ts'

const hook = await startHookReceiver()
const idp = await startOpenidProvider()
const t = await testService({
  config: {
    outbound: OUTBOUND,
    rate_limits: { enabled: false },
    auth: {
      ...EVERY_FEATURE,
      email: { sign_in_after_verification: true },
      device: { clients: DEVICE_CLIENTS },
      social: { providers: { acme: oidcSettings(idp) } },
      hooks: { mine: hook.settings() },
    },
  },
})
register(t, idp, ['acme'])
const { db } = t.service.kernel
const told: string[] = [PASSWORD]

/** The answer when a hook refuses, on each kind of route. */
const refusals: readonly ((answer: Answer | string) => boolean)[] = [
  (answer) => typeof answer !== 'string' && answer.status === 403 && answer.body?.code === 'REFUSED_BY_HOOK',
  (answer) => typeof answer === 'string' && answer === '/failed?error=refused_by_hook',
  (answer) => typeof answer !== 'string' && answer.status === 403 && answer.text.includes('Not with us'),
]

const rows = async () => {
  const users = await db.selectFrom('user').select(['id', 'isAnonymous', 'email']).orderBy('id').execute()
  const sessions = await db.selectFrom('session').select('id').orderBy('id').execute()
  const proofs = await db.selectFrom('verification').select('valueHash').orderBy('valueHash').execute()
  return { users, sessions, proofs }
}

for (const [name, { calls, begin, burns, twoActs, endsSession }] of Object.entries(
  waysIn(t, { hook, idp, told }),
)) {
  test(`${name}: a refusal of a hook leaves everything as it was, and the way works when the hook agrees`, async () => {
    hook.reply({})
    const enter = await begin()
    hook.taken()
    hook.reply((response, { type }) =>
      response.end(JSON.stringify(type === calls[0]?.split(' ')[0] ? REFUSE : {})),
    )
    const before = await rows()
    const refused = await enter()
    assert.ok(
      refusals.some((isRefusal) => isRefusal(refused)),
      JSON.stringify(refused),
    )
    assert.deepEqual(hook.taken(), calls.slice(0, 1))
    const after = await rows()
    assert.deepEqual([after.users, after.sessions], [before.users, before.sessions])
    if (burns !== true) assert.deepEqual(after.proofs, before.proofs)
    // Then the second hook of the way, if there is one.
    if (calls.length > 1 && endsSession !== true) {
      hook.reply((response, { type }) =>
        response.end(JSON.stringify(type === 'before.sign_in' ? REFUSE : {})),
      )
      const again = await enter()
      assert.ok(
        refusals.some((isRefusal) => isRefusal(again)),
        JSON.stringify(again),
      )
      assert.deepEqual(hook.taken(), calls)
    }
    hook.reply({})
    const entered = await enter()
    assert.ok(
      typeof entered === 'string' ? entered === '/app' : entered.status < 400,
      JSON.stringify(entered),
    )
    const expected = twoActs === true ? calls.slice(1) : calls
    assert.deepEqual(hook.taken(), expected)
    expectSilentAbout(hook, told)
  })
}

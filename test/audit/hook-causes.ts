import assert from 'node:assert/strict'
import { type Answer, actor, PASSWORD, type TestService, testService, type User } from '#test/harness.ts'
import { OUTBOUND, REFUSE, startHookReceiver } from '#test/hooks.ts'

type Seen = { readonly actorId: string; readonly targetId: string | null; readonly answer: Answer }

/** Causes of the refusals of hooks, at a service with a hook that refuses all. */
export async function hookCauses({ controlUrl }: TestService, newcomer: () => Promise<User>) {
  const hook = await startHookReceiver()
  hook.reply(REFUSE)
  const hooks = { strict: hook.settings({ on: ['sign_up', 'token'] }) }
  const t = await testService({ controlUrl, config: { outbound: OUTBOUND, auth: { hooks } } })
  const refused = (answer: Answer): Answer => {
    assert.equal(answer.body.code, 'REFUSED_BY_HOOK', answer.text)
    return answer
  }
  return {
    'sign_up.failed': async (): Promise<Seen> => {
      const body = { name: 'Ada', email: 'refused@example.com', password: PASSWORD }
      const answer = refused(await t.anon.post('/api/auth/sign-up/email', body))
      return { actorId: 'anonymous', targetId: null, answer }
    },
    'token.failed': async (): Promise<Seen> => {
      const { id, token } = await newcomer()
      const who = actor(t.url, { authorization: `Bearer ${token}` })
      return { actorId: id, targetId: id, answer: refused(await who.get('/api/auth/token')) }
    },
  }
}

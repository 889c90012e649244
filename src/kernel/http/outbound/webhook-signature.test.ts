import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { secureRandom } from '#kernel/random.ts'
import { signedHeaders } from './webhook-signature.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test('the published vector of the specification', () => {
  const content = {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1_614_265_330,
    body: '{"test": 2432232314}',
  }
  assert.deepEqual(signedHeaders([SECRET], content), {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('the official package verifies signatures of random secrets, and the old or the new one of a rotation', () => {
  for (let round = 0; round < 50; round++) {
    const [old, fresh] = [0, 0].map(() => `whsec_${secureRandom(32).toString('base64')}`) as [string, string]
    const body = JSON.stringify({ text: `é\u2028💡${secureRandom(round).toString('latin1')}` })
    const timestamp = Math.floor(Date.now() / 1_000)
    const headers = { ...signedHeaders([fresh, old], { id: `evt_${round}`, timestamp, body }) }
    for (const secret of [old, fresh])
      assert.deepEqual(new Webhook(secret).verify(body, headers), JSON.parse(body))
    const stranger = `whsec_${secureRandom(32).toString('base64')}`
    assert.throws(() => new Webhook(stranger).verify(body, headers), /No matching signature/)
    assert.throws(() => new Webhook(old).verify(`${body} `, headers), /No matching signature/)
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, actor } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import {
  type Door,
  doorsOf,
  type Enter,
  MAILED_CODE,
  type Method,
  type Person,
  personWith,
  plantCode,
} from '#test/mailbox-doors.ts'
import { codeOf } from '#test/second-factor.ts'
import { setRoleByOperator } from '../admin/operator.ts'

const { t, kernel, idToken } = await startSocialService({
  email: { sign_in_after_verification: true },
  two_factor: { required_for: ['admin'] },
})
const DOORS = doorsOf({ t, idToken })
const AUTH = '/api/auth'

const said = ({ status, body }: Answer) => (body?.code === undefined ? `${status}` : `${status} ${body.code}`)
const withToken = (token: string): Actor => actor(t.url, { authorization: `Bearer ${token}` })

/** The answers on both sides of a door. None: the way in starts neither a session nor a second step. */
type Seen = {
  /** The methods of the second step. */
  readonly offered?: string
  readonly sent?: string
  readonly accepted?: string
  readonly sentInSession?: string
  /** By /reauthenticate. */
  readonly shown?: string
  readonly acceptedInSession?: string
  /** Codes by mail, with the password. */
  readonly enrolled?: string
  /** The session opens what a role with `required_for` opens. */
  readonly isEnough?: boolean
}

async function lookAt(person: Person, enter: Enter): Promise<Seen> {
  const entered = await enter(person)
  const { pending: token, methods: offered = '' } = entered
  if (token === undefined) return entered.session === undefined ? {} : lookInside(person, entered.session)
  const sent = said(await t.anon.post(`${AUTH}/two-factor/send-otp`, { token }))
  await plantCode(t, person, entered)
  const verified = await t.anon.post(`${AUTH}/two-factor/verify-otp`, { token, code: MAILED_CODE })
  const session = person.methods.includes('totp') ? await enterByApp(person, enter) : verified.body.token
  const before = { offered, sent, accepted: said(verified) }
  return session === undefined ? before : { ...before, ...(await lookInside(person, session)) }
}

async function enterByApp(person: Person, enter: Enter): Promise<string> {
  const { pending: token } = await enter(person)
  const code = codeOf(t, person.secret)
  return (await t.anon.post(`${AUTH}/two-factor/verify-totp`, { token, code })).body.token
}

async function lookInside(person: Person, session: string): Promise<Seen> {
  const sent = await withToken(session).post(`${AUTH}/two-factor/send-otp`)
  await plantCode(t, person, { session })
  const shown = await withToken(session).post(`${AUTH}/reauthenticate`, { code: MAILED_CODE })
  const token = shown.body.token ?? session
  const me = withToken(token)
  await plantCode(t, person, { session: token })
  const accepted = await me.post(`${AUTH}/two-factor/verify-otp`, { code: MAILED_CODE })
  const asked = { method: 'otp', password: person.password }
  const enrolled = await me.post(`${AUTH}/two-factor/enable`, asked)
  await setRoleByOperator(kernel, person.id, 'admin')
  return {
    ...{ sentInSession: said(sent), shown: said(shown), acceptedInSession: said(accepted) },
    ...{ enrolled: said(enrolled), isEnough: (await me.get(`${AUTH}/list-sessions`)).status === 200 },
  }
}

const REFUSED = '400 OTP_NOT_ENABLED'
const NOT_TAKEN = { sent: REFUSED, accepted: REFUSED }
const INSIDE = {
  sentInSession: '200',
  shown: '200',
  acceptedInSession: '200',
  enrolled: '200',
  isEnough: true,
}
const TAKEN = { sent: '200', accepted: '200', ...INSIDE }
const WITHOUT_FACTOR = {
  ...{ sentInSession: REFUSED, shown: '400 TWO_FACTOR_NOT_ENABLED', acceptedInSession: REFUSED },
  ...{ enrolled: '200', isEnough: false },
}

/** Where the mailbox has counted, and where it has not. */
type Expected = { readonly counted: Seen; readonly other: Seen } & Partial<Record<Door, Seen>>

const PEOPLE: Readonly<Record<string, Expected & { readonly methods: readonly Method[] }>> = {
  'an authenticator app': {
    methods: ['totp'],
    counted: {
      ...{ offered: 'totp', ...NOT_TAKEN, sentInSession: REFUSED, shown: '401 INVALID_CODE' },
      ...{ acceptedInSession: REFUSED, enrolled: REFUSED, isEnough: true },
    },
    other: { offered: 'totp otp', ...TAKEN },
    // In the session the password has been used together with the app.
    'a reset by mail': { offered: 'totp', ...NOT_TAKEN, ...INSIDE },
  },
  'a passkey': {
    methods: ['passkey'],
    counted: { ...WITHOUT_FACTOR, enrolled: REFUSED },
    other: WITHOUT_FACTOR,
  },
  'codes by mail': {
    methods: ['otp'],
    counted: { offered: 'otp', ...TAKEN, isEnough: false },
    other: { offered: 'otp', ...TAKEN },
    // The address is proven, and the password has to sign in.
    'a link in a mail': {},
  },
  'codes by mail and a passkey': {
    methods: ['otp', 'passkey'],
    counted: { offered: '', ...NOT_TAKEN },
    other: { offered: 'otp', ...TAKEN },
  },
  'no factor': { methods: [], counted: WITHOUT_FACTOR, other: WITHOUT_FACTOR },
}

const COUNTING: readonly string[] = [
  'a link in a mail',
  'a reset by mail',
  'a provider of the same mailbox',
] satisfies Door[]

for (const [who, { methods, counted, other, ...particular }] of Object.entries(PEOPLE))
  test(`the mailbox counts once for a user with ${who}: codes by mail are no factor beside it`, async () => {
    for (const [door, enter] of Object.entries(DOORS)) {
      const person = await personWith(t, methods)
      await t.mails()
      const seen = await lookAt(person, enter)
      assert.deepEqual(seen, particular[door as Door] ?? (COUNTING.includes(door) ? counted : other), door)
      const sent = [seen.sent, seen.sentInSession].filter((answer) => answer === '200')
      const codes = (await t.mails()).filter((mail) => /your code is \d/.test(mail))
      assert.equal(codes.length, sent.length, `${door}: a code is mailed where it is taken`)
    }
  })

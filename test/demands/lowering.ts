import { resetFactors } from '#auth/two-factor/reset-factors.ts'
import { PASSWORD, type TestService } from '#test/harness.ts'
import { carryOut } from '#test/proof-races/cases.ts'
import { BACKUP_CODE } from '#test/proof-races/second-factor.ts'
import { newAddress, PASSWORDS } from '#test/proof-races/user-state.ts'
import { VERBS, type VerbName } from '#test/proof-races/verbs.ts'
import type { Thief } from './thief.ts'

/** A step of a thief with the stolen session, or of the owner or an operator who know nothing of it. Its answer does not matter. */
export type Lowering = (t: TestService, thief: Thief) => Promise<unknown>

const byThief =
  (...calls: readonly (readonly [path: string, body: object])[]): Lowering =>
  async (_t, thief) => {
    for (const [path, body] of calls) await thief.post(path, body)
  }
/** The owner has a session of their own, which has just shown everything, and knows password and codes. */
const byOwner =
  (name: VerbName): Lowering =>
  (t, { person }) =>
    carryOut(t, VERBS[name].action(person, 'O'), person)
const both =
  (...lowerings: readonly Lowering[]): Lowering =>
  async (t, thief) => {
    for (const lower of lowerings) await lower(t, thief)
  }

const ENDS = 'ends the session'
const MAILED = 'needs what only the mailbox gets'
const PASSWORD_NEEDED = 'needs the password in the request'
const NOTHING = 'changes nothing that a demand looks at'
const SIGN_IN = 'needs what the thief does not know'
const DELETES = 'deletes the account'

/** How each verb of the surface could make a demand smaller, or why it cannot. A verb without an entry does not compile. */
export const LOWERING: Readonly<Record<VerbName, Lowering | string>> = {
  'sign-in by email': SIGN_IN,
  'sign-in by username': SIGN_IN,
  'renew password hash': NOTHING,
  'verify-email with session': MAILED,
  'verify-email without session, signing in': MAILED,
  'verify-email with password': MAILED,
  'verify-email with a new password': MAILED,
  'verify-email by form, with session': MAILED,
  'verify-email by code': MAILED,
  'verify-email by code, with session': MAILED,
  'sign-in by a mailed link': MAILED,
  'sign-in by a mailed code': MAILED,
  'send verification mail': NOTHING,
  'send reset mail': NOTHING,
  'reset-password': ENDS,
  'reset-password by form': ENDS,
  'change-password': byOwner('change-password'),
  'change-password with revokeOtherSessions': ENDS,
  'set-password': byThief(['/set-password', { newPassword: PASSWORDS.set }]),
  'change-email, requested': (_t, thief) =>
    thief.post('/change-email', { newEmail: newAddress(thief.person.email, 'O') }),
  'change-email, requested with password': PASSWORD_NEEDED,
  'change-email, requested with a code of the old address': MAILED,
  'change-email, confirmed by the old address': MAILED,
  'change-email, confirmed by form': MAILED,
  'change-email, completed by form, with session': MAILED,
  'change-email, completed with password': MAILED,
  'change-email, completed with a new password': MAILED,
  'change-email, completed with session': MAILED,
  'change-email, completed by code': MAILED,
  'change-email, completed without session': MAILED,
  'update-user': NOTHING,
  'unlink-account': both(
    byThief(['/unlink-account', { providerId: 'github' }], ['/unlink-account', { providerId: 'credential' }]),
    (t, { person }) =>
      t.anon.post(
        '/api/auth/unlink-account',
        { providerId: 'credential' },
        { headers: { authorization: `Bearer ${person.sessions.O.token}` } },
      ),
    byThief(['/set-password', { newPassword: PASSWORDS.set }]),
  ),
  'social, sign-in': async (_t, thief) => {
    await thief.linkAccount()
    await thief.signInAnew('account')
  },
  'social, linking begun': NOTHING,
  'social, linked at the callback': (_t, thief) => thief.linkAccount(),
  'passkey, options for a new one': NOTHING,
  'passkey, added': (_t, thief) => thief.addPasskey(),
  'passkey, added with revokeOtherSessions': 'as "passkey, added"',
  'passkey, sign-in': async (_t, thief) => {
    await thief.addPasskey()
    await thief.signInAnew('passkey')
  },
  'passkey, renamed': NOTHING,
  'passkey, removed': both(
    (_t, thief) => thief.post('/passkey/delete-passkey', { id: thief.person.passkey.id }),
    byOwner('passkey, removed'),
  ),
  'reauthenticate by password': both(
    byThief(['/reauthenticate', { password: 'a guess' }]),
    byOwner('reauthenticate by password'),
  ),
  'reauthenticate by code': both(
    byThief(['/reauthenticate', { code: '000000' }]),
    byOwner('reauthenticate by code'),
  ),
  'reauthenticate by passkey': byOwner('reauthenticate by passkey'),
  'reauthenticate, provider begun': NOTHING,
  'reauthenticate, provider at the callback': (_t, thief) => thief.reauthenticate(),
  'refresh-token': NOTHING,
  'get-access-token': NOTHING,
  'two-factor, begun': both(
    byThief(['/two-factor/enable', {}], ['/two-factor/enable', { method: 'otp' }]),
    byOwner('two-factor, begun'),
  ),
  'two-factor, put in force': byThief(['/two-factor/verify-totp', { code: '000000' }]),
  'two-factor, disabled': both(byThief(['/two-factor/disable', {}]), byOwner('two-factor, disabled')),
  'two-factor, new backup codes': both(
    byThief(['/two-factor/generate-backup-codes', {}]),
    byOwner('two-factor, new backup codes'),
  ),
  'two-factor, code of a pending sign-in': SIGN_IN,
  'two-factor, backup code of a pending sign-in': SIGN_IN,
  'two-factor, mailed code of a pending sign-in': SIGN_IN,
  'device, approved': 'as "device, fetched"',
  'device, refused': NOTHING,
  'device, fetched': (_t, thief) => thief.goOnAsDevice(),
  'delete-user in a fresh session': DELETES,
  'delete-user by password': DELETES,
  'delete-user by mail, requested': byThief(['/delete-user', {}]),
  'delete-user by token': DELETES,
  'delete-user by link': DELETES,
  'delete-user by form': DELETES,
  'delete-user by form, with password': DELETES,
  'revoke-session': byThief(['/revoke-other-sessions', {}]),
  'revoke-sessions': ENDS,
  'revoke-other-sessions': 'as "revoke-session"',
  'one-time token, generated': NOTHING,
  'one-time token, redeemed': (_t, thief) => thief.deriveSession(),
  'sign-out': ENDS,
  ban: ENDS,
  'set password as operator': ENDS,
  'delete user as operator': DELETES,
  unban: NOTHING,
  'set-role': NOTHING,
  'admin/set-role': NOTHING,
  'admin/ban-user': ENDS,
  'admin/unban-user': NOTHING,
  'admin/remove-user': DELETES,
  'admin/update-user': byOwner('admin/update-user'),
  'admin/set-user-password': ENDS,
  'admin/revoke-user-session': 'ends a session',
  'admin/revoke-user-sessions': ENDS,
  'admin/impersonate-user': 'begins a session that none of these verbs is open to',
  'admin/impersonate-user, handed off': NOTHING,
  'admin/exchange-handoff': 'as "admin/impersonate-user"',
  'admin/unban-user by this user': NOTHING,
  'admin/create-user': NOTHING,
}

/** Commands of operators that are no verbs of the races, and several steps in a row. */
export const MORE: Readonly<Record<string, Lowering>> = {
  'factors reset by an operator': ({ service: { kernel } }, { person }) => resetFactors(kernel, person.id),
  'every step of a thief': both(
    (_t, thief) => thief.addPasskey(),
    (_t, thief) => thief.linkAccount(),
    (_t, thief) => thief.deriveSession(),
    byThief(
      ['/unlink-account', { providerId: 'credential' }],
      ['/set-password', { newPassword: PASSWORDS.set }],
    ),
    (_t, thief) => thief.reauthenticate(),
    byThief(
      ['/two-factor/get-totp-uri', {}],
      ['/two-factor/generate-backup-codes', {}],
      ['/two-factor/enable', { password: PASSWORDS.set }],
    ),
  ),
  'the owner signs in again': (t, { person }) =>
    t.anon.post('/api/auth/sign-in/username', { username: person.username, password: PASSWORD }),
  'the owner shows a code': (t, { person }) =>
    t.anon.post(
      '/api/auth/two-factor/verify-backup-code',
      { code: BACKUP_CODE },
      { headers: { authorization: `Bearer ${person.sessions.O.token}` } },
    ),
}

import { withClient } from '#test/database.ts'

export type Size = {
  readonly users: number
  /** Of the first organization; all others have one. */
  readonly members: number
}

/** The host of the addresses of these users. */
export const FILLED = 'filled.example'
export const LARGE = 'large-organization'

/** Ids that a number determines. */
export const idOf = (prefix: number, number: string) =>
  `('0000000${prefix}-0000-7000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`

/**
 * Fills a control database: each user has an account, a session, a ticket, a passkey, a second factor with a code, a trusted device, an
 * organization, an invitation and an event of the audit trail. One in ten users is banned, one in a thousand is an admin.
 */
const statements = ({ users, members }: Size): readonly string[] => {
  const each = `generate_series(1, ${users}) as n`
  const user = idOf(1, 'n')
  const hash = (of: string) => `sha256(convert_to('${of}' || n, 'UTF8'))`
  const times = `now() - n * interval '1 second'`
  return [
    `insert into service."user" (id, name, email, email_verified, username, role, banned, created_at, updated_at)
      select ${user}, 'User ' || n, 'user-' || n || '@${FILLED}', n % 3 > 0, 'filled_' || n,
        case when n % 1000 = 0 then 'admin' else 'user' end, n % 10 = 1, ${times}, ${times} from ${each}`,
    `insert into service.account (id, user_id, provider_id, account_id, created_at, updated_at)
      select ${idOf(2, 'n')}, ${user}, 'github', n::text, ${times}, ${times} from ${each}`,
    `insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
      select ${idOf(3, 'n')}, ${hash('s')}, ${user}, now() + interval '7 days', ${times}, ${times}, true from ${each}`,
    `insert into service.verification (value_hash, purpose, user_id, session_id, address, expires_at, created_at)
      select ${hash('v')}, 'verify-email', ${user}, ${idOf(3, 'n')}, 'user-' || n || '@${FILLED}', now() + interval '1 day', now() from ${each}`,
    `insert into service.passkey (id, user_id, name, credential_id, public_key, counter, device_type, backed_up, transports, aaguid, created_at)
      select ${idOf(4, 'n')}, ${user}, 'Key', 'c' || n, 'x', 0, 'singleDevice', false, '', gen_random_uuid(), now() from ${each}`,
    `insert into service.two_factor (id, user_id, method, created_at) select ${idOf(5, 'n')}, ${user}, 'otp', now() from ${each}`,
    `insert into service.backup_code (two_factor_id, code_hash) select ${idOf(5, 'n')}, ${hash('b')} from ${each}`,
    `insert into service.trusted_device (id, user_id, token_hash, expires_at, created_at)
      select ${idOf(6, 'n')}, ${user}, ${hash('t')}, now() + interval '30 days', now() from ${each}`,
    `insert into service.organization (id, name, slug, created_at, updated_at)
      select ${idOf(7, 'n')}, 'Organization', case when n = 1 then '${LARGE}' else 'organization-' || n end, ${times}, ${times} from ${each}`,
    `insert into service.member (id, organization_id, user_id, role, created_at)
      select ${idOf(8, 'n')}, ${idOf(7, 'n')}, ${user}, 'owner', ${times} from ${each}`,
    `insert into service.member (id, organization_id, user_id, role, created_at)
      select gen_random_uuid(), ${idOf(7, '1')}, ${user}, 'member', ${times} from generate_series(2, ${members}) as n`,
    `insert into service.invitation (id, organization_id, inviter_id, email, role, expires_at, created_at)
      select ${idOf(9, 'n')}, ${idOf(7, 'n')}, ${user}, 'guest-' || n || '@${FILLED}', 'member', now() + interval '2 days', now() from ${each}`,
    `insert into service.audit_event (id, occurred_at, actor_id, action, target_type, target_id, outcome, count, details)
      select ${idOf(1, 'n')}, to_timestamp(65.536), ${user}::text, 'user.signed_in', 'user', ${user}::text, 'success', 1, '{}' from ${each}`,
    `insert into service.api_key (id, public_id, name, client_name, rights, salt, secret_hash, created_at, updated_at)
      select gen_random_uuid(), 'filled' || n, 'k', 'default', '{}', '', '', ${times}, ${times} from generate_series(1, ${Math.min(users, 20_000)}) as n`,
    `insert into service.rate_limit (key, points, expire) select 'filled' || n, 1, 9e12::bigint from ${each}`,
    'analyze',
  ]
}

export const fill = (url: string, size: Size): Promise<void> =>
  withClient(url, async (client) => {
    for (const statement of statements(size)) await client.query(statement)
  })

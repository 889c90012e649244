import { listJwtKeys } from '#identity/jwt/key-store.ts'
import { privateKeyOf } from '#identity/jwt/keys.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Secrets } from '#kernel/secrets.ts'
import type { Finding } from './finding.ts'

type Given = { readonly config: Config; readonly secrets: Secrets }

/** Keys that should sign tokens, and that no secret of this configuration opens. */
export async function jwtKeyFindings({ config, secrets }: Given, db: Db): Promise<Finding[]> {
  if (!config.auth.jwt.enabled) return []
  const due = (await listJwtKeys(db)).filter(({ state }) => state === 'signing' || state === 'standby')
  return due
    .filter((key) => privateKeyOf(secrets, key) === undefined)
    .map(({ id, state }) => ({
      subject: `jwt key ${id}`,
      ok: false,
      says:
        state === 'signing'
          ? `signs tokens, but ${UNREADABLE}; GET /token answers 503. Set the right secret, or run gatehouse jwt-keys rotate --now`
          : `is the next to sign tokens, but ${UNREADABLE}; a service with this secret replaces it within an hour`,
    }))
}

const UNREADABLE = 'no secret of this installation opens it'

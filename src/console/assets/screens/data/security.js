import { call } from '../../api.js'
import { pathOf } from './described.js'

/**
 * @typedef {'owner' | 'organization' | 'public_read' | 'signed_in_read'} Preset
 * @typedef {{ preset?: Preset, column?: string, insert_only_as_self?: string, name?: string, command?: string, roles?: readonly string[], using?: string | null, check?: string | null }} Policy
 * @typedef {Policy & { name: string, permissive: boolean }} OtherPolicy
 * @typedef {{ enabled: boolean, policies: readonly Policy[], other_policies: readonly OtherPolicy[], grants: readonly { role: string, privileges: readonly string[] }[] }} Security
 * @typedef {import('./described.js').At} At
 */

/** @param {At} at @param {AbortSignal} [signal] @returns {Promise<Security>} */
export async function readSecurity(at, signal) {
  const query = { schema_name: at.schema }
  const path = pathOf(at, '/row-level-security')
  return (await call(path, { client: at.client, query, ...(signal && { signal }) })).data
}

/**
 * Sets the policies as a whole, unless they are others by now than those that were shown.
 * @param {At} at
 * @param {Security} shown
 * @param {boolean} enabled
 * @param {readonly Policy[]} policies
 */
export async function setSecurity(at, shown, enabled, policies) {
  const now = await readSecurity(at)
  if (JSON.stringify([now.enabled, now.policies]) !== JSON.stringify([shown.enabled, shown.policies]))
    throw new Error(
      'The policies have changed in the meantime. Nothing was done: load the page again, and look at them first.',
    )
  await call(pathOf(at, '/row-level-security'), {
    method: 'PUT',
    client: at.client,
    body: { schema_name: at.schema, enabled, ...(enabled && { policies }) },
  })
}

/** @type {Readonly<Record<Preset, string>>} */
export const PRESETS = {
  owner: 'Owner: users have their own rows',
  organization: 'Organization: members share rows',
  public_read: 'Public: everybody reads',
  signed_in_read: 'Signed in: users read',
}

/** @param {Policy} policy */
export const titleOf = ({ preset, column, name }) =>
  preset === undefined ? (name ?? '') : column === undefined ? preset : `${preset} by ${column}`

/** Which rows a policy shows, to whom. @param {Policy} policy */
export function shownBy({ preset, column, insert_only_as_self: self, command, roles = [], using, check }) {
  switch (preset) {
    case 'owner':
      return `Signed-in users read, insert, change and delete the rows whose ${column ?? 'user_id'} is their id.`
    case 'organization':
      return `Members read, insert, change and delete the rows whose ${column ?? 'organization_id'} is their active organization.${self === undefined ? '' : ` Each row is inserted as oneself (${self}).`}`
    case 'public_read':
      return 'Everybody reads all rows, visitors without a session too.'
    case 'signed_in_read':
      return 'Everybody who is signed in reads all rows.'
    default: {
      const rows = using == null ? '' : ` rows where ${using}`
      const written = check == null ? '' : `; what is written must be ${check}`
      return `${roles.join(' and ')}: ${command === 'all' ? 'read and write' : command}${rows}${written}.`
    }
  }
}

import type { Clients } from '#databases/clients/clients.ts'
import { insertProtected } from '#databases/clients/protection.ts'
import { actAsOperator } from '#identity/act.ts'
import { tellChange } from '#identity/tell.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { decidingSetting } from '../row-level-security-off.ts'

/**
 * Switches row-level security of the built-in client on. When it resolves, no process starts an operation that passes the policies by: keys
 * and sessions without the right to that act as callers, whose operations they are told to renew end.
 */
export async function protectClient(
  kernel: Kernel,
  clients: Clients,
  name: string,
  enabled: boolean,
): Promise<void> {
  const configured = clients.configured.get(name)
  if (configured === undefined && !(await clients.registered()).has(name)) throw fail('client_not_found')
  if (configured?.protect === undefined) throw decided(name, configured?.source ?? 'database')
  if (!enabled)
    throw fail('row_level_security_configured', {
      message: 'Only the configuration switches row-level security off: keys in pages would see every row',
      ...decidingSetting(name, 'config', false),
    })
  await actAsOperator(kernel, async (kernel) => {
    const isNew = await insertProtected(kernel.db, name, kernel.now())
    const act = { targetId: name, clientName: name }
    await tellChange(kernel, 'client.protected', isNew ? ['rowLevelSecurity'] : [], act)
  })
}

const decided = (name: string, source: 'config' | 'database') =>
  fail('row_level_security_configured', decidingSetting(name, source, true))

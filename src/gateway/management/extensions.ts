import type { ExtensionDefinition, InstalledExtension } from '#databases/drivers/management.ts'
import { Failure } from '#kernel/errors.ts'
import { fail } from '../errors.ts'
import { type Changer, type EmitChange, managementOf, runAudited } from './change.ts'

/** Installs an extension of the operator's list. `ifNotExists`: one that is installed already is returned and not changed. */
export async function installManagedExtension(
  changer: Changer,
  extension: ExtensionDefinition,
  { ifNotExists }: { readonly ifNotExists: boolean },
) {
  const { name } = extension
  requireAllowed(changer, name)
  const { find } = managementOf(changer.caller).extensions
  const found = ifNotExists ? await find(name) : undefined
  if (found !== undefined) return describe(name, found)
  await install(changer, extension).catch((error: unknown) => {
    // Another caller was faster.
    if (!ifNotExists || !(error instanceof Failure) || error.code !== 'object_exists') throw error
  })
  return describe(name, await find(name))
}

async function install(changer: Changer, extension: ExtensionDefinition): Promise<void> {
  const { name, schema } = extension
  const ddl = managementOf(changer.caller).extensions.install(extension)
  const announce = (emit: EmitChange) => emit('schema_extension_installed', { extension: name, schema })
  await runAudited(changer, { operation: 'install_extension', schema, object: name, announce }, ddl)
}

const describe = (name: string, found: InstalledExtension | undefined) => ({
  extension_name: name,
  schema_name: found?.schema ?? null,
  version: found?.version ?? null,
})

function requireAllowed({ kernel }: Changer, name: string): void {
  const allowed = kernel.config.gateway.management.extensions
  if (!allowed.includes(name))
    throw fail('extension_not_allowed', {
      hint: 'The setting gateway.management.extensions lists them.',
      details: { extension_name: name, allowed },
    })
}

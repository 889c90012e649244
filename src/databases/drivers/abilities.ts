import type { Abilities, Ability, AbilityOf } from '#databases/drivers/driver.ts'
import { unsupported } from '#databases/failures.ts'
import type { DriverName } from '#kernel/config/addresses.ts'

/** Each ability as a failure names it. */
const NOUNS = {
  sql: 'SQL',
  fixedSql: 'SQL of public routes',
  call: 'functions',
  transaction: 'transactions',
  idempotency: 'idempotency keys',
  management: 'changes of the structure by /management',
  changes: 'live rows',
  indexes: 'a list of indexes',
  constraintDefinitions: 'definitions of constraints',
  declaredTypes: 'the shape kysely',
} as const satisfies Record<Ability, string>

/** The ability of this driver; 400 `unsupported_by_driver` where its backend has none. */
export function requireAbility<A extends Ability>(
  driver: Abilities & { readonly name: DriverName },
  ability: A,
): AbilityOf[A] {
  const abilities: Abilities = driver
  const found = abilities[ability]
  if (found === undefined) throw unsupported(driver.name, NOUNS[ability])
  return found
}

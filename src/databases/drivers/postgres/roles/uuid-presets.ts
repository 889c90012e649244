import type { IdClaim, RowLevelSecurity } from '#databases/drivers/driver.ts'
import { markOfPreset } from '#databases/drivers/postgres/sql/policies/mark.ts'
import { fail } from '#databases/failures.ts'
import type { Failure } from '#kernel/errors.ts'

/** A column of a preset that is a uuid, as SQL. */
export type UuidPreset = { readonly name: string; readonly preset: string }

const PRESETS: Readonly<Record<IdClaim, readonly string[]>> = {
  user_id: ['owner', 'insert_only_as_self'],
  organization_id: ['organization'],
}

/**
 * Presets convert the claim to the type of their column. Where issuers choose the claim, its text is no UUID, and each statement on the
 * table would fail. Undefined: every claim is a UUID.
 */
export function uuidPresetsSql(
  { anonymousRole, signedInRole, textClaims = [] }: RowLevelSecurity,
  literals: (texts: readonly string[]) => string,
): string | undefined {
  if (textClaims.length === 0) return undefined
  const presets = textClaims.flatMap((claim) => PRESETS[claim])
  const marks = presets.map((preset) => [preset, markOfPreset(preset)])
  const [names, texts] = [literals(presets), literals(marks.map(([, mark = '']) => mark))]
  return `
select distinct c.oid::regclass::text || '.' || quote_ident(a.attname) as name, m.preset
from pg_policy p join pg_class c on c.oid = p.polrelid
join unnest(array[${names}]::text[], array[${texts}]::text[]) m(preset, mark) on starts_with(obj_description(p.oid, 'pg_policy'), m.mark)
join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid
join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid
join pg_type t on t.oid = a.atttypid
where (case when t.typtype = 'd' then t.typbasetype else t.oid end) = 'uuid'::regtype
  and p.polroles && array(select oid from pg_roles where rolname in (${literals([anonymousRole, signedInRole])}))
order by 1`
}

export function unsafePresets(found: readonly UuidPreset[]): Failure | undefined {
  if (found.length === 0) return undefined
  return fail('unsafe_client', {
    message: `Presets of this client have uuid columns, and its issuers name users by texts: ${listed(found)}`,
    hint: 'Change the type of these columns to text and set the presets again, or take away the issuers of the client',
    details: { reasons: found.map(({ name, preset }) => `${name} (${preset}) is a uuid`) },
  })
}

const LISTED = 5

const listed = (found: readonly UuidPreset[]): string =>
  [...found.slice(0, LISTED).map(({ name }) => name), ...(found.length > LISTED ? ['…'] : [])].join(', ')

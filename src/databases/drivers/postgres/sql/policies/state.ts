import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { OtherPolicy } from '#databases/drivers/management.ts'
import { LIMITED_LOCKS } from '#databases/drivers/postgres/sql/limited-locks.ts'

/** Row-level security of a table, as the database has it. */
export type SecurityState = {
  readonly oid: string
  readonly isOwned: boolean
  readonly isInherited: boolean
  readonly enabled: boolean
  readonly policies: readonly StoredPolicy[]
  readonly rights: readonly RoleRights[]
  /** Other roles with rights on the rows, as far as policies apply to them: with FORCE, also to the owner. */
  readonly others: readonly Pick<RoleRights, 'role' | 'privileges'>[]
  /** Sequences that defaults of the table use, as SQL. */
  readonly sequences: readonly string[]
  readonly columns: readonly string[]
  readonly defaults: readonly { readonly column: string; readonly text: string }[]
}

export type StoredPolicy = OtherPolicy & {
  /** Null also for a policy with other roles: another client of the same database may have set it. */
  readonly comment: string | null
  /** The columns of the table that it reads, by name and as the server writes them in SQL. */
  readonly columns: readonly { readonly name: string; readonly quoted: string }[]
}

type RoleRights = {
  readonly role: string
  readonly exists: boolean
  /** Also through PUBLIC and other roles. */
  readonly privileges: string[]
  /** Columns that it may update. */
  readonly updatable: readonly string[]
  readonly hasSchema: boolean
}

/** Values of the statement: schema, table and the two roles. Runs with the search path pg_catalog. */
export const stateValues = (
  { schema, name }: { readonly schema: string; readonly name: string },
  { anonymousRole, signedInRole }: RowLevelSecurity,
): readonly string[] => [schema, name, anonymousRole, signedInRole]

const PRIVILEGES = `array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger']`

export const STATE_SQL = `
select json_build_object(
  'oid', c.oid::text, 'isOwned', pg_has_role(c.relowner, 'usage'), 'enabled', c.relrowsecurity,
  'isInherited', c.relispartition or c.relhassubclass or exists (select from pg_inherits i where c.oid in (i.inhrelid, i.inhparent)),
  'policies', (
    select coalesce(json_agg(json_build_object(
      'name', p.polname, 'permissive', p.polpermissive, 'using', pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid),
      'command', case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end,
      'roles', array(select case when o.role = 0 then 'public' else pg_get_userbyid(o.role)::text end from unnest(p.polroles) o(role) order by 1),
      'comment', case when p.polroles <@ array(select r.oid from pg_roles r where r.rolname in ($3, $4)) then obj_description(p.oid, 'pg_policy') end,
      'columns', (
        select coalesce(json_agg(json_build_object('name', a.attname, 'quoted', quote_ident(a.attname)) order by a.attnum), '[]')
        from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass and d.refobjid = c.oid and d.refobjsubid > 0
      )
    ) order by p.polname), '[]') from pg_policy p where p.polrelid = c.oid
  ),
  'rights', (
    select json_agg(json_build_object(
      'role', asked.role, 'exists', r.oid is not null, 'hasSchema', coalesce(has_schema_privilege(r.oid, n.oid, 'usage'), false),
      'privileges', array(
        select p from unnest(${PRIVILEGES}) with ordinality u(p, place)
        where has_table_privilege(r.oid, c.oid, p)
          or case when place < 4 or p = 'references' then has_any_column_privilege(r.oid, c.oid, p) else false end
        order by place
      ),
      'updatable', array(
        select a.attname from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and has_column_privilege(r.oid, c.oid, a.attnum, 'update') order by a.attnum
      )
    ) order by asked.role) from (values ($3::text), ($4)) asked(role) left join pg_roles r on r.rolname = asked.role
  ),
  'others', (
    select coalesce(json_agg(json_build_object('role', r.rolname, 'privileges', held.privileges) order by r.rolname), '[]')
    from (
      select g.grantee, array_agg(distinct lower(g.privilege_type) order by lower(g.privilege_type)) as privileges
      from (select case when c.relforcerowsecurity then coalesce(c.relacl, acldefault('r', c.relowner)) else c.relacl end as acl union all select attacl from pg_attribute where attrelid = c.oid) a cross join aclexplode(a.acl) g
      where g.privilege_type in ('SELECT', 'INSERT', 'UPDATE', 'DELETE') group by 1
    ) held join pg_roles r on r.oid = held.grantee
    where r.rolname not in ($3, $4) and not r.rolsuper and not r.rolbypassrls and (c.relforcerowsecurity or not pg_has_role(r.oid, c.relowner, 'usage'))
  ),
  'sequences', (
    select coalesce(json_agg(distinct s.oid::regclass::text), '[]') from pg_class s
    where s.relkind = 'S' and pg_has_role(s.relowner, 'usage') and s.oid in (
      select d.objid from pg_depend d where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass
        and d.refobjid = c.oid and d.refobjsubid > 0 and d.deptype in ('a', 'i')
      union all
      select d.refobjid from pg_depend d join pg_attrdef f on d.classid = 'pg_attrdef'::regclass and d.objid = f.oid
        where f.adrelid = c.oid and d.refclassid = 'pg_class'::regclass
    )
  ),
  'columns', array(select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum),
  'defaults', (
    select coalesce(json_agg(json_build_object('column', a.attname, 'text', pg_get_expr(f.adbin, f.adrelid)) order by a.attnum), '[]')
    from pg_attribute a join pg_attrdef f on f.adrelid = a.attrelid and f.adnum = a.attnum
    where a.attrelid = c.oid and not a.attisdropped and a.attgenerated = ''
  )
) as state
from ${LIMITED_LOCKS} cross join pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2`

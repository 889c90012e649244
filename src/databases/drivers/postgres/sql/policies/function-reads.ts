import type { A_Expr, FuncCall, Node } from 'libpg-query'
import { constantIn, soleExpression, systemName } from '#databases/drivers/postgres/sql/parse-tree.ts'
import { DepthFailure, parse, SyntaxFailure } from '#databases/drivers/postgres/sql/parser.ts'
import { CLAIMS, TYPES } from '#databases/drivers/postgres/sql/policies/expression.ts'

/** Members of the claims that a function reads, or `all` of them. */
export type FunctionReads = ReadonlySet<string> | 'all'

/**
 * Everything that a function without arguments reads, from its body: `select` of one value from claims, as `auth.uid()` does. Undefined for any
 * other body. Names in it are looked up when it runs, with the session's search path, so it has only such as `SHADOWS_SQL` knows.
 */
export async function readsOfFunction(body: string): Promise<FunctionReads | undefined> {
  try {
    const node = soleExpression(await parse(body))
    if (node === undefined) return undefined
    const claims = new Set<string>()
    const readsAll = visit(node, claims)
    return readsAll ? 'all' : claims
  } catch (error) {
    if (error instanceof Other || error instanceof SyntaxFailure || error instanceof DepthFailure)
      return undefined
    throw error
  }
}

/**
 * Functions, operators and casts of users that may be found in place of those of such a body; an empty text for none. pg_catalog comes first in
 * the search path, but what fits the types better wins. Runs with the search path pg_catalog.
 */
export const SHADOWS_SQL = `concat_ws(',',
  (select string_agg(o.oid::text, ',' order by o.oid) from pg_operator o
    where o.oprname in ('->', '->>', '=') and o.oprnamespace <> 'pg_catalog'::regnamespace
      and (o.oprleft in ('json'::regtype, 'jsonb'::regtype, 'text'::regtype) or (select t.typtype from pg_type t where t.oid = o.oprleft) = 'p')),
  (select string_agg(f.oid::text, ',' order by f.oid) from pg_proc f
    where f.proname = 'current_setting' and f.pronamespace <> 'pg_catalog'::regnamespace),
  (select string_agg(k.oid::text, ',' order by k.oid) from pg_cast k where k.castfunc >= 16384 and k.castsource < 16384 and k.casttarget < 16384))`

/** The search paths that sessions of the client's own role have, and those that new ones get. */
export const SEARCH_PATHS_SQL = `(
  select array_agg(path) from (
    select reset_val as path from pg_settings where name = 'search_path'
    union all
    select substring(config from '^search_path=(.*)$') from pg_db_role_setting r cross join unnest(r.setconfig) given(config)
    where config like 'search_path=%' and r.setdatabase in (0, (select oid from pg_database where datname = current_database()))
      and r.setrole in (0, (select oid from pg_roles where rolname = session_user))
  ) as known)`

/** The body has another form. */
class Other extends Error {}

/** PostgREST has set these before version 9. Nothing sets them here. */
const OLD_CLAIM = /^request\.jwt\.claim\.\w+$/
const BASE_TYPES: ReadonlySet<string> = TYPES.intersection(
  new Set(['text', 'uuid', 'json', 'jsonb', 'bool', 'int4', 'int8']),
)

/** Notes the claims that it reads. True: it reads all. */
function visit(node: Node, claims: Set<string>): boolean {
  const all = (parts: readonly (Node | undefined)[] = []): boolean =>
    parts.map((part) => part !== undefined && visit(part, claims)).some(Boolean)
  if ('A_Const' in node) return false
  if ('CoalesceExpr' in node) return all(node.CoalesceExpr.args)
  if ('FuncCall' in node) return readsSetting(node.FuncCall)
  if ('TypeCast' in node) {
    const { arg, typeName } = node.TypeCast
    if (typeName?.arrayBounds !== undefined || !BASE_TYPES.has(systemName(typeName?.names) ?? ''))
      throw new Other()
    return all([arg])
  }
  if (!('A_Expr' in node)) throw new Other()
  const { kind, lexpr, rexpr } = node.A_Expr
  if (kind === 'AEXPR_NULLIF') {
    requireTexts(lexpr, rexpr)
    return all([lexpr, rexpr])
  }
  const member = memberOf(node.A_Expr)
  if (lexpr === undefined || member === undefined) throw new Other()
  if (isOwnClaims(lexpr)) {
    claims.add(member)
    return false
  }
  return all([lexpr])
}

/** NULLIF compares texts, and so by pg_catalog's own operator. For other pairs of types there may be one of users. */
function requireTexts(...nodes: readonly (Node | undefined)[]): void {
  if (!nodes.every((node) => node !== undefined && isText(node))) throw new Other()
}

/** Of the nodes that `visit` lets pass. */
function isText(node: Node): boolean {
  if ('A_Const' in node) return node.A_Const.sval !== undefined
  if ('TypeCast' in node) return systemName(node.TypeCast.typeName?.names) === 'text'
  if ('CoalesceExpr' in node) return node.CoalesceExpr.args?.every(isText) === true
  if ('A_Expr' in node) return node.A_Expr.kind === 'AEXPR_NULLIF' || systemName(node.A_Expr.name) === '->>'
  return 'FuncCall' in node
}

/** The name in `… ->> 'name'`. */
function memberOf({ kind, name, rexpr }: A_Expr): string | undefined {
  const operator = systemName(name)
  if (kind !== 'AEXPR_OP' || (operator !== '->>' && operator !== '->') || rexpr === undefined)
    return undefined
  return constantIn(rexpr)?.sval?.sval
}

/** `current_setting('request.claims', …)`, also as JSON and without an empty text. */
function isOwnClaims(node: Node): boolean {
  if ('FuncCall' in node) return settingIn(node.FuncCall) === CLAIMS
  if ('TypeCast' in node) {
    const { arg, typeName } = node.TypeCast
    const isJson = ['json', 'jsonb'].includes(systemName(typeName?.names) ?? '')
    return isJson && typeName?.arrayBounds === undefined && arg !== undefined && isOwnClaims(arg)
  }
  if (!('A_Expr' in node)) return false
  const { kind, lexpr, rexpr } = node.A_Expr
  if (kind !== 'AEXPR_NULLIF' || lexpr === undefined || !isOwnClaims(lexpr)) return false
  requireTexts(lexpr, rexpr)
  return rexpr !== undefined && constantIn(rexpr) !== undefined
}

function readsSetting(call: FuncCall): true {
  const setting = settingIn(call) ?? ''
  if (setting === CLAIMS || setting === 'request.jwt.claims' || OLD_CLAIM.test(setting)) return true
  throw new Other()
}

function settingIn({ funcname, args = [] }: FuncCall): string | undefined {
  const [setting, missingOk, ...others] = args
  if (systemName(funcname) !== 'current_setting' || setting === undefined || others.length > 0)
    return undefined
  if (missingOk !== undefined && constantIn(missingOk)?.boolval === undefined) return undefined
  return constantIn(setting)?.sval?.sval
}

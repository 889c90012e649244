/** True when an insert or update failed on this unique constraint; translated where the statement is. */
export function isConflict(error: unknown, constraint: string): boolean {
  const { code, constraint: violated } = error as { code?: unknown; constraint?: unknown } // pg's DatabaseError
  return code === '23505' && violated === constraint
}

/** True when PostgreSQL cannot store a JSON text as jsonb, because one of its numbers is beyond `numeric`. */
export const isUnstorableJson = (error: unknown): boolean => (error as { code?: unknown }).code === '22003' // pg's DatabaseError

/** True for the one of two transactions that PostgreSQL has ended because they waited for each other. */
export const isDeadlock = (error: unknown): boolean => Object(error).code === '40P01' // pg's DatabaseError
